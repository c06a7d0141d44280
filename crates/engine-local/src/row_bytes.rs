//! A row as bytes in the tree: `version (u64, little-endian) · crc32 (u32, little-endian) · payload`.
//!
//! The checksum covers the encoded key, the version and the payload, so a value under the wrong key is found like a
//! flipped bit. Promises: [`read`] returns what [`write`] was given.

use std::fmt;

use engine::Version;
use engine::keys;

const VERSION_SIZE_BYTES: usize = 8;
const CHECKSUM_SIZE_BYTES: usize = 4;

pub fn size_bytes(payload: &[u8]) -> usize {
    VERSION_SIZE_BYTES + CHECKSUM_SIZE_BYTES + payload.len()
}

/// Fills `out`, which must have the [`size_bytes`] of the payload.
pub fn write(out: &mut [u8], key: &[u8], version: Version, payload: &[u8]) {
    let version = version.ticks().to_le_bytes();
    let (head, tail) = out.split_at_mut(VERSION_SIZE_BYTES);
    let (checksum, body) = tail.split_at_mut(CHECKSUM_SIZE_BYTES);
    head.copy_from_slice(&version);
    checksum.copy_from_slice(&crc32(key, &version, payload).to_le_bytes());
    body.copy_from_slice(payload);
}

pub fn read<'a>(key: &[u8], stored: &'a [u8]) -> Result<(Version, &'a [u8]), Damage> {
    let damage = || Damage(keys::describe(key));
    let (head, checksum, payload) = cut(stored).ok_or_else(damage)?;
    if crc32(key, head, payload) != u32::from_le_bytes(*checksum) {
        return Err(damage());
    }
    let version = Version::new(u64::from_le_bytes(*head)).ok_or_else(damage)?;
    Ok((version, payload))
}

/// As [`read`], without comparing the checksum. `None` only where [`read`] fails.
#[inline]
pub fn peek(stored: &[u8]) -> Option<(Version, &[u8])> {
    let (head, _, payload) = cut(stored)?;
    Some((Version::new(u64::from_le_bytes(*head))?, payload))
}

type CutRow<'a> = (&'a [u8; VERSION_SIZE_BYTES], &'a [u8; CHECKSUM_SIZE_BYTES], &'a [u8]);

fn cut(stored: &[u8]) -> Option<CutRow<'_>> {
    let (head, tail) = stored.split_first_chunk::<VERSION_SIZE_BYTES>()?;
    let (checksum, payload) = tail.split_first_chunk::<CHECKSUM_SIZE_BYTES>()?;
    Some((head, checksum, payload))
}

/// A stored row that is damaged; says which one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the stored row does not match its checksum", self.0)
    }
}

fn crc32(key: &[u8], version: &[u8; VERSION_SIZE_BYTES], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(version);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::TableId;
    use engine::keys::Key;

    fn sample() -> (Vec<u8>, Vec<u8>) {
        let key = keys::encode(TableId(16), Key { partition: "p", row: "r" });
        let mut stored = vec![0; size_bytes(b"payload")];
        write(&mut stored, &key, Version::new(0x0102_0304).unwrap(), b"payload");
        (key, stored)
    }

    #[test]
    fn the_form_is_as_documented() {
        let (key, stored) = sample();
        assert_eq!(stored[..8], [4, 3, 2, 1, 0, 0, 0, 0]);
        let whole = [&key[..], &stored[..8], b"payload"].concat();
        assert_eq!(stored[8..12], crc32fast::hash(&whole).to_le_bytes());
        assert_eq!(&stored[12..], b"payload");
        assert_eq!(read(&key, &stored), Ok((Version::new(0x0102_0304).unwrap(), &b"payload"[..])));
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_damage() {
        let (key, stored) = sample();
        for bit in 0..stored.len() * 8 {
            let mut flipped = stored.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&key, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..stored.len() {
            assert!(read(&key, &stored[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn a_value_under_another_key_is_damage_and_names_the_key() {
        let (_, stored) = sample();
        let other = keys::encode(TableId(16), Key { partition: "p", row: "other" });
        let damage = read(&other, &stored).unwrap_err().to_string();
        assert!(damage.contains("table 16") && damage.contains("\"other\""), "{damage}");
    }
}
