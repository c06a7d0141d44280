//! The words of a file's product code: in names, comments and strings alike.
//!
//! `EntityAlreadyExists`, `entity_key` and "two entities" all contain the word *entity*; `identity` does not.

use super::rust_source::{RustSource, TokenKind};

/// The lines on which product code contains the word or the phrase `wanted`, each with the text found there.
pub fn find(source: &RustSource, wanted: &str) -> Vec<(usize, String)> {
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let mut found = Vec::new();
    for token in source.tokens.iter().filter(|token| !token.is_test) {
        if !matches!(token.kind, TokenKind::Word | TokenKind::Text | TokenKind::Comment) {
            continue;
        }
        for (n, line) in source.text_of(token).lines().enumerate() {
            if contains(line, &wanted) {
                found.push((token.line + n, excerpt(line)));
            }
        }
    }
    found.dedup_by_key(|(line, _)| *line);
    found
}

fn contains(text: &str, wanted: &[&str]) -> bool {
    let words = words(text);
    words
        .windows(wanted.len())
        .any(|run| run.iter().zip(wanted).all(|(word, wanted)| is_form_of(word, wanted)))
}

/// Is it the word, or its plural?
fn is_form_of(word: &str, wanted: &str) -> bool {
    let Some(ending) = word.strip_prefix(wanted.trim_end_matches('y')) else { return false };
    match wanted.ends_with('y') {
        true => matches!(ending, "y" | "ies" | "ys"),
        false => matches!(ending, "" | "s" | "es"),
    }
}

/// The words of a text in lower case; a name is as many words as it has parts.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let characters: Vec<char> = run.chars().collect();
        let mut word = String::new();
        for (n, c) in characters.iter().enumerate() {
            let after_small = n > 0 && !characters[n - 1].is_uppercase();
            let before_small = characters.get(n + 1).is_some_and(|next| next.is_lowercase());
            // `tableName` parts before the N, `HTTPServer` before the S.
            if c.is_uppercase() && (after_small || before_small) && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            word.extend(c.to_lowercase());
        }
        words.push(word);
    }
    words
}

fn excerpt(line: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let line = line.trim();
    match line.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, wanted: &str) -> Vec<usize> {
        find(&RustSource::read(text), wanted).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn names_comments_and_strings_are_searched() {
        let text = "struct EntityKey;\nlet entity_count = 1;\n// Two entities\n/* x\nEntity */\n\"an entity\"\nENTITY_MAX";
        assert_eq!(lines(text, "entity"), [1, 2, 3, 5, 6, 7]);
    }

    #[test]
    fn parts_of_words_and_tests_do_not_count() {
        let text = "identity\n// tablet\n'e'\n#[cfg(test)]\nmod tests { fn entity() {} /* entity */ }";
        assert_eq!(lines(text, "entity"), []);
        assert_eq!(lines(text, "table"), []);
    }

    #[test]
    fn phrases_are_words_in_a_row() {
        let text = "// the queue\nqueue_message\nQueueMessages\n// queue of messages";
        assert_eq!(lines(text, "queue message"), [2, 3]);
    }

    #[test]
    fn names_are_parted_where_people_part_them() {
        let check = |name, expected: &[&str]| assert_eq!(words(name), expected, "{name}");
        check("EntityAlreadyExists", &["entity", "already", "exists"]);
        check("HTTPServer", &["http", "server"]);
        check("x_ms_version_2", &["x", "ms", "version", "2"]);
        check("ETag", &["e", "tag"]);
        check("MAX_BYTES", &["max", "bytes"]);
    }
}
