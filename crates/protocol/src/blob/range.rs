//! Ranges of bytes: those of reads, which are cut at the end of the blob, and those of pages, which are exact.

use std::ops::Range;

use crate::common::headers::{invalid_header, missing_header};
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;
use super::limits::{PAGE_BYTES, RANGE_CHECKSUM_BYTES_MAX};

/// `bytes=FIRST-` or `bytes=FIRST-LAST`, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteRange {
    pub first: u64,
    pub last: Option<u64>,
}

/// The header for the range of a request. It wins over the standard one.
const OWN: &str = "x-ms-range";
const STANDARD: &str = "range";
const SOURCE: &str = "x-ms-source-range";

impl ByteRange {
    /// The range of a read, if it has one.
    pub fn read(headers: &Headers<'_>) -> Result<Option<ByteRange>, ServiceError> {
        Ok(read_any(headers, &[OWN, STANDARD])?.map(|(range, ..)| range))
    }

    /// The range of the source of a copy.
    pub fn read_source(headers: &Headers<'_>) -> Result<Option<ByteRange>, ServiceError> {
        Ok(read_any(headers, &[SOURCE])?.map(|(range, ..)| range))
    }

    fn parse(text: &str) -> Option<ByteRange> {
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.split_once('-')?;
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            // A number that is too large to count is beyond every end.
            is_number.then(|| digits.parse().unwrap_or(u64::MAX))
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let first = number(first.trim())?;
        let last = Some(last.trim()).filter(|last| !last.is_empty());
        let last = match last {
            Some(last) => Some(number(last).filter(|last| *last >= first)?),
            None => None,
        };
        Some(ByteRange { first, last })
    }

    /// The bytes of a blob of this size that the range covers. A range that begins behind the end is refused, also that
    /// of an empty blob; the answer then has [`unsatisfied_range`].
    pub fn within(self, size: u64) -> Result<Range<u64>, ServiceError> {
        if self.first >= size {
            return Err(ErrorCode::InvalidRange.into());
        }
        let end = self.last.map_or(size, |last| last.saturating_add(1).min(size));
        Ok(self.first..end)
    }
}

/// The header `Content-Range` of an answer with a part of a blob.
pub fn content_range(range: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1))
}

/// The header `Content-Range` of a refusal with [`ErrorCode::InvalidRange`].
pub fn unsatisfied_range(size: u64) -> String {
    format!("bytes */{size}")
}

/// The range of Put Page, which it needs: whole pages with both ends.
pub fn read_pages(headers: &Headers<'_>) -> Result<Range<u64>, ServiceError> {
    let (range, name, sent) = read_any(headers, &[OWN, STANDARD])?.ok_or_else(|| missing_header(OWN))?;
    whole_pages(range).ok_or_else(|| invalid_header(name, sent))
}

/// The range of the source of Put Page From URL: as many bytes as the pages.
pub fn read_source_pages(headers: &Headers<'_>, pages: &Range<u64>) -> Result<Range<u64>, ServiceError> {
    let (range, name, sent) = read_any(headers, &[SOURCE])?.ok_or_else(|| missing_header(SOURCE))?;
    let last = range.last.ok_or_else(|| invalid_header(name, sent))?;
    let source = range.first..last.saturating_add(1);
    if source.end - source.start == pages.end - pages.start {
        Ok(source)
    } else {
        Err(invalid_header(name, sent))
    }
}

/// Refuses pages that are not all within a blob of this size.
pub fn check_pages(pages: &Range<u64>, size: u64) -> Result<(), ServiceError> {
    if pages.end <= size { Ok(()) } else { Err(ErrorCode::InvalidPageRange.into()) }
}

fn whole_pages(range: ByteRange) -> Option<Range<u64>> {
    let end = range.last?.checked_add(1)?;
    (range.first.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES)).then_some(range.first..end)
}

/// The first of these headers that is there, with its name and its text.
fn read_any<'h>(
    headers: &Headers<'h>,
    names: &[&'static str],
) -> Result<Option<(ByteRange, &'static str, &'h str)>, ServiceError> {
    for name in names {
        if let Some(sent) = headers.get(name) {
            let range = ByteRange::parse(sent).ok_or_else(|| invalid_header(name, sent))?;
            return Ok(Some((range, name, sent)));
        }
    }
    Ok(None)
}

/// Which checksum of a range the caller wants with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeChecksum {
    Md5,
    Crc64,
}

const RANGE_MD5: &str = "x-ms-range-get-content-md5";
const RANGE_CRC64: &str = "x-ms-range-get-content-crc64";

impl RangeChecksum {
    pub fn read(headers: &Headers<'_>) -> Result<Option<RangeChecksum>, ServiceError> {
        match (headers.flag(RANGE_MD5)?, headers.flag(RANGE_CRC64)?) {
            (false, false) => Ok(None),
            (true, false) => Ok(Some(RangeChecksum::Md5)),
            (false, true) => Ok(Some(RangeChecksum::Crc64)),
            (true, true) => Err(ErrorCode::BothCrc64AndMd5RangeHeaderPresent.into()),
        }
    }

