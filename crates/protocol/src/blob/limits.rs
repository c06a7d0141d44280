//! How large and how many things may be, by version.

use super::versions;
use crate::{ErrorCode, ServiceError};

const MIB: u64 = 1024 * 1024;

/// Pages begin and end at multiples of this.
pub const PAGE_BYTES: u64 = 512;
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * 1024 * 1024 * MIB;
/// Of one Put Page.
pub const PAGE_WRITE_BYTES_MAX: u64 = 4 * MIB;
pub const COMMITTED_BLOCK_COUNT_MAX: usize = 50_000;
pub const UNCOMMITTED_BLOCK_COUNT_MAX: usize = 100_000;
pub const APPEND_COUNT_MAX: u32 = 50_000;
/// The longest range whose checksum a read returns.
pub(crate) const RANGE_CHECKSUM_BYTES_MAX: u64 = 4 * MIB;
/// The largest source of a synchronous Copy Blob From URL.
pub const SYNC_COPY_BYTES_MAX: u64 = 256 * MIB;
pub const COPY_SOURCE_BYTES_MAX: usize = 2 * 1024;
pub(crate) const PAGE_RANGE_COUNT_MAX: usize = 10_000;
pub(crate) const BATCH_REQUEST_COUNT_MAX: usize = 256;
pub(crate) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The largest body of Put Blob and Put Blob From URL.
pub fn put_blob_bytes_max(version: &str) -> u64 {
    stepped(version, 5000, 256, 64)
}

/// The largest block.
pub fn block_bytes_max(version: &str) -> u64 {
    stepped(version, 4000, 100, 4)
}

/// The largest block that can be appended.
pub fn append_bytes_max(version: &str) -> u64 {
    if version >= versions::LARGE_APPENDS { 100 * MIB } else { 4 * MIB }
}

fn stepped(version: &str, huge: u64, large: u64, small: u64) -> u64 {
    let mebibytes = match version {
        _ if version >= versions::HUGE_BLOCKS => huge,
        _ if version >= versions::LARGE_BLOCKS => large,
        _ => small,
    };
    mebibytes * MIB
}

/// The refusal of a body that is longer than this.
pub fn body_too_large(bytes_max: u64) -> ServiceError {
    ServiceError::from(ErrorCode::RequestBodyTooLarge).with_element("MaxLimit", bytes_max.to_string())
}

/// The refusal of one more staged block.
pub fn too_many_uncommitted_blocks() -> ServiceError {
    ServiceError::with_detail(
        ErrorCode::BlockCountExceedsLimit,
        "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_with_the_version() {
        let check = |version: &str, put: u64, block: u64, append: u64| {
            let found = (put_blob_bytes_max(version), block_bytes_max(version), append_bytes_max(version));
            assert_eq!(found, (put * MIB, block * MIB, append * MIB), "{version}");
        };
        check("2015-12-11", 64, 4, 4);
        check("2016-05-31", 256, 100, 4);
        check("2019-07-07", 256, 100, 4);
        check("2019-12-12", 5000, 4000, 4);
        check("2022-11-02", 5000, 4000, 100);
        let refusal = body_too_large(PAGE_WRITE_BYTES_MAX);
        assert_eq!(refusal.elements().collect::<Vec<_>>(), [("MaxLimit", "4194304")]);
    }
}
