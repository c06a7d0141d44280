//! Comparing secrets.

/// Looks at every byte, wherever the first difference is: the time it takes does not tell how much of a guess is right.
pub fn is_same_secret(sent: &str, secret: &str) -> bool {
    let differences =
        sent.bytes().zip(secret.bytes()).fold(0, |differences, (left, right)| differences | (left ^ right));
    sent.len() == secret.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_secret_is_the_same() {
        assert!(is_same_secret("", "") && is_same_secret("0123", "0123"));
        for other in ["", "012", "01234", "0124", "1123"] {
            assert!(!is_same_secret(other, "0123"), "{other}");
        }
    }
}
