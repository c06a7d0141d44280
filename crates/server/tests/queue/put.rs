//! Put Message (§5.2): bodies, texts, parameters, and the answer.

use testkit::{Queues, Request, Response, message_xml, messages};

use crate::{with_queue, with_stopped_clock};

fn post(query: &str, body: &str) -> Request {
    Request::post(&format!("/abc/messages{query}")).xml(body)
}

/// Puts a body and returns the text of the message that it becomes.
#[track_caller]
fn text_of(queue: &Queues<'_>, body: &str) -> String {
    queue.send(post("", body)).expect(201);
    let taken = queue.get_one("abc", "");
    queue.send(taken.delete("abc")).expect(204);
    taken.text
}

fn wrapped(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

#[track_caller]
fn check_document(refused: Response) {
    let refused = refused.expect_error(400, "InvalidXmlDocument");
    assert_eq!(refused.error_message(), "XML specified is not syntactically valid.");
    for name in ["LineNumber", "LinePosition", "Reason"] {
        assert_eq!(refused.elements(name).len(), 1, "{refused:?}");
    }
}

#[test]
fn the_answer_has_five_elements_in_order() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    let put = queue.send(post("?visibilitytimeout=5&messagettl=-1", &message_xml("a"))).expect(201);
    assert_eq!((put.required("Content-Type"), put.header("Cache-Control")), ("application/xml", None));
    let message = &messages(&put)[0];
    let expected = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>{}</MessageId><InsertionTime>Fri, 26 Jun 2026 23:39:12 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt>{}</PopReceipt><TimeNextVisible>Fri, 26 Jun 2026 23:39:17 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>",
        message.id, message.receipt
    );
    assert_eq!(put.text(), expected);
    let is_guid = message.id.len() == 36
        && message.id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        });
    assert!(is_guid, "{}", message.id);
    // Trap 9.
    assert!(!message.receipt.is_empty() && !message.receipt.contains(['+', '/', ' ']), "{}", message.receipt);
}

#[test]
fn without_parameters_a_message_is_visible_for_seven_days() {
    let (server, _) = with_stopped_clock();
    let put = server.queue().put("abc", "a");
    assert_eq!(put.visible, put.inserted);
    assert_eq!(put.expires, "Fri, 03 Jul 2026 23:39:12 GMT");
}

#[test]
fn ids_are_unique() {
    let server = with_queue();
    let mut ids: Vec<String> = (0..50).map(|_| server.queue().put("abc", "same").id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 50);
}

#[test]
fn a_text_is_kept_character_by_character() {
    let server = with_queue();
    let queue = server.queue();
    for text in [
        "aGVsbG8=",
        " leading and trailing ",
        "\ttabs\nand\nlines\n",
        "<a href=\"x\">&amp;</a>",
        "{\"json\": ['a', \"b\"]}",
        "]]>",
        "\u{e4}\u{20ac}\u{1F600}\u{FFFD}\u{FEFF}",
        "   ",
        "\u{85}\u{2028}",
    ] {
        assert_eq!(text_of(&queue, &message_xml(text)), text);
    }
}

#[test]
fn an_empty_text_is_a_message() {
    let server = with_queue();
    let queue = server.queue();
    for empty in ["<MessageText/>", "<MessageText />", "<MessageText></MessageText>"] {
        assert_eq!(text_of(&queue, &format!("<QueueMessage>{empty}</QueueMessage>")), "");
    }
    queue.put("abc", "");
    let shown = queue.send(Request::get("/abc/messages?peekonly=true")).expect(200);
    assert!(shown.text().contains("<MessageText />"), "{shown:?}");
}

#[test]
fn a_body_may_have_a_declaration_a_mark_and_blanks() {
    let server = with_queue();
    let queue = server.queue();
    for body in [
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>a</MessageText></QueueMessage>",
        "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>a</MessageText></QueueMessage>",
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><QueueMessage><MessageText>a</MessageText></QueueMessage>",
        "\u{FEFF}<QueueMessage><MessageText>a</MessageText></QueueMessage>",
        "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<QueueMessage>\r\n  <MessageText>a</MessageText>\r\n</QueueMessage>\r\n",
        "<!-- why --><QueueMessage><!-- not --><MessageText>a</MessageText></QueueMessage>",
    ] {
        assert_eq!(text_of(&queue, body), "a", "{body}");
    }
}

