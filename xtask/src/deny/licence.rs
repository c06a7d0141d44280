//! SPDX licence expressions, such as `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Whether the licences in `allowed` are enough to use a crate under this expression. `None` when it cannot be read.
///
/// Old crates write `/` for `OR`. `X+` means version X or any later one, so X is enough.
pub fn is_allowed(expression: &str, allowed: &[&str]) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let result = words.any_of()?;
    (words.at == words.words.len()).then_some(result)
}

struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl Words<'_> {
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn any_of(&mut self) -> Option<bool> {
        let mut result = self.all_of()?;
        while self.take("OR") {
            result |= self.all_of()?;
        }
        Some(result)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.take("AND") {
            result &= self.one()?;
        }
        Some(result)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let result = self.any_of()?;
            return self.take(")").then_some(result);
        }
        let licence = self.name()?;
        let licence = if self.take("WITH") { format!("{licence} WITH {}", self.name()?) } else { licence };
        let licence = licence.strip_suffix('+').unwrap_or(&licence);
        Some(self.allowed.contains(&licence))
    }

    fn name(&mut self) -> Option<String> {
        let word = self.words.get(self.at).filter(|word| !["(", ")", "OR", "AND", "WITH"].contains(word))?;
        self.at += 1;
        Some((*word).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed_as_spdx_says() {
        let check = |expression: &str, expected: Option<bool>| {
            assert_eq!(is_allowed(expression, &["MIT", "ISC", "A WITH B"]), expected, "{expression}");
        };
        check("MIT", Some(true));
        check("GPL-3.0", Some(false));
        check("MIT OR GPL-3.0", Some(true));
        check("GPL-3.0/MIT", Some(true));
        check("MIT AND GPL-3.0", Some(false));
        check("MIT AND ISC", Some(true));
        check("(GPL-3.0 OR MIT) AND ISC", Some(true));
        check("GPL-3.0 OR MIT AND GPL-2.0", Some(false));
        check("A WITH B", Some(true));
        check("A", Some(false));
        check("MIT WITH B", Some(false));
        check("ISC+", Some(true));
        for unreadable in ["", "OR", "MIT OR", "MIT ISC", "(MIT", "MIT)", "MIT WITH", "()"] {
            check(unreadable, None);
        }
    }
}
