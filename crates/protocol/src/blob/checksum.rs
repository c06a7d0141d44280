//! Checksums of content: MD5 and CRC-64, in headers, and computed piece by piece.
//!
//! The CRC is that of NVMe: polynomial 0xAD93D23594C93659, reflected, all ones before and after. Headers have its eight
//! bytes in little-endian order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest as CrcDigest};
use md5::{Digest as _, Md5 as Md5Digest};

use crate::common::headers::invalid_header;
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;

const ALGORITHM: CrcAlgorithm = CrcAlgorithm::Crc64Nvme;

pub type Md5 = [u8; 16];

/// The CRC-64 of some content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crc64(pub u64);

impl Crc64 {
    /// The header `x-ms-content-crc64`.
    pub fn to_header(self) -> String {
        STANDARD.encode(self.0.to_le_bytes())
    }

    pub fn parse(text: &str) -> Option<Crc64> {
        let bytes = STANDARD.decode(text).ok()?;
        Some(Crc64(u64::from_le_bytes(bytes.try_into().ok()?)))
    }
}

/// The header `Content-MD5`.
pub fn md5_to_header(md5: &Md5) -> String {
    STANDARD.encode(md5)
}

pub(crate) fn parse_md5(text: &str) -> Result<Md5, ServiceError> {
    let bytes = STANDARD.decode(text).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| ErrorCode::InvalidMd5.into())
}

/// What a caller says the content's checksums are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExpectedChecksums {
    pub md5: Option<Md5>,
    /// A second one, where a request may say twice what it is. Checked too.
    pub stored_md5: Option<Md5>,
    pub crc64: Option<Crc64>,
}

impl ExpectedChecksums {
    /// Those of the body.
    pub fn read(headers: &Headers<'_>) -> Result<ExpectedChecksums, ServiceError> {
        ExpectedChecksums::read_named(headers, "content-md5", "x-ms-content-crc64")
    }

    /// Those of Put Blob: the checksum to store is checked too, as if it were that of the body.
    pub fn read_put(headers: &Headers<'_>) -> Result<ExpectedChecksums, ServiceError> {
        let stored_md5 = headers.get("x-ms-blob-content-md5").map(parse_md5).transpose()?;
        Ok(ExpectedChecksums { stored_md5, ..ExpectedChecksums::read(headers)? })
    }

    /// Those of the bytes that are read from the source of a copy.
    pub fn read_source(headers: &Headers<'_>) -> Result<ExpectedChecksums, ServiceError> {
        ExpectedChecksums::read_named(headers, "x-ms-source-content-md5", "x-ms-source-content-crc64")
    }

    fn read_named(
        headers: &Headers<'_>,
        md5: &'static str,
        crc64: &'static str,
    ) -> Result<ExpectedChecksums, ServiceError> {
        if headers.has(md5) && headers.has(crc64) {
            return Err(ErrorCode::BothCrc64AndMd5HeaderPresent.into());
        }
        let crc =
            headers.get(crc64).map(|sent| Crc64::parse(sent).ok_or_else(|| invalid_header(crc64, sent)));
        let md5 = headers.get(md5).map(parse_md5).transpose()?;
        Ok(ExpectedChecksums { md5, stored_md5: None, crc64: crc.transpose()? })
    }

    pub fn has_md5(&self) -> bool {
        self.md5.is_some() || self.stored_md5.is_some()
    }

    /// Refuses content with other checksums. What was not computed is not compared.
    pub fn check(&self, found: &Checksums) -> Result<(), ServiceError> {
        for expected in [&self.md5, &self.stored_md5].into_iter().flatten() {
            if let Some(found) = &found.md5
                && expected != found
            {
                return Err(ServiceError::from(ErrorCode::Md5Mismatch)
                    .with_element("UserSpecifiedMd5", md5_to_header(expected))
                    .with_element("ServerCalculatedMd5", md5_to_header(found)));
            }
        }
        if let (Some(expected), Some(found)) = (self.crc64, found.crc64)
            && expected != found
        {
            return Err(ServiceError::from(ErrorCode::Crc64Mismatch)
                .with_element("UserSpecifiedCrc", expected.to_header())
                .with_element("ServerCalculatedCrc", found.to_header()));
        }
        Ok(())
    }
}

/// The checksums of some content, as far as they were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checksums {
    pub md5: Option<Md5>,
    pub crc64: Option<Crc64>,
}

/// Computes checksums while content passes by.
pub struct ContentDigest {
    md5: Option<Md5Digest>,
    crc64: Option<CrcDigest>,
}

impl ContentDigest {
    /// MD5 costs much more than CRC-64, so it is computed only where somebody sees it.
    pub fn new(with_md5: bool, with_crc64: bool) -> ContentDigest {
        ContentDigest {
            md5: with_md5.then(Md5Digest::new),
            crc64: with_crc64.then(|| CrcDigest::new(ALGORITHM)),
        }
    }

