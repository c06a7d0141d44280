//! `QueueMessagesList`: the answers to Put Message, Get Messages and Peek Messages.
//!
//! Promises: one buffer, elements in the service's order. Put Message shows no text, and Peek Messages no receipt.

use crate::common::DateTime;
use crate::common::decimal::Digits;
use crate::common::xml_write::{XmlWriter, escaped_len};

use super::{MessageId, PopReceipt, versions};

const ROOT: &str = "QueueMessagesList";
const ITEM: &str = "QueueMessage";
/// Bytes of a message beside its text.
pub const MESSAGE_OVERHEAD_BYTES: usize = 512;

/// How many bytes a message with this text takes in a list, at most.
pub fn listed_bytes(text: &[u8]) -> usize {
    escaped_len(text) + MESSAGE_OVERHEAD_BYTES
}

/// A message as an answer shows it.
pub struct ListedMessage<'a> {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    /// The receipt, and when the message becomes visible.
    pub hold: Option<(PopReceipt, DateTime)>,
    /// How often the message was taken, and its text.
    pub content: Option<(u32, &'a str)>,
}

pub struct MessageListWriter {
    out: XmlWriter,
    shows_counts: bool,
    is_empty: bool,
}

impl MessageListWriter {
    /// Makes room for this many bytes.
    pub fn begin(version: &str, capacity_bytes: usize) -> MessageListWriter {
        let out = XmlWriter::begin_unmarked(capacity_bytes + 2 * ROOT.len() + 8);
        MessageListWriter { out, shows_counts: version >= versions::DEQUEUE_COUNT, is_empty: true }
    }

    pub fn push(&mut self, message: &ListedMessage<'_>) {
        if self.is_empty {
            self.out.start(ROOT);
        }
        self.write_message(message);
        self.is_empty = false;
    }

    pub fn finish(mut self) -> Vec<u8> {
        if self.is_empty {
            self.out.empty(ROOT);
        } else {
            self.out.end(ROOT);
        }
        self.out.finish()
    }
}

impl MessageListWriter {
    fn write_message(&mut self, message: &ListedMessage<'_>) {
        let out = &mut self.out;
        out.start(ITEM);
        out.plain("MessageId", |out| message.id.write(out));
        out.http_date("InsertionTime", message.inserted);
        out.http_date("ExpirationTime", message.expires);
        if let Some((receipt, visible)) = message.hold {
            out.plain("PopReceipt", |out| receipt.write(out));
            out.http_date("TimeNextVisible", visible);
        }
        if let Some((dequeue_count, text)) = message.content {
            if self.shows_counts {
                let digits = Digits::new(dequeue_count.into());
                out.plain("DequeueCount", |out| out.extend_from_slice(digits.as_bytes()));
            }
            out.leaf("MessageText", text);
        }
        out.end(ITEM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

    fn written(messages: &[ListedMessage<'_>]) -> String {
        let mut writer = MessageListWriter::begin("2025-11-05", 0);
        for message in messages {
            writer.push(message);
        }
        String::from_utf8(writer.finish()).unwrap()
    }

    fn time(text: &str) -> DateTime {
        DateTime::parse_http(text).unwrap()
    }

    const RECEIPT: PopReceipt = PopReceipt { visible_ticks: 0x08de_0000_1234_5678, version_ticks: 42 };
    const RECEIPT_TEXT: &str = "08de000012345678000000000000002a";

    /// The samples of the queue specification, sections 5.2 to 5.4, with receipts of our own.
    #[test]
    fn the_three_forms_are_those_of_the_service() {
        let put = ListedMessage {
            id: MessageId::parse("d8611c43-075a-43f0-b70f-42f477cbfda7").unwrap(),
            inserted: time("Fri, 26 Jun 2026 23:39:12 GMT"),
            expires: DateTime::MAX,
            hold: Some((RECEIPT, time("Fri, 26 Jun 2026 23:39:12 GMT"))),
            content: None,
        };
        assert_eq!(
            written(&[put]),
            format!(
                "{HEAD}<QueueMessagesList><QueueMessage><MessageId>d8611c43-075a-43f0-b70f-42f477cbfda7</MessageId><InsertionTime>Fri, 26 Jun 2026 23:39:12 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt>{RECEIPT_TEXT}</PopReceipt><TimeNextVisible>Fri, 26 Jun 2026 23:39:12 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>"
            )
        );
        let taken = ListedMessage {
            id: MessageId::parse("a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab").unwrap(),
            inserted: time("Thu, 27 Oct 2022 22:04:57 GMT"),
            expires: time("Thu, 03 Nov 2022 22:04:57 GMT"),
            hold: Some((RECEIPT, time("Thu, 27 Oct 2022 22:05:28 GMT"))),
            content: Some((1, "message1")),
        };
        assert_eq!(
            written(&[taken]),
            format!(
                "{HEAD}<QueueMessagesList><QueueMessage><MessageId>a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab</MessageId><InsertionTime>Thu, 27 Oct 2022 22:04:57 GMT</InsertionTime><ExpirationTime>Thu, 03 Nov 2022 22:04:57 GMT</ExpirationTime><PopReceipt>{RECEIPT_TEXT}</PopReceipt><TimeNextVisible>Thu, 27 Oct 2022 22:05:28 GMT</TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>message1</MessageText></QueueMessage></QueueMessagesList>"
            )
        );
        let peeked = |text| ListedMessage {
            id: MessageId::parse("d8611c43-075a-43f0-b70f-42f477cbfda7").unwrap(),
            inserted: time("Thu, 27 Oct 2022 22:04:45 GMT"),
            expires: DateTime::MAX,
            hold: None,
            content: Some((0, text)),
        };
        let item = |text: &str| {
            format!(
                "<QueueMessage><MessageId>d8611c43-075a-43f0-b70f-42f477cbfda7</MessageId><InsertionTime>Thu, 27 Oct 2022 22:04:45 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><DequeueCount>0</DequeueCount>{text}</QueueMessage>"
            )
        };
        assert_eq!(
            written(&[peeked("<a>\r\n"), peeked("")]),
            format!(
                "{HEAD}<QueueMessagesList>{}{}</QueueMessagesList>",
                item("<MessageText>&lt;a&gt;&#xD;\n</MessageText>"),
                item("<MessageText />")
            )
        );
        assert_eq!(written(&[]), format!("{HEAD}<QueueMessagesList />"));
    }

    const MESSAGE: ListedMessage<'static> = ListedMessage {
        id: MessageId(7),
        inserted: DateTime::UNIX_EPOCH,
        expires: DateTime::MAX,
        hold: Some((RECEIPT, DateTime::MAX)),
        content: Some((u32::MAX, "")),
    };

    #[test]
    fn a_message_takes_no_more_bytes_than_foretold() {
        for text in ["", "plain", "&<>\r\n", "\u{FFFE}", &"&".repeat(1000)] {
            let message = ListedMessage { content: Some((u32::MAX, text)), ..MESSAGE };
            assert!(written(&[message]).len() < listed_bytes(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_oldest_version_does_not_count() {
        let mut writer = MessageListWriter::begin("2009-07-17", 0);
        writer.push(&MESSAGE);
        let old = String::from_utf8(writer.finish()).unwrap();
        let count = format!("<DequeueCount>{}</DequeueCount>", u32::MAX);
        assert_eq!(written(&[MESSAGE]).replace(&count, ""), old);
    }
}
