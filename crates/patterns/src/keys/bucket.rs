//! Prefixes that spread keys over partitions: a hash, or one of a fixed number of buckets.
//!
//! Keys that grow with time all land at the end of the table, in one partition after the other. A prefix computed from
//! the value spreads them, and a reader that knows the value computes the same prefix. Within one bucket the order stays.

use super::{KeyError, compose};

/// More buckets than this mean more requests for a reader of all of them than any program wants to send.
pub const BUCKET_COUNT_MAX: u16 = 1000;
/// The digits of a bucket's name.
const BUCKET_WIDTH: usize = 3;
/// The hexadecimal digits of a whole hash.
const HASH_WIDTH: usize = 16;

/// A hash of 64 bits (FNV-1a, then mixed). It is part of stored keys, so it never changes.
pub fn stable_hash(value: &str) -> u64 {
    const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    let hash = value.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    // FNV leaves the high bits of short texts alike; the finaliser of MurmurHash3 spreads them.
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

/// The bucket of a value: below `count`, which is from 1 to [`BUCKET_COUNT_MAX`].
pub fn bucket(value: &str, count: u16) -> Result<u16, KeyError> {
    if !(1..=BUCKET_COUNT_MAX).contains(&count) {
        return Err(KeyError::new(format!(
            "{count} is not a number of buckets from 1 to {BUCKET_COUNT_MAX}"
        )));
    }
    let bucket = stable_hash(value) % u64::from(count);
    Ok(u16::try_from(bucket).expect("less than count, which is a u16"))
}

/// The name of a bucket: three digits.
pub fn bucket_name(bucket: u16) -> String {
    format!("{bucket:0BUCKET_WIDTH$}")
}

/// The names of all buckets, for a reader that asks each of them.
pub fn bucket_names(count: u16) -> impl Iterator<Item = String> {
    (0..count.min(BUCKET_COUNT_MAX)).map(bucket_name)
}

/// A key in one of `count` buckets: the bucket, then the value.
///
/// ```
/// use lazulite_patterns::keys::bucketed;
///
/// assert_eq!(bucketed("2026-01-31", 16)?, "007!2026-01-31");
/// # Ok::<(), lazulite_patterns::keys::KeyError>(())
/// ```
pub fn bucketed(value: &str, count: u16) -> Result<String, KeyError> {
    Ok(compose([bucket_name(bucket(value, count)?).as_str(), value]))
}

/// A key with the first digits of the value's hash before it. More digits make more partitions of keys; from 1 to 16.
///
/// ```
/// use lazulite_patterns::keys::hashed;
///
/// assert_eq!(hashed("000223", 4)?, "ad20!000223");
/// # Ok::<(), lazulite_patterns::keys::KeyError>(())
/// ```
pub fn hashed(value: &str, digits: usize) -> Result<String, KeyError> {
    if !(1..=HASH_WIDTH).contains(&digits) {
        return Err(KeyError::new(format!("{digits} is not a number of digits from 1 to {HASH_WIDTH}")));
    }
    let hash = format!("{:0HASH_WIDTH$x}", stable_hash(value));
    Ok(compose([&hash[..digits], value]))
}
