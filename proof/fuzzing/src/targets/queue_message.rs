//! The payload of a message to put: XML around a text.

use protocol::common::xml_write::is_xml_text;
use protocol::queue::message_text::{TEXT_BYTES_MAX, read_message};

use crate::golden::distinct;
use crate::{Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "queue_message",
    run,
    input_bytes_max: 9 * TEXT_BYTES_MAX,
    tokens: &[
        b"<QueueMessage>",
        b"</QueueMessage>",
        b"<MessageText>",
        b"</MessageText>",
        b"<MessageText/>",
        b"<MessageText />",
        b"<QueueMessage/>",
        b"<?xml version=\"1.0\" encoding=\"utf-8\"?>",
        b"<?xml version='1.0'?>",
        b"<!-- -->",
        b"<![CDATA[",
        b"]]>",
        b"<!DOCTYPE q [<!ENTITY a \"aa\">]>",
        b"&a;",
        b"&lt;",
        b"&gt;",
        b"&amp;",
        b"&quot;",
        b"&apos;",
        b"&#xD;",
        b"&#13;",
        b"&#0;",
        b"&#x10FFFF;",
        b"&#xFFFE;",
        b"&",
        b"<",
        b">",
        b"<b>",
        b"</b>",
        b" a=\"1\"",
        b"\r\n",
        b"\n",
        b"\xEF\xBB\xBF",
        b"\xEF\xBF\xBE",
        b"\x00",
        b"\xFF",
    ],
    seeds,
};

fn seeds(_: &Golden) -> Vec<Vec<u8>> {
    let texts = ["", "aGVsbG8=", "a &amp; b", "line\r\nline", "é\u{1F48E}", "<![CDATA[raw]]>", "a<b>c</b>d"];
    let plain = texts.iter().map(|text| around(text));
    let others = [
        "<QueueMessage><MessageText/></QueueMessage>",
        "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<QueueMessage>\n  <MessageText>a</MessageText>\n</QueueMessage>\n",
        "<?xml version='1.0' encoding='UTF-8'?><QueueMessage ><MessageText >a</MessageText></QueueMessage>",
        "<QueueMessage><!-- why --><MessageText>a</MessageText></QueueMessage>",
    ];
    distinct(plain.chain(others.map(str::to_owned)).map(String::into_bytes))
}

fn around(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#xD;")
}

pub fn run(input: &[u8]) -> Outcome {
    // Any text that XML can hold is read as it was written, by the quick way and by the parser.
    if let Ok(text) = as_text(input)
        && is_xml_text(text)
        && text.len() <= TEXT_BYTES_MAX
    {
        check(text);
    }
    for version in ["2011-08-18", "2025-11-05"] {
        match read_message(input, version) {
            Ok(text) => {
                assert!(text.len() <= TEXT_BYTES_MAX, "a text of {} bytes", text.len());
                assert!(is_xml_text(&text), "{text:?} cannot be written");
                check(&text);
            }
            Err(error) if version.starts_with("2025") => return error.into(),
            Err(_) => {}
        }
    }
    Outcome::Accepted("message")
}

#[track_caller]
fn check(text: &str) {
    let written = around(&escaped(text));
    let read = read_message(written.as_bytes(), "2025-11-05");
    assert_eq!(read.as_deref().ok(), Some(text), "{written}");
    // A comment is left to the parser.
    let commented = written.replacen("<QueueMessage>", "<QueueMessage><!-- -->", 1);
    let read = read_message(commented.as_bytes(), "2025-11-05");
    assert_eq!(read.as_deref().ok(), Some(text), "{commented}");
}
