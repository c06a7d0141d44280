//! `EnumerationResults`: the answer to List Queues.

use crate::common::xml_write::XmlWriter;
use crate::common::{AccountName, Metadata};

use super::parameters::{ListMarker, ListParameters};
use super::versions;

const ROOT: &str = "EnumerationResults";
const LIST: &str = "Queues";
const ITEM: &str = "Queue";
/// Bytes of a queue without metadata, and of what surrounds the list.
const QUEUE_BYTES_USUAL: usize = 64;
const CAPACITY_BYTES: usize = 512;

pub struct QueueListWriter<'a> {
    out: XmlWriter,
    account: &'a AccountName,
    /// The base for the URL of each queue, which old versions show.
    url_base: Option<&'a str>,
    include_metadata: bool,
    is_empty: bool,
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
        if let Some(prefix) = &parameters.prefix {
            out.leaf("Prefix", prefix);
        }
        if let Some(marker) = &parameters.marker {
            out.leaf("Marker", &marker.text);
        }
        if let Some(count_max) = parameters.count_max {
            out.leaf("MaxResults", &count_max.to_string());
        }
        let include_metadata = parameters.include_metadata;
        QueueListWriter { out, account, url_base: is_old.then_some(base), include_metadata, is_empty: true }
    }

    /// Adds a queue, unless `admit` refuses an answer of that many bytes. Tells whether it did.
    pub fn push(&mut self, name: &str, metadata: &Metadata, admit: impl FnOnce(usize) -> bool) -> bool {
        let before = self.out.len();
        if self.is_empty {
            self.out.start(LIST);
        }
        self.out.start(ITEM);
        self.out.leaf("Name", name);
        if let Some(base) = self.url_base {
            self.out.leaf("Url", &[base, "/", name].concat());
        }
        if self.include_metadata {
            write_metadata(metadata, &mut self.out);
        }
        self.out.end(ITEM);
        if !admit(self.out.len() + CAPACITY_BYTES) {
            self.out.truncate(before);
            return false;
        }
        self.is_empty = false;
        true
    }

    /// `next` is the first name of the next page, if there is one.
    pub fn finish(mut self, next: Option<&str>) -> Vec<u8> {
        if self.is_empty {
            self.out.empty(LIST);
        } else {
            self.out.end(LIST);
        }
        match next {
            Some(name) => self.out.leaf("NextMarker", &ListMarker::write(self.account, name)),
            None => self.out.empty("NextMarker"),
        }
        self.out.end(ROOT);
        self.out.finish()
    }
}

fn write_metadata(metadata: &Metadata, out: &mut XmlWriter) {
    if metadata.items().len() == 0 {
        return out.empty("Metadata");
    }
    out.start("Metadata");
    // Names of metadata are valid names of elements.
    for (name, value) in metadata.items() {
        out.leaf(name, value);
    }
    out.end("Metadata");
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
