//! Get Page Ranges: its parameters, and `PageList`, its answer.

use std::ops::{Range, RangeInclusive};

use crate::common::DateTime;
use crate::common::headers::invalid_header;
use crate::common::query::{Query, invalid_parameter, number, parameter_out_of_range, text};
use crate::common::xml_write::XmlWriter;
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;
use super::identifier::{Revision, read_moment};
use super::limits::{PAGE_BYTES, PAGE_RANGE_COUNT_MAX};

const ROOT: &str = "PageList";
const RANGE_COUNT: RangeInclusive<i64> = 1..=PAGE_RANGE_COUNT_MAX as i64;
const PREVIOUS_URL: &str = "x-ms-previous-snapshot-url";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRangesParameters {
    /// Only what differs from this snapshot.
    pub previous: Option<DateTime>,
    /// The answer continues with this byte.
    pub marker: Option<u64>,
    count_max: Option<usize>,
}

impl PageRangesParameters {
    /// `revision` is the state of the blob that the request is about.
    pub fn read(
        query: &Query<'_>,
        headers: &Headers<'_>,
        revision: Revision,
    ) -> Result<PageRangesParameters, ServiceError> {
        let previous = match read_moment(query, "prevsnapshot")? {
            Some(previous) => Some(previous),
            None => headers.get(PREVIOUS_URL).map(read_previous_url).transpose()?,
        };
        if let (Some(previous), Revision::Snapshot(snapshot)) = (previous, revision)
            && previous > snapshot
        {
            return Err(ErrorCode::PreviousSnapshotCannotBeNewer.into());
        }
        let count_max = match number(query, "maxresults")? {
            None => None,
            Some((count, sent)) if count < *RANGE_COUNT.start() => {
                return Err(parameter_out_of_range("maxresults", &sent, &RANGE_COUNT));
            }
            Some((count, _)) => Some(count.min(*RANGE_COUNT.end()) as usize),
        };
        let marker = text(query, "marker")?.filter(|sent| !sent.is_empty());
        let marker = marker.map(|sent| {
            let at: Option<u64> = sent.parse().ok().filter(|at: &u64| at.is_multiple_of(PAGE_BYTES));
            at.ok_or_else(|| invalid_parameter("marker", &sent, ""))
        });
        Ok(PageRangesParameters { previous, marker: marker.transpose()?, count_max })
    }

    /// How many ranges an answer has at most.
    pub fn page_count(&self) -> usize {
        self.count_max.unwrap_or(PAGE_RANGE_COUNT_MAX)
    }

    /// Whether the caller reads page by page, and so is told where the next one begins.
    fn is_paged(&self) -> bool {
        self.count_max.is_some() || self.marker.is_some()
    }
}

/// The snapshot in the URL of a snapshot of the same blob.
fn read_previous_url(url: &str) -> Result<DateTime, ServiceError> {
    let query = url.split_once('?').map(|(_, query)| Query::split(query).with_lower_names());
    let snapshot = query.and_then(|query| read_moment(&query, "snapshot").ok().flatten());
    snapshot.ok_or_else(|| invalid_header(PREVIOUS_URL, url))
}

/// Writes ranges in their order, and merges none: neighbours must come as one.
pub struct PageListWriter {
    out: XmlWriter,
    is_empty: bool,
    is_paged: bool,
}

impl PageListWriter {
    pub fn begin(parameters: &PageRangesParameters) -> PageListWriter {
        let is_paged = parameters.is_paged();
        PageListWriter { out: XmlWriter::begin_unmarked(1024), is_empty: true, is_paged }
    }

    /// Adds a range with content.
    pub fn push(&mut self, range: &Range<u64>) {
        self.push_as("PageRange", range);
    }

    /// Adds a range that had content in the previous snapshot and has none now.
    pub fn push_cleared(&mut self, range: &Range<u64>) {
        self.push_as("ClearRange", range);
    }