#[test]
fn references_and_sections_are_characters() {
    let server = with_queue();
    let queue = server.queue();
    for (sent, text) in [
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("&#65;&#x42;&#x1F600;", "AB\u{1F600}"),
        ("&#13;&#xD;&#10;", "\r\r\n"),
        ("<![CDATA[<b>&amp;</b>]]>", "<b>&amp;</b>"),
        ("a<![CDATA[b]]>c", "abc"),
        ("1\r\n2\r3\n4", "1\n2\n3\n4"),
    ] {
        assert_eq!(text_of(&queue, &wrapped(sent)), text, "{sent}");
    }
}

/// §5.2: "removed before the message is added".
#[test]
fn markup_inside_the_text_is_stripped() {
    let server = with_queue();
    let queue = server.queue();
    assert_eq!(text_of(&queue, &wrapped("a<b x='1'>c</b>d<i/>")), "acd");
}

/// §5.8: only `&`, `<`, `>` and the carriage return are escaped.
#[test]
fn texts_are_escaped_sparingly() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(post("", &wrapped("&lt;&gt;&amp;\"'&#xD;\n\t\u{e4}"))).expect(201);
    let shown = queue.send(Request::get("/abc/messages?peekonly=true")).expect(200);
    let expected = "<MessageText>&lt;&gt;&amp;\"'&#xD;\n\t\u{e4}</MessageText>";
    assert!(shown.text().contains(expected), "{shown:?}");
}

