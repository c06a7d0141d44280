//! The text of an Edm.Double: .NET's round-trip format, always with a point or an exponent.

use std::fmt::Write;

use crate::common::decimal::Digits;

/// Writes 15 significant digits if they read back as the same number, otherwise 17. Uses an exponent outside of 1E-5 <
/// |x| < 1E15, and adds `.0` where the text would otherwise look like an Int32. NaN and the infinities are strings in
/// JSON; their text comes from here too.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        let text = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        out.extend_from_slice(text.as_bytes());
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if write_short(value.abs(), out) {
        return;
    }
    let mut scratch = Scratch::default();
    let (digits, exponent) = scratch.decimal(value.abs());
    if exponent <= -5 || exponent >= 15 {
        write_scientific(digits, exponent, out);
    } else {
        write_plain(digits, exponent, out);
    }
}

const SHORT_POWERS: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];

/// Fast path for numbers with few digits after the point, such as prices and measurements. Returns `false` for all
/// others.
///
/// The digits, taken as one integer below 1E15, and the power of ten are both exact, so their quotient is the number
/// that the text reads back as. No two texts of at most 15 digits read back as the same number, so this text is the
/// right one.
fn write_short(value: f64, out: &mut Vec<u8>) -> bool {
    for (places, power) in SHORT_POWERS.into_iter().enumerate() {
        let scaled = (value * power).round();
        if scaled >= 1e15 {
            return false;
        }
        if scaled / power != value {
            continue;
        }
        let digits = Digits::new(scaled as u64);
        let digits = digits.as_bytes();
        // Smaller numbers are written with an exponent.
        if digits.len() + 4 <= places {
            return false;
        }
        if places == 0 {
            out.extend_from_slice(digits);
            out.extend_from_slice(b".0");
        } else if digits.len() <= places {
            out.extend_from_slice(&b"0.00000"[..2 + places - digits.len()]);
            out.extend_from_slice(digits);
        } else {
            let (whole, fraction) = digits.split_at(digits.len() - places);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        return true;
    }
    false
}

/// Room on the stack for `d.dddddddddddddddde-ddd`.
#[derive(Default)]
struct Scratch {
    text: [u8; 32],
    len: usize,
}

impl Write for Scratch {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let room = self.text.get_mut(self.len..self.len + s.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

impl Scratch {
    /// The significant digits, without trailing zeros, and the decimal exponent of the first one.
    fn decimal(&mut self, value: f64) -> (&[u8], i32) {
        // If the shortest digits that read back are at most 15, they equal the rounding to 15 digits. Subnormal numbers
        // are the exception: most of their 15 digits are artefacts of the conversion.
        self.format(format_args!("{value:e}"));
        if value.is_subnormal() {
            self.format(format_args!("{value:.14e}"));
            let reads_back =
                std::str::from_utf8(&self.text[..self.len]).is_ok_and(|text| text.parse() == Ok(value));
            if !reads_back {
                self.format(format_args!("{value:.16e}"));
            }
        } else if self.digit_count() > 15 {
            self.format(format_args!("{value:.16e}"));
        }
        self.split()
    }

    fn format(&mut self, text: std::fmt::Arguments<'_>) {
        self.len = 0;
        self.write_fmt(text).expect("a double in exponent form has at most 24 characters");
    }

    fn mantissa_len(&self) -> usize {
        self.text[..self.len].iter().position(|byte| *byte == b'e').unwrap_or(self.len)
    }

    fn digit_count(&self) -> usize {
        self.mantissa_len() - usize::from(self.text[1] == b'.')
    }

    fn split(&mut self) -> (&[u8], i32) {
        let mantissa_len = self.mantissa_len();
        let exponent_text = std::str::from_utf8(&self.text[(mantissa_len + 1).min(self.len)..self.len]);
        let exponent = exponent_text.ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut end = mantissa_len;
        if self.text[1] == b'.' {
            self.text.copy_within(2..mantissa_len, 1);
            end -= 1;
        }
        while end > 1 && self.text[end - 1] == b'0' {
            end -= 1;
        }
        (&self.text[..end], exponent)
    }
}

fn write_scientific(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.extend_from_slice(format!("E{sign}{:02}", exponent.abs()).as_bytes());
}

fn write_plain(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits);
        return;
    }
    let whole_len = exponent as usize + 1;
    out.extend(digits.iter().copied().chain(std::iter::repeat(b'0')).take(whole_len));
    out.push(b'.');
    match digits.get(whole_len..) {
        Some(fraction) if !fraction.is_empty() => out.extend_from_slice(fraction),
        _ => out.push(b'0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        write_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_written_as_the_service_writes_them() {
        let cases: &[(f64, &str)] = &[
            (3.1, "3.1"),
            (3.0, "3.0"),
            (4.81516, "4.81516"),
            (123456789012345.12, "123456789012345.12"),
            (f64::MAX, "1.7976931348623157E+308"),
            (f64::MIN, "-1.7976931348623157E+308"),
            (5e-324, "4.94065645841247E-324"),
            (10.0, "10.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e-5, "1E-05"),
            (0.0001, "0.0001"),
            (1e15, "1E+15"),
            (1e14, "100000000000000.0"),
            (1.5e300, "1.5E+300"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(*value), *expected);
        }
    }

    #[test]
    fn short_numbers_are_written_as_the_long_way_writes_them() {
        let mut seed = 1u64;
        let mut short_count = 0;
        for round in 0..400_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let whole = (seed >> 12) >> (seed % 52);
            let value = whole as f64 / 10f64.powi((round % 12) as i32);
            let (mut short, mut long) = (Vec::new(), Vec::new());
            if write_short(value, &mut short) {
                let mut scratch = Scratch::default();
                let (digits, exponent) = scratch.decimal(value);
                assert!((-4..15).contains(&exponent), "{value:e}");
                write_plain(digits, exponent, &mut long);
                assert_eq!(short, long, "{value:e}");
                short_count += 1;
            } else {
                assert_eq!(short, long, "nothing is written");
            }
        }
        assert!(short_count > 100_000, "{short_count}");
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_number() {
        let mut bits = 0x9E37_79B9_7F4A_7C15u64;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = text(value);
                assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
                assert!(text.contains(['.', 'E']));
            }
        }
    }
}
