//! Numbers and keys as people read them.

/// Whole, with separators; small ones with a digit after the point.
pub(super) fn amount(value: f64) -> String {
    if value < 9.95 && value.fract() > 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// In the largest unit of which there is at least one.
pub(super) fn bytes(value: f64) -> String {
    for (unit, size) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        let count = value / f64::from(1u32 << size);
        if count >= 1.0 {
            return if count < 100.0 {
                format!("{count:.1} {unit}")
            } else {
                format!("{} {unit}", amount(count))
            };
        }
    }
    format!("{} bytes", amount(value))
}

/// A key, with everything visible that could hide in it.
pub(super) fn quoted(key: &str) -> String {
    format!("'{}'", key.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (value, expected) in [
            (0.0, "0"),
            (0.25, "0.2"),
            (7.0, "7"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(amount(value), expected);
        }
        assert_eq!(
            [10.0, 2048.0, 800.0 * 1024.0, 1.5 * 1024.0 * 1024.0].map(bytes),
            ["10 bytes", "2.0 KiB", "800 KiB", "1.5 MiB"]
        );
        assert_eq!(quoted("a\n'"), r"'a\n\''");
    }
}