#[test]
fn wrong_bodies_are_refused() {
    let server = with_queue();
    let queue = server.queue();
    for body in [
        "nothing",
        "<QueueMessage/>",
        "<QueueMessage></QueueMessage>",
        "<MessageText>a</MessageText>",
        "<Message><MessageText>a</MessageText></Message>",
        "<queuemessage><MessageText>a</MessageText></queuemessage>",
        "<QueueMessage><MessageText>a</QueueMessage>",
        "<QueueMessage><MessageText>a</MessageText>",
        "<QueueMessage><MessageText>a & b</MessageText></QueueMessage>",
        "<QueueMessage><MessageText>&nbsp;</MessageText></QueueMessage>",
        "<QueueMessage><Other>a</Other></QueueMessage>",
        &wrapped("\u{1}"),
        &wrapped("&#1;"),
        &wrapped("&#0;"),
        &wrapped("\u{FFFF}"),
        &wrapped("&#xFFFE;"),
        &wrapped("&#xD800;"),
    ] {
        check_document(queue.send(post("", body)));
    }
    let invalid = Request::post("/abc/messages")
        .body("application/xml", b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>".to_vec());
    check_document(queue.send(invalid));
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn an_empty_body_is_no_message() {
    let server = with_queue();
    let queue = server.queue();
    let refused = queue.send(Request::post("/abc/messages"));
    assert!(refused.status == 400, "{refused:?}");
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn a_text_has_at_most_65536_bytes_after_unescaping() {
    let server = with_queue();
    let queue = server.queue();
    let most = "x".repeat(65_536);
    queue.send(post("", &wrapped(&most))).expect(201);
    assert_eq!(queue.get_one("abc", "").text.len(), 65_536);
    queue.send(post("", &wrapped(&"&amp;".repeat(65_536)))).expect(201);
    queue.send(post("", &wrapped(&"\u{e4}".repeat(32_768)))).expect(201);
    for long in [format!("{most}x"), "\u{e4}".repeat(32_769), "x".repeat(100_000), "&lt;".repeat(65_537)] {
        let refused = queue.send(post("", &wrapped(&long))).expect_error(413, "RequestBodyTooLarge");
        let message = "The request body is too large and exceeds the maximum permissible limit.";
        assert_eq!((refused.error_message(), refused.element("MaxLimit")), (message.into(), "65536".into()));
    }
    assert_eq!(queue.count("abc"), 3);
}

#[test]
fn a_time_to_live_is_positive_or_minus_one() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    for (seconds, expires) in [
        ("1", "Fri, 26 Jun 2026 23:39:13 GMT"),
        ("604801", "Fri, 03 Jul 2026 23:39:13 GMT"),
        ("-1", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("9007199254740991", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("9223372036854775807", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ] {
        let put = queue.put_with("abc", &format!("messagettl={seconds}"), "a");
        assert_eq!(put.expires, expires, "{seconds}");
    }
    for bad in ["0", "-2"] {
        let refused = queue.send(post(&format!("?messagettl={bad}"), &message_xml("a")));
        let refused = refused.expect_error(400, "InvalidQueryParameterValue");
        assert_eq!(refused.element("QueryParameterName"), "messagettl");
        assert_eq!(refused.element("QueryParameterValue"), bad);
        let reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.";
        assert_eq!(refused.element("Reason"), reason);
    }
    for bad in ["x", "1.5", "", "1e9", "0x10", "+5"] {
        let refused =
            queue.send(Request::post("/abc/messages").query("messagettl", bad).xml(&message_xml("a")));
        assert_eq!(
            refused.expect_error(400, "InvalidQueryParameterValue").element("QueryParameterName"),
            "messagettl"
        );
    }
}

#[test]
fn a_message_is_hidden_for_less_than_its_life() {
    let server = with_queue();
    let queue = server.queue();
    for good in [
        "?visibilitytimeout=0",
        "?visibilitytimeout=604799",
        "?visibilitytimeout=604800&messagettl=-1",
        "?visibilitytimeout=604800&messagettl=604801",
        "?visibilitytimeout=4&messagettl=5",
    ] {
        queue.send(post(good, &message_xml("a"))).expect(201);
    }
    for (bad, seconds) in [
        ("?visibilitytimeout=5&messagettl=5", "5"),
        ("?visibilitytimeout=6&messagettl=5", "6"),
        ("?visibilitytimeout=604800", "604800"),
        ("?messagettl=604800&visibilitytimeout=604800", "604800"),
    ] {
        let refused =
            queue.send(post(bad, &message_xml("a"))).expect_error(400, "InvalidQueryParameterValue");
        assert_eq!(refused.element("QueryParameterName"), "visibilitytimeout");
        assert_eq!(refused.element("QueryParameterValue"), seconds);
        assert_eq!(refused.element("Reason"), "messagettl must be greater than visibilitytimeout");
    }
    for bad in ["-1", "604801", "9999999999999"] {
        let refused = queue.send(post(&format!("?visibilitytimeout={bad}&messagettl=-1"), &message_xml("a")));
        let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
        assert_eq!(refused.element("QueryParameterName"), "visibilitytimeout");
        assert_eq!(
            (refused.element("MinimumAllowed"), refused.element("MaximumAllowed")),
            ("0".into(), "604800".into())
        );
    }
    assert_eq!(queue.count("abc"), 5);
}

#[test]
fn a_hidden_message_comes_up_in_time() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put_with("abc", "visibilitytimeout=10", "later");
    assert!(queue.texts("abc").is_empty() && queue.get("abc", "").is_empty());
    clock.advance(std::time::Duration::from_millis(9_999));
    assert!(queue.texts("abc").is_empty() && queue.get("abc", "").is_empty());
    clock.advance(std::time::Duration::from_millis(2));
    assert_eq!(queue.texts("abc"), ["later"]);
    assert_eq!(queue.get_one("abc", "").dequeue_count, "1");
}

#[test]
fn parameters_are_checked_before_the_body_and_the_body_before_the_queue() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(post("?messagettl=x", "nothing")).expect_error(400, "InvalidQueryParameterValue");
    queue.send(Request::post("/missing/messages").xml("nothing")).expect_error(400, "InvalidXmlDocument");
    queue.send(Request::post("/missing/messages").xml(&message_xml("a"))).expect_error(404, "QueueNotFound");
}

/// §2.1: an emulator accepts a chunked body.
#[test]
fn a_chunked_body_is_taken() {
    let server = with_queue();
    let queue = server.queue();
    let mut request = post("", "").header("Transfer-Encoding", "chunked").without("Content-Length");
    let body = message_xml("chunked");
    let (one, two) = body.split_at(20);
    request.body =
        Some(format!("{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", one.len(), two.len()).into_bytes());
    queue.send(request).expect(201);
    assert_eq!(queue.texts("abc"), ["chunked"]);
}

#[test]
fn the_content_type_does_not_matter() {
    let server = with_queue();
    let queue = server.queue();
    for kind in
        ["application/xml", "application/xml; charset=utf-8", "text/plain", "application/octet-stream"]
    {
        queue.send(Request::post("/abc/messages").body(kind, message_xml("a"))).expect(201);
    }
    queue.send(post("", &message_xml("a")).without("Content-Type")).expect(201);
}
