//! Rust source as tokens: enough to tell code, comments and strings apart, and product code from its tests.
//!
//! Promises: every byte that is not white space belongs to exactly one token; a comment inside a string is a string,
//! and a quote inside a comment is a comment. Nothing fails: source that does not compile gives some tokens too.
//!
//! Leaves to others: what the tokens mean. There are no expressions and no types here.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// An identifier or a keyword.
    Word,
    Number,
    /// A string of any form, with its quotes.
    Text,
    /// A character or a byte, with its quotes.
    Character,
    Lifetime,
    /// A comment of any form, with its slashes.
    Comment,
    /// `::`, because paths are what most rules look for.
    PathSeparator,
    Punctuation(char),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: TokenKind,
    start: usize,
    end: usize,
    /// The line on which the token starts, from 1.
    pub line: usize,
    /// The token belongs to an item that only a test build has.
    pub is_test: bool,
}

/// One Rust file.
#[derive(Debug)]
pub struct RustSource {
    pub text: String,
    pub tokens: Vec<Token>,
    /// The modules that the file declares for tests alone: `#[cfg(test)] mod name;`.
    pub test_modules: Vec<String>,
}

impl RustSource {
    pub fn read(text: &str) -> RustSource {
        let tokens = Scanner { text, at: 0, line: 1 }.tokens();
        let mut source = RustSource { text: text.to_owned(), tokens, test_modules: Vec::new() };
        source.mark_tests();
        source
    }

