//! Integers as decimal digits, two at a time, in a buffer on the stack: a page writes tens of thousands of them.

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

/// The last two digits of a number.
pub fn pair(number: u64) -> [u8; 2] {
    PAIRS[(number % 100) as usize]
}

/// The digits of the largest u64.
const DIGIT_COUNT_MAX: usize = 20;

pub(crate) struct Digits {
    text: [u8; DIGIT_COUNT_MAX],
    start: usize,
}

impl Digits {
    pub fn new(mut number: u64) -> Digits {
        let mut text = [b'0'; DIGIT_COUNT_MAX];
        let mut start = DIGIT_COUNT_MAX;
        while number >= 10 {
            start -= 2;
            text[start..start + 2].copy_from_slice(&pair(number));
            number /= 100;
        }
        if number > 0 || start == DIGIT_COUNT_MAX {
            start -= 1;
            text[start] = b'0' + number as u8;
        }
        Digits { text, start }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }
}

pub(crate) fn write_integer(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(Digits::new(value.unsigned_abs()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_everybody_writes_them() {
        let powers = (0..19).map(|exponent| 10i64.pow(exponent));
        let values = powers.flat_map(|power| [power - 1, power, power + 1, -power, 1 - power, power * 7]);
        for value in values.chain([0, i64::MIN, i64::MAX, i64::MIN + 1]) {
            let mut out = Vec::new();
            write_integer(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
        assert_eq!(Digits::new(u64::MAX).as_bytes(), u64::MAX.to_string().as_bytes());
    }
}
