//! `EnumerationResults`: the answer to List Queues.

use crate::common::list::{Items, NameMarker, ROOT, write_head, write_metadata};
use crate::common::xml_write::XmlWriter;
use crate::common::{AccountName, Metadata};

use super::parameters::ListParameters;
use super::versions;

const LIST: &str = "Queues";
const ITEM: &str = "Queue";
/// Bytes of a queue without metadata, and of what surrounds the list.
const QUEUE_BYTES_USUAL: usize = 64;
const CAPACITY_BYTES: usize = 512;

pub struct QueueListWriter<'a> {
    items: Items,
    account: &'a AccountName,
    /// The base for the URL of each queue, which old versions show.
    url_base: Option<&'a str>,
    include_metadata: bool,
}

impl<'a> QueueListWriter<'a> {
    /// `base` is the account's URL without a trailing slash, and `queue_count` how many queues are to come.
    pub fn begin(
        base: &'a str,
        account: &'a AccountName,
        parameters: &ListParameters,
        version: &str,
        queue_count: usize,
    ) -> QueueListWriter<'a> {
        let mut out = XmlWriter::begin_unmarked(CAPACITY_BYTES + queue_count * QUEUE_BYTES_USUAL);
        let is_old = version < versions::ENDPOINT_IN_LIST;
        if is_old {
            out.start_with(ROOT, "AccountName", base);
        } else {
            out.start_with(ROOT, "ServiceEndpoint", &[base, "/"].concat());
        }
        let marker = parameters.marker.as_ref().map(|marker| &*marker.text);
        write_head(parameters.prefix.as_deref(), marker, parameters.count_max, &mut out);
        QueueListWriter {
            items: Items::new(out, LIST, CAPACITY_BYTES),
            account,
            url_base: is_old.then_some(base),
            include_metadata: parameters.include_metadata,
        }
    }

    /// Adds a queue, unless `admit` refuses an answer of that many bytes. Tells whether it did.
    pub fn push(&mut self, name: &str, metadata: &Metadata, admit: impl FnOnce(usize) -> bool) -> bool {
        let (url_base, include_metadata) = (self.url_base, self.include_metadata);
        let write = |out: &mut XmlWriter| {
            out.start(ITEM);
            out.leaf("Name", name);
            if let Some(base) = url_base {
                out.leaf("Url", &[base, "/", name].concat());
            }
            if include_metadata {
                write_metadata(metadata, out);
            }
            out.end(ITEM);
        };
        self.items.push(write, admit)
    }

    /// `next` is the first name of the next page, if there is one.
    pub fn finish(self, next: Option<&str>) -> Vec<u8> {
        self.items.finish(next.map(|name| NameMarker::write(self.account, name)).as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::query::Query;

    #[track_caller]
    fn check(
        version: &str,
        query: &str,
        queues: &[(&str, &[(&str, &str)])],
        next: Option<&str>,
        expected: &str,
    ) {
        let account = AccountName::parse("storagename").unwrap();
        let parameters = ListParameters::read(&Query::split(query), &account).unwrap();
        let base = "https://storagename.queue.core.windows.net";
        let mut writer = QueueListWriter::begin(base, &account, &parameters, version, queues.len());
        for (name, items) in queues {
            let metadata = Metadata::read(items.iter().copied()).unwrap();
            assert!(!writer.push(name, &metadata, |_| false));
            assert!(writer.push(name, &metadata, |_| true));
        }
        let document = String::from_utf8(writer.finish(next)).unwrap();
        assert_eq!(document, format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>{expected}"));
    }

    /// The samples of the queue specification, section 4.2.
    #[test]
    fn pages_are_those_of_the_service() {
        let new = "2025-11-05";
        check(
            new,
            "prefix=listqueue&maxresults=3",
            &[("listqueue0", &[]), ("listqueue1", &[("color", "red")]), ("listqueue2", &[])],
            Some("listqueue3"),
            "<EnumerationResults ServiceEndpoint=\"https://storagename.queue.core.windows.net/\"><Prefix>listqueue</Prefix><MaxResults>3</MaxResults><Queues><Queue><Name>listqueue0</Name></Queue><Queue><Name>listqueue1</Name></Queue><Queue><Name>listqueue2</Name></Queue></Queues><NextMarker>/storagename/listqueue3</NextMarker></EnumerationResults>",
        );
        check(
            new,
            "prefix=listqueue&marker=%2Fstoragename%2Flistqueue3&include=metadata",
            &[("listqueue3", &[("color", "red")]), ("listqueue4", &[])],
            None,
            "<EnumerationResults ServiceEndpoint=\"https://storagename.queue.core.windows.net/\"><Prefix>listqueue</Prefix><Marker>/storagename/listqueue3</Marker><Queues><Queue><Name>listqueue3</Name><Metadata><color>red</color></Metadata></Queue><Queue><Name>listqueue4</Name><Metadata /></Queue></Queues><NextMarker /></EnumerationResults>",
        );
        check(
            new,
            "prefix=%3C",
            &[],
            None,
            "<EnumerationResults ServiceEndpoint=\"https://storagename.queue.core.windows.net/\"><Prefix>&lt;</Prefix><Queues /><NextMarker /></EnumerationResults>",
        );
    }

    #[test]
    fn old_pages_name_the_account_and_the_url_of_each_queue() {
        check(
            "2012-02-12",
            "include=metadata",
            &[("abc", &[("a", "")])],
            None,
            "<EnumerationResults AccountName=\"https://storagename.queue.core.windows.net\"><Queues><Queue><Name>abc</Name><Url>https://storagename.queue.core.windows.net/abc</Url><Metadata><a /></Metadata></Queue></Queues><NextMarker /></EnumerationResults>",
        );
    }
}