    pub fn text_of(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// The tokens of product code: neither comments nor tests.
    pub fn code(&self) -> Vec<Token> {
        self.tokens
            .iter()
            .filter(|token| token.kind != TokenKind::Comment && !token.is_test)
            .copied()
            .collect()
    }

    /// Marks every item behind `#[test]` or `#[cfg(test)]`, with its comments.
    fn mark_tests(&mut self) {
        let code: Vec<usize> =
            (0..self.tokens.len()).filter(|n| self.tokens[*n].kind != TokenKind::Comment).collect();
        let mut at = 0;
        while at < code.len() {
            let Some(behind) = self.attribute_end(&code, at) else {
                at += 1;
                continue;
            };
            if !self.is_test_attribute(&code[at..behind]) {
                at = behind;
                continue;
            }
            let end = self.item_end(&code, behind);
            for token in &mut self.tokens[code[at]..=code[end - 1]] {
                token.is_test = true;
            }
            let item: Vec<&str> = code[behind..end].iter().map(|n| self.text_of(&self.tokens[*n])).collect();
            if let [.., "mod", name, ";"] = item[..] {
                self.test_modules.push(name.to_owned());
            }
            at = end;
        }
    }

    fn is(&self, code: &[usize], at: usize, text: &str) -> bool {
        code.get(at).is_some_and(|n| self.text_of(&self.tokens[*n]) == text)
    }

    /// Where the attribute that starts at `at` ends; `None` when none starts there.
    fn attribute_end(&self, code: &[usize], at: usize) -> Option<usize> {
        if !(self.is(code, at, "#") && self.is(code, at + 1, "[")) {
            return None;
        }
        let mut depth = 0;
        for n in at + 1..code.len() {
            if self.is(code, n, "[") {
                depth += 1;
            } else if self.is(code, n, "]") {
                depth -= 1;
                if depth == 0 {
                    return Some(n + 1);
                }
            }
        }
        None
    }

    fn is_test_attribute(&self, attribute: &[usize]) -> bool {
        let words: Vec<&str> = attribute
            .iter()
            .map(|n| &self.tokens[*n])
            .filter(|token| token.kind == TokenKind::Word)
            .map(|token| self.text_of(token))
            .collect();
        match words[..] {
            ["cfg", ref condition @ ..] => condition.contains(&"test") && !condition.contains(&"not"),
            ["cfg_attr", ..] => false,
            // `#[test]`, and those of other harnesses: `#[tokio::test]`.
            ["test", ..] | [_, "test", ..] => true,
            _ => false,
        }
    }

    /// The index behind the item that starts at `at`, after further attributes. An item ends with `;` or with the
    /// `}` of its body; a field, a variant or an arm ends with a comma too.
    fn item_end(&self, code: &[usize], mut at: usize) -> usize {
        while let Some(behind) = self.attribute_end(code, at) {
            at = behind;
        }
        const ITEMS: [&str; 12] = [
            "pub", "fn", "mod", "struct", "enum", "trait", "impl", "use", "const", "static", "type", "async",
        ];
        let is_item = ITEMS.iter().any(|word| self.is(code, at, word));
        let mut depth = 0;
        for n in at..code.len() {
            match self.text_of(&self.tokens[code[n]]) {
                "(" | "[" | "{" => depth += 1,
                // The end of what surrounds the item.
                ")" | "]" | "}" if depth == 0 => return n,
                ")" | "]" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if depth == 0 && !self.is(code, n + 1, ";") {
                        return n + 1;
                    }
                }
                ";" if depth == 0 => return n + 1,
                "," if depth == 0 && !is_item => return n + 1,
                _ => {}
            }
        }
        code.len()
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Scanner<'_> {
    fn tokens(mut self) -> Vec<Token> {
        let mut tokens = Vec::new();
        while let Some(first) = self.rest().chars().next() {
            let (start, line) = (self.at, self.line);
            if first.is_whitespace() {
                self.advance(first.len_utf8());
                continue;
            }
            let (kind, length) = self.next_token(first);
            self.advance(length);
            tokens.push(Token { kind, start, end: self.at, line, is_test: false });
        }
        tokens
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn advance(&mut self, length: usize) {
        self.line += self.rest()[..length].matches('\n').count();
        self.at += length;
    }

    /// Kind and length of the token that starts here, with `first`.
    fn next_token(&self, first: char) -> (TokenKind, usize) {
        let rest = self.rest();
        if rest.starts_with("//") {
            return (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            return (TokenKind::Comment, block_comment_length(rest));
        }
        if let Some(length) = string_length(rest) {
            return (TokenKind::Text, length);
        }
        if first == '\'' {
            return match character_length(rest) {
                Some(length) => (TokenKind::Character, length),
                None => (TokenKind::Lifetime, 1 + word_length(&rest[1..])),
            };
        }
        if rest.starts_with("b'") {
            let length = character_length(&rest[1..]).unwrap_or(1);
            return (TokenKind::Character, 1 + length);
        }
        if first.is_ascii_digit() {
            return (TokenKind::Number, number_length(rest));
        }
        if let Some(name) = rest.strip_prefix("r#")
            && word_length(name) > 0
        {
            return (TokenKind::Word, 2 + word_length(name));
        }
        if word_length(rest) > 0 {
            return (TokenKind::Word, word_length(rest));
        }
        if rest.starts_with("::") {
            return (TokenKind::PathSeparator, 2);
        }
        (TokenKind::Punctuation(first), first.len_utf8())
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// Block comments nest.
fn block_comment_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of the string that starts here: `"…"`, `b"…"`, `c"…"`, and the raw forms of the three.
fn string_length(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let behind = text.strip_prefix(prefix);
        behind.is_some_and(|behind| {
            let behind = if prefix.ends_with('r') { behind.trim_start_matches('#') } else { behind };
            behind.starts_with('"')
        })
    })?;
    let hashes = text[prefix.len()..].len() - text[prefix.len()..].trim_start_matches('#').len();
    let body_start = prefix.len() + hashes + 1;
    let body = &text[body_start..];
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(body.find(&end).map_or(text.len(), |at| body_start + at + end.len()));
    }
    let mut escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(body_start + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// The length of the character that starts with a quote here; `None` when the quote starts a lifetime.
fn character_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        characters.next()?; // What is escaped, a quote perhaps.
        return characters.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    match characters.next()? {
        (at, '\'') => Some(at + 1),
        _ => None,
    }
}

/// `1.5` is one number, `1..5` two, and `1.max(5)` a number and a call.
fn number_length(text: &str) -> usize {
    let whole = word_length(text);
    match text[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            whole + 1 + word_length(fraction)
        }
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each token as `kind:text`, with one letter for the kind.
    fn tokens(text: &str) -> Vec<String> {
        let source = RustSource::read(text);
        let letter = |kind| match kind {
            TokenKind::Word => 'w',
            TokenKind::Number => 'n',
            TokenKind::Text => 't',
            TokenKind::Character => 'c',
            TokenKind::Lifetime => 'l',
            TokenKind::Comment => '/',
            TokenKind::PathSeparator | TokenKind::Punctuation(_) => 'p',
        };
        source
            .tokens
            .iter()
            .map(|token| format!("{}:{}", letter(token.kind), source.text_of(token)))
            .collect()
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(tokens(text), expected, "{text}");
    }

    #[test]
    fn words_numbers_and_punctuation() {
        check("a::b.c", &["w:a", "p:::", "w:b", "p:.", "w:c"]);
        check("x1 = 1_000u64;", &["w:x1", "p:=", "n:1_000u64", "p:;"]);
        check("1.5 0xff 1..2", &["n:1.5", "n:0xff", "n:1", "p:.", "p:.", "n:2"]);
        check("1.max(2)", &["n:1", "p:.", "w:max", "p:(", "n:2", "p:)"]);
        check("r#type größe", &["w:r#type", "w:größe"]);
    }

    #[test]
    fn comments_end_where_they_end() {
        check("a // b \"c\nd", &["w:a", "/:// b \"c", "w:d"]);
        check("a /* b /* c */ \" */ d", &["w:a", "/:/* b /* c */ \" */", "w:d"]);
        check("//! doc", &["/://! doc"]);
        check("a /* never closed", &["w:a", "/:/* never closed"]);
    }

    #[test]
    fn strings_hide_comments_and_quotes() {
        check(r#""a // b" c"#, &[r#"t:"a // b""#, "w:c"]);
        check(r#""a \" b" c"#, &[r#"t:"a \" b""#, "w:c"]);
        check(r#""a \\" c"#, &[r#"t:"a \\""#, "w:c"]);
        check(r##"r"\" c"##, &[r#"t:r"\""#, "w:c"]);
        check(r###"r#"a " b"# c"###, &[r##"t:r#"a " b"#"##, "w:c"]);
        check(r###"br##"a "# b"## c"###, &[r###"t:br##"a "# b"##"###, "w:c"]);
        check(r#"b"x" c"y" brush"#, &[r#"t:b"x""#, r#"t:c"y""#, "w:brush"]);
    }

    #[test]
    fn a_quote_starts_a_character_or_a_lifetime() {
        check("'a' 'a", &["c:'a'", "l:'a"]);
        check("<'a, 'static>", &["p:<", "l:'a", "p:,", "l:'static", "p:>"]);
        check(r"'\'' '\\' '\u{1F600}' x", &[r"c:'\''", r"c:'\\'", r"c:'\u{1F600}'", "w:x"]);
        check("'\"' '/' 'ß' b'\\n' b'x'", &["c:'\"'", "c:'/'", "c:'ß'", "c:b'\\n'", "c:b'x'"]);
    }

    #[test]
    fn lines_are_counted_inside_strings_and_comments() {
        let source = RustSource::read("a\n\"b\nc\" d\n/* e\nf */ g");
        let lines: Vec<usize> = source.tokens.iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }

    fn check_product_words(text: &str, expected: &[&str]) {
        let source = RustSource::read(text);
        let code = source.code();
        let words = code.iter().filter(|token| token.kind == TokenKind::Word);
        let words: Vec<&str> = words.map(|token| source.text_of(token)).collect();
        assert_eq!(words, expected, "{text}");
    }

    #[test]
    fn tests_are_not_product_code() {
        check_product_words("a; #[cfg(test)] mod tests { fn b() { c } } d", &["a", "d"]);
        check_product_words("#[test] fn a<B, C>() -> [u8; 2] { b } d", &["d"]);
        check_product_words("#[tokio::test(flavor)] fn a() { b } d", &["d"]);
        check_product_words("#[tokio::test] #[should_panic] fn a() { b } d", &["d"]);
        check_product_words(
            "#[cfg_attr(test, derive(A))] struct B;",
            &["cfg_attr", "test", "derive", "A", "struct", "B"],
        );
        check_product_words("#[cfg(test)] use a::{b, c}; d", &["d"]);
        check_product_words("#[cfg(all(test, unix))] const A: [u8; 1] = [b]; d", &["d"]);
        check_product_words("#[cfg(not(test))] fn a() {}", &["cfg", "not", "test", "fn", "a"]);
        check_product_words("struct A { #[cfg(test)] b: C, d: E }", &["struct", "A", "d", "E"]);
        check_product_words("struct A { d: E, #[cfg(test)] b: C }", &["struct", "A", "d", "E"]);
    }

    #[test]
    fn comments_inside_tests_are_tests() {
        let source = RustSource::read("// a\n#[cfg(test)]\nmod tests {\n    // b\n}\n// c\n");
        let comments = source.tokens.iter().filter(|token| token.kind == TokenKind::Comment);
        let found: Vec<(&str, bool)> = comments.map(|token| (source.text_of(token), token.is_test)).collect();
        assert_eq!(found, [("// a", false), ("// b", true), ("// c", false)]);
    }

    #[test]
    fn modules_for_tests_alone_are_known_by_name() {
        let source =
            RustSource::read("mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(super) mod hostile;");
        assert_eq!(source.test_modules, ["tests", "hostile"]);
    }
}
