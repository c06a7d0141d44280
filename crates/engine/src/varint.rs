//! Lengths as bytes: seven bits a byte, lowest first; the high bit says that more follow.
//!
//! Used by everything that puts lengths on the disk. Inlined, because records are read once per row of a scan.

/// A first byte below this is the whole number.
pub const LONG: u8 = 0x80;

/// How many bytes [`push`] adds.
#[inline]
pub fn size_bytes(number: usize) -> usize {
    (number | 1).ilog2() as usize / 7 + 1
}

#[inline]
pub fn push(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front. `None`: the bytes end too early, or the number has more than 35 bits.
#[inline]
pub fn pull(bytes: &mut &[u8]) -> Option<usize> {
    match *bytes {
        // Most lengths are short.
        [byte, rest @ ..] if *byte < LONG => {
            *bytes = rest;
            Some(usize::from(*byte))
        }
        _ => {
            let (number, rest) = pull_long(bytes)?;
            *bytes = rest;
            Some(number)
        }
    }
}

/// By value, so that the caller can keep its slice in registers.
fn pull_long(mut bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0usize;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        bytes = rest;
        number |= usize::from(byte & 0x7F) << shift;
        if *byte < LONG {
            return Some((number, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_pulled_and_takes_the_bytes_it_said() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, u32::MAX as usize] {
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            assert_eq!(bytes.len(), size_bytes(number), "{number}");
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!((pull(&mut rest), rest), (Some(number), &[7][..]));
            for cut in 0..bytes.len() - 1 {
                assert_eq!(pull(&mut &bytes[..cut]), None, "{number} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_number_that_does_not_end_is_refused() {
        assert_eq!(pull(&mut &[0xff; 20][..]), None);
    }
}
