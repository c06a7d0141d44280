//! Pop receipts: opaque to clients, and all that is needed to find a message again.
//!
//! A receipt is written as hexadecimal digits. They are valid Base64, as clients may expect, and hold no character that
//! a URL would change.

use std::fmt;

use super::message_id::hex_digits;

/// Where a message stands, and since when: a message that has moved on does not match it any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PopReceipt {
    /// When the message becomes visible, in ticks.
    pub visible_ticks: u64,
    /// The version of its row.
    pub version_ticks: u64,
}

const DIGIT_COUNT: usize = 32;

impl PopReceipt {
    /// Reads a receipt. The outer `None`: the text is not a receipt of any kind. The inner `None`: it is well-formed,
    /// but not one of ours, so it matches no message.
    pub fn parse(text: &str) -> Option<Option<PopReceipt>> {
        if !is_base64(text) {
            return None;
        }
        if text.len() != DIGIT_COUNT || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(None);
        }
        let half = |range| u64::from_str_radix(&text[range], 16).ok();
        let receipt = half(0..16).zip(half(16..32));
        Some(receipt.map(|(visible_ticks, version_ticks)| PopReceipt { visible_ticks, version_ticks }))
    }
}

impl PopReceipt {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.digits());
    }

    fn digits(self) -> [u8; DIGIT_COUNT] {
        hex_digits(u128::from(self.visible_ticks) << 64 | u128::from(self.version_ticks))
    }
}

impl fmt::Display for PopReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.digits()))
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_reads_as_written() {
        let receipt = PopReceipt { visible_ticks: 0x08de_0000_1234_5678, version_ticks: 42 };
        assert_eq!(receipt.to_string(), "08de000012345678000000000000002a");
        assert_eq!(PopReceipt::parse(&receipt.to_string()), Some(Some(receipt)));
    }

    #[test]
    fn foreign_receipts_are_well_formed_and_others_are_not() {
        for foreign in ["AgAAAAMAAAAAAAAAHFrsOFDq2AE=", "bjoiqbcycpsabwpecydj", &"g".repeat(32)] {
            assert_eq!(PopReceipt::parse(foreign), Some(None), "{foreign}");
        }
        for broken in ["", "invalid", "abc", "====", "ab cd+ef", "a===", "äbcd"] {
            assert_eq!(PopReceipt::parse(broken), None, "{broken}");
        }
    }
}