    fn push_as(&mut self, name: &str, range: &Range<u64>) {
        self.start();
        self.out.start(name);
        self.out.number("Start", range.start);
        self.out.number("End", range.end.saturating_sub(1));
        self.out.end(name);
    }

    fn start(&mut self) {
        if self.is_empty {
            self.out.start(ROOT);
            self.is_empty = false;
        }
    }

    /// `next` is the byte with which the next page begins. A caller that did not ask for pages is told nothing.
    pub fn finish(mut self, next: Option<u64>) -> Vec<u8> {
        if self.is_paged || next.is_some() {
            self.start();
            match next {
                Some(next) => self.out.number("NextMarker", next),
                None => self.out.empty("NextMarker"),
            }
        }
        if self.is_empty {
            self.out.empty(ROOT);
        } else {
            self.out.end(ROOT);
        }
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        query: &str,
        headers: &[(&'static str, &'static str)],
    ) -> Result<PageRangesParameters, ErrorCode> {
        let snapshot = Revision::Snapshot(DateTime::parse("2020-01-01T00:00:00Z").unwrap());
        let headers = headers.iter().copied().collect();
        PageRangesParameters::read(&Query::split(query), &headers, snapshot).map_err(|error| error.code)
    }

    fn write(query: &str, ranges: &[(bool, Range<u64>)], next: Option<u64>) -> String {
        let mut writer = PageListWriter::begin(&read(query, &[]).unwrap());
        for (is_written, range) in ranges {
            if *is_written { writer.push(range) } else { writer.push_cleared(range) }
        }
        let written = String::from_utf8(writer.finish(next)).unwrap();
        written.strip_prefix("<?xml version=\"1.0\" encoding=\"utf-8\"?>").unwrap().to_owned()
    }

    /// The examples of section 19.5.
    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(
            write("", &[(true, 0..512), (true, 1024..1536)], None),
            "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><PageRange><Start>1024</Start><End>1535</End></PageRange></PageList>"
        );
        assert_eq!(
            write(
                "prevsnapshot=2019-08-28T02%3A12%3A43.5551231Z",
                &[(true, 0..512), (false, 1024..1536)],
                None
            ),
            "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><ClearRange><Start>1024</Start><End>1535</End></ClearRange></PageList>"
        );
        assert_eq!(write("", &[], None), "<PageList />");
        assert_eq!(write("maxresults=1", &[], None), "<PageList><NextMarker /></PageList>");
        assert_eq!(
            write("maxresults=1", &[(true, 0..512)], Some(1024)),
            "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><NextMarker>1024</NextMarker></PageList>"
        );
    }

    #[test]
    fn parameters_are_checked() {
        let plain = read("", &[]).unwrap();
        assert_eq!((plain.page_count(), plain.marker, plain.previous), (10_000, None, None));
        let paged = read("maxresults=20000&marker=1024", &[]).unwrap();
        assert_eq!((paged.page_count(), paged.marker), (10_000, Some(1024)));
        let moment = DateTime::parse("2019-08-28T02:12:43.5551231Z");
        assert_eq!(read("prevsnapshot=2019-08-28T02:12:43.5551231Z", &[]).unwrap().previous, moment);
        let url = "http://h/a/c/b?Snapshot=2019-08-28T02%3A12%3A43.5551231Z&sig=x";
        assert_eq!(read("", &[(PREVIOUS_URL, url)]).unwrap().previous, moment);
        assert_eq!(read("", &[(PREVIOUS_URL, "http://h/a/c/b")]), Err(ErrorCode::InvalidHeaderValue));
        assert_eq!(read("maxresults=0", &[]), Err(ErrorCode::OutOfRangeQueryParameterValue));
        for bad in ["marker=x", "marker=1", "prevsnapshot=x"] {
            assert_eq!(read(bad, &[]), Err(ErrorCode::InvalidQueryParameterValue), "{bad}");
        }
        let newer = read("prevsnapshot=2021-08-28T02:12:43.5551231Z", &[]);
        assert_eq!(newer, Err(ErrorCode::PreviousSnapshotCannotBeNewer));
    }
}