    /// Refuses a read without a range, and one of too long a range.
    pub fn check(self, range: Option<&Range<u64>>) -> Result<(), ServiceError> {
        let is_short = |range: &Range<u64>| range.end - range.start <= RANGE_CHECKSUM_BYTES_MAX;
        if range.is_some_and(is_short) {
            return Ok(());
        }
        let name = if self == RangeChecksum::Md5 { RANGE_MD5 } else { RANGE_CRC64 };
        Err(invalid_header(name, "true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &'static str) -> Headers<'static> {
        [("Range", text)].into_iter().collect()
    }

    #[track_caller]
    fn check(text: &'static str, size: u64, expected: Result<&str, ErrorCode>) {
        let read = || -> Result<String, ServiceError> {
            match ByteRange::read(&headers(text))? {
                Some(range) => Ok(content_range(&range.within(size)?, size)),
                None => Ok("whole".to_owned()),
            }
        };
        let found = read().map_err(|error| error.code);
        assert_eq!(found.as_deref().map_err(|code| *code), expected, "{text} {size}");
    }

    #[test]
    fn ranges_are_cut_at_the_end() {
        check("bytes=0-33554431", 1024, Ok("bytes 0-1023/1024"));
        check("bytes=1-1", 11, Ok("bytes 1-1/11"));
        check("bytes=0-", 11, Ok("bytes 0-10/11"));
        check("bytes=10-", 11, Ok("bytes 10-10/11"));
        check("Bytes = 1 - 2 ", 11, Ok("bytes 1-2/11"));
        check("bytes=0-99999999999999999999", 11, Ok("bytes 0-10/11"));
        check("", 11, Ok("whole"));
        check("bytes=11-", 11, Err(ErrorCode::InvalidRange));
        check("bytes=0-33554431", 0, Err(ErrorCode::InvalidRange));
        check("bytes=99999999999999999999-", 11, Err(ErrorCode::InvalidRange));
        for bad in
            ["bytes=-5", "bytes=2-1", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes", "bytes=+1-2", "0-1"]
        {
            check(bad, 11, Err(ErrorCode::InvalidHeaderValue));
        }
        assert_eq!(ErrorCode::InvalidRange.status(), 416);
        assert_eq!(unsatisfied_range(0), "bytes */0");
    }

    #[test]
    fn the_own_header_wins() {
        let both: Headers<'_> = [("Range", "bytes=0-1"), ("x-ms-range", "bytes=5-6")].into_iter().collect();
        assert_eq!(ByteRange::read(&both).unwrap(), Some(ByteRange { first: 5, last: Some(6) }));
        let error = ByteRange::read(&[("x-ms-range", "x")].into_iter().collect()).unwrap_err();
        assert_eq!(
            error.elements().collect::<Vec<_>>(),
            [("HeaderName", "x-ms-range"), ("HeaderValue", "x")]
        );
    }

    #[test]
    fn pages_are_whole_and_within() {
        let read = |text| read_pages(&headers(text)).map_err(|error| error.code);
        assert_eq!(read("bytes=0-511"), Ok(0..512));
        assert_eq!(read("bytes=512-1535"), Ok(512..1536));
        for bad in ["bytes=0-", "bytes=1-511", "bytes=0-512", "bytes=512-511"] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidHeaderValue), "{bad}");
        }
        assert_eq!(read(""), Err(ErrorCode::MissingRequiredHeader));
        assert!(check_pages(&(0..2048), 2048).is_ok());
        assert_eq!(check_pages(&(2048..2560), 2048).unwrap_err().code, ErrorCode::InvalidPageRange);

        let source = |text: &'static str| {
            let headers: Headers<'_> = [("x-ms-source-range", text)].into_iter().collect();
            read_source_pages(&headers, &(512..1024)).map_err(|error| error.code)
        };
        assert_eq!(source("bytes=0-511"), Ok(0..512));
        assert_eq!(source("bytes=7-518"), Ok(7..519));
        assert_eq!(source("bytes=0-1023"), Err(ErrorCode::InvalidHeaderValue));
        assert_eq!(source("bytes=0-"), Err(ErrorCode::InvalidHeaderValue));
        assert_eq!(source(""), Err(ErrorCode::MissingRequiredHeader));
    }

    #[test]
    fn the_checksum_of_a_range_needs_a_short_range() {
        let md5: Headers<'_> = [(RANGE_MD5, "true")].into_iter().collect();
        assert_eq!(RangeChecksum::read(&md5).unwrap(), Some(RangeChecksum::Md5));
        let both: Headers<'_> = [(RANGE_MD5, "true"), (RANGE_CRC64, "True")].into_iter().collect();
        let error = RangeChecksum::read(&both).unwrap_err();
        assert_eq!(error.code, ErrorCode::BothCrc64AndMd5RangeHeaderPresent);
        assert!(RangeChecksum::Md5.check(Some(&(0..4_194_304))).is_ok());
        for range in [None, Some(&(0..4_194_305))] {
            let error = RangeChecksum::Crc64.check(range).unwrap_err();
            assert_eq!(error.elements().next(), Some(("HeaderName", RANGE_CRC64)));
        }
    }
}