    pub fn update(&mut self, piece: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(piece);
        }
        if let Some(crc64) = &mut self.crc64 {
            crc64.update(piece);
        }
    }

    pub fn finish(self) -> Checksums {
        Checksums {
            md5: self.md5.map(|digest| digest.finalize().into()),
            crc64: self.crc64.map(|digest| Crc64(digest.finalize())),
        }
    }

    /// The checksums of content that is all there.
    pub fn of(content: &[u8], with_md5: bool, with_crc64: bool) -> Checksums {
        let mut digest = ContentDigest::new(with_md5, with_crc64);
        digest.update(content);
        digest.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc(content: &str) -> Crc64 {
        ContentDigest::of(content.as_bytes(), false, true).crc64.unwrap()
    }

    /// The vectors of section 12.3, and those in the examples of section 17.
    #[test]
    fn the_published_vectors_are_computed() {
        for (content, number, header) in [
            ("", 0, "AAAAAAAAAAA="),
            ("hello world", 0x8d29_d5c3_f6ea_8ebe, "vo7q9sPVKY0="),
            ("AAA", 0xa8b8_03be_2af6_cf09, "Cc/2Kr4DuKg="),
            ("123456789", 0xae8b_1486_0a79_9888, "iJh5CoYUi64="),
        ] {
            assert_eq!((crc(content).0, &*crc(content).to_header()), (number, header), "{content}");
            assert_eq!(Crc64::parse(header), Some(crc(content)));
        }
        assert_eq!(crc("Hello World").to_header(), "YeJLfssylmU=");
        assert_eq!(crc("HelloWorld").to_header(), "8R2aIe9T07E=");
        let list = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><BlockList><Latest>Mg==</Latest></BlockList>";
        assert_eq!((list.len(), &*crc(list).to_header()), (99, "9VozlWcmhh8="));
        let md5 = |content: &str| ContentDigest::of(content.as_bytes(), true, false).md5.unwrap();
        assert_eq!(md5_to_header(&md5("hello world")), "XrY7u+Ae7tCTyyK7j1rNww==");
        assert_eq!(md5_to_header(&md5("e")), "4WcXl8UuFfdjOAtF6EHsMg==");
    }

    #[test]
    fn pieces_add_up() {
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at * 7 / 3) as u8).collect();
        let whole = ContentDigest::of(&content, true, true);
        for step in [1, 13, 4096, 65_536] {
            let mut digest = ContentDigest::new(true, true);
            content.chunks(step).for_each(|piece| digest.update(piece));
            assert_eq!(digest.finish(), whole, "{step}");
        }
    }

    #[test]
    fn mismatches_tell_both_values() {
        let headers: Headers<'_> = [("Content-MD5", "sQqNsWTgdUEFt6mb5y4/5Q==")].into_iter().collect();
        let expected = ExpectedChecksums::read(&headers).unwrap();
        let hello = ContentDigest::of(b"hello world", true, true);
        let error = expected.check(&hello).unwrap_err();
        assert_eq!(error.code, ErrorCode::Md5Mismatch);
        assert_eq!(
            error.elements().collect::<Vec<_>>(),
            [
                ("UserSpecifiedMd5", "sQqNsWTgdUEFt6mb5y4/5Q=="),
                ("ServerCalculatedMd5", "XrY7u+Ae7tCTyyK7j1rNww==")
            ]
        );
        assert!(expected.check(&ContentDigest::of(b"Hello World", true, false)).is_ok());
        let headers: Headers<'_> = [("x-ms-source-content-crc64", "Cc/2Kr4DuKg=")].into_iter().collect();
        let error = ExpectedChecksums::read_source(&headers).unwrap().check(&hello).unwrap_err();
        assert_eq!(error.code, ErrorCode::Crc64Mismatch);
        assert_eq!(
            error.elements().collect::<Vec<_>>(),
            [("UserSpecifiedCrc", "Cc/2Kr4DuKg="), ("ServerCalculatedCrc", "vo7q9sPVKY0=")]
        );
    }

    #[test]
    fn wrong_headers_are_refused() {
        let code = |headers: &[(&'static str, &'static str)]| {
            ExpectedChecksums::read_put(&headers.iter().copied().collect()).map_err(|error| error.code)
        };
        assert_eq!(code(&[("content-md5", "abc")]), Err(ErrorCode::InvalidMd5));
        assert_eq!(code(&[("content-md5", "AAAAAAAAAAA=")]), Err(ErrorCode::InvalidMd5));
        assert_eq!(code(&[("x-ms-blob-content-md5", "x")]), Err(ErrorCode::InvalidMd5));
        assert_eq!(code(&[("x-ms-content-crc64", "AAAA")]), Err(ErrorCode::InvalidHeaderValue));
        let both = [("content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="), ("x-ms-content-crc64", "AAAAAAAAAAA=")];
        assert_eq!(code(&both), Err(ErrorCode::BothCrc64AndMd5HeaderPresent));
        assert!(code(&[("x-ms-blob-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")]).unwrap().has_md5());
    }

    #[test]
    fn put_blob_checks_both_values() {
        let (hello, other) = ("XrY7u+Ae7tCTyyK7j1rNww==", "sQqNsWTgdUEFt6mb5y4/5Q==");
        let found = ContentDigest::of(b"hello world", true, false);
        for (plain, stored, is_right) in [(hello, hello, true), (hello, other, false), (other, hello, false)]
        {
            let headers = [("content-md5", plain), ("x-ms-blob-content-md5", stored)];
            let expected = ExpectedChecksums::read_put(&headers.into_iter().collect()).unwrap();
            let wrong = expected.check(&found).err().map(|error| error.code);
            assert_eq!(wrong, (!is_right).then_some(ErrorCode::Md5Mismatch), "{plain} {stored}");
        }
    }
}
