//! Expressions over tags: the condition `x-ms-if-tags`, and the query of Find Blobs by Tags.
//!
//! Grammar: comparisons `KEY OP 'VALUE'` with `AND`, `OR` and parentheses. Keys are bare or in double quotes. Find has
//! only `AND`, no `<>`, and the key `@container`.
//! Promises: parsing never panics, and takes bounded depth and memory; values are compared as text.

use std::fmt;

use crate::common::headers::invalid_header;
use crate::{ErrorCode, ServiceError};

use super::tags::Tags;

/// `AND` and `OR` together.
const LOGICAL_OPERATOR_COUNT_MAX: usize = 10;
/// More than the greatest number of comparisons needs.
const DEPTH_MAX: usize = 16;
const CONTAINER_KEY: &str = "@container";

/// A parsed expression, and its text as sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagExpression {
    text: String,
    root: Node,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    Compare { key: String, operator: Operator, value: String },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Where a text stops being an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionError {
    /// Counted in characters from 1.
    pub position: usize,
    pub unexpected: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (position, unexpected) = (self.position, &self.unexpected);
        write!(f, "Error parsing query at or near character position {position}: unexpected '{unexpected}'")
    }
}

impl std::error::Error for ExpressionError {}

/// Which of the two languages an expression is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dialect {
    Condition,
    Find,
}

impl TagExpression {
    /// A condition, from the header with this name.
    pub(super) fn read_header(name: &'static str, text: &str) -> Result<TagExpression, ServiceError> {
        parse(text, Dialect::Condition).map_err(|error| {
            let mut refusal = invalid_header(name, text);
            refusal.source = Some(error.into());
            refusal
        })
    }

    /// The parameter `where` of Find Blobs by Tags, decoded.
    pub(crate) fn read_where(text: &str) -> Result<TagExpression, ServiceError> {
        parse(text, Dialect::Find).map_err(|error| {
            ServiceError::with_detail(ErrorCode::InvalidQueryParameterValue, error.to_string())
                .with_element("QueryParameterName", "where")
                .with_element("QueryParameterValue", text.to_owned())
                .with_element("Reason", "")
        })
    }

    /// As sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a blob with these tags, in this container, is meant.
    pub fn matches(&self, tags: &Tags, container: Option<&str>) -> bool {
        self.root.matches(tags, container)
    }

    /// Whether the expression names this tag. The answer of Find shows only those.
    pub fn names(&self, key: &str) -> bool {
        self.root.names(key)
    }

    /// The only container that blobs can be in, if the expression says so.
    pub fn container(&self) -> Option<&str> {
        self.root.container()
    }
}

impl Node {
    fn matches(&self, tags: &Tags, container: Option<&str>) -> bool {
        match self {
            Node::And(left, right) => left.matches(tags, container) && right.matches(tags, container),
            Node::Or(left, right) => left.matches(tags, container) || right.matches(tags, container),
            Node::Compare { key, operator, value } => {
                let found = if key == CONTAINER_KEY { container } else { tags.get(key) };
                // A tag that is not there makes every comparison false.
                found.is_some_and(|found| operator.holds(found, value))
            }
        }
    }

    fn names(&self, wanted: &str) -> bool {
        match self {
            Node::And(left, right) | Node::Or(left, right) => left.names(wanted) || right.names(wanted),
            Node::Compare { key, .. } => key == wanted,
        }
    }

    fn container(&self) -> Option<&str> {
        match self {
            Node::And(left, right) => left.container().or_else(|| right.container()),
            Node::Compare { key, operator: Operator::Equal, value } if key == CONTAINER_KEY => Some(value),
            _ => None,
        }
    }
}

impl Operator {
    fn holds(self, left: &str, right: &str) -> bool {
        match self {
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            Operator::GreaterOrEqual => left >= right,
        }
    }
}

fn parse(text: &str, dialect: Dialect) -> Result<TagExpression, ExpressionError> {
    let mut parser = TagParser { text, at: 0, dialect, operator_count: 0 };
    let root = parser.disjunction(0)?;
    match parser.next()? {
        None => Ok(TagExpression { text: text.to_owned(), root }),
        Some(token) => Err(parser.unexpected(&token)),
    }
}

struct TagToken<'t> {
    start: usize,
    kind: TagTokenKind<'t>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TagTokenKind<'t> {
    /// A bare word: a key, `AND` or `OR`.
    Word(&'t str),
    /// A key in double quotes.
    Quoted(&'t str),
    /// In single quotes.
    Value(&'t str),
    Operator(Operator),
    Open,
    Close,
}

struct TagParser<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
    dialect: Dialect,
    operator_count: usize,
}

impl<'t> TagParser<'t> {
    fn disjunction(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        let mut node = self.conjunction(depth)?;
        while self.dialect == Dialect::Condition && self.skip_word("OR")? {
            let right = self.conjunction(depth)?;
            node = Node::Or(Box::new(node), Box::new(right));
        }
        Ok(node)
    }

    fn conjunction(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        let mut node = self.operand(depth)?;
        while self.skip_word("AND")? {
            let right = self.operand(depth)?;
            node = Node::And(Box::new(node), Box::new(right));
        }
        Ok(node)
    }

    fn operand(&mut self, depth: usize) -> Result<Node, ExpressionError> {
        let token = self.required()?;
        let key = match token.kind {
            TagTokenKind::Open if self.dialect == Dialect::Condition && depth < DEPTH_MAX => {
                let node = self.disjunction(depth + 1)?;
                let close = self.required()?;
                return if close.kind == TagTokenKind::Close {
                    Ok(node)
                } else {
                    Err(self.unexpected(&close))
                };
            }
            TagTokenKind::Word(key) if key.starts_with('@') => {
                if key != CONTAINER_KEY || self.dialect == Dialect::Condition {
                    return Err(self.unexpected(&token));
                }
                key
            }
            TagTokenKind::Word(key) if !is_keyword(key) => key,
            TagTokenKind::Quoted(key) if !key.is_empty() && key != CONTAINER_KEY => key,
            _ => return Err(self.unexpected(&token)),
        };
        let token = self.required()?;
        let TagTokenKind::Operator(operator) = token.kind else { return Err(self.unexpected(&token)) };
        if self.dialect == Dialect::Find && operator == Operator::NotEqual {
            return Err(self.unexpected(&token));
        }
        let token = self.required()?;
        let TagTokenKind::Value(value) = token.kind else { return Err(self.unexpected(&token)) };
        Ok(Node::Compare { key: key.to_owned(), operator, value: value.to_owned() })
    }

    /// Takes the logical operator if it comes next.
    fn skip_word(&mut self, word: &str) -> Result<bool, ExpressionError> {
        let before = self.at;
        match self.next()? {
            Some(TagToken { start, kind: TagTokenKind::Word(found) }) if found.eq_ignore_ascii_case(word) => {
                self.operator_count += 1;
                if self.operator_count > LOGICAL_OPERATOR_COUNT_MAX {
                    return Err(self.error_at(start, found));
                }
                Ok(true)
            }
            _ => {
                self.at = before;
                Ok(false)
            }
        }
    }

    fn required(&mut self) -> Result<TagToken<'t>, ExpressionError> {
        let end = self.text.len();
        self.next()?.ok_or_else(|| self.error_at(end, ""))
    }

    fn next(&mut self) -> Result<Option<TagToken<'t>>, ExpressionError> {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            self.at = start;
            return Ok(None);
        };
        let (kind, len) = match first {
            '(' => (TagTokenKind::Open, 1),
            ')' => (TagTokenKind::Close, 1),
            '=' => (TagTokenKind::Operator(Operator::Equal), 1),
            '<' if rest.starts_with("<>") => (TagTokenKind::Operator(Operator::NotEqual), 2),
            '<' if rest.starts_with("<=") => (TagTokenKind::Operator(Operator::LessOrEqual), 2),
            '<' => (TagTokenKind::Operator(Operator::Less), 1),
            '>' if rest.starts_with(">=") => (TagTokenKind::Operator(Operator::GreaterOrEqual), 2),
            '>' => (TagTokenKind::Operator(Operator::Greater), 1),
            '\'' | '"' => {
                let inside = &rest[1..];
                let end = inside.find(first).ok_or_else(|| self.error_at(start, rest))?;
                let inside = &inside[..end];
                let kind =
                    if first == '"' { TagTokenKind::Quoted(inside) } else { TagTokenKind::Value(inside) };
                (kind, end + 2)
            }
            _ if first == '@' || first == '_' || first.is_ascii_alphabetic() => {
                let is_word = |character: char| character == '_' || character.is_ascii_alphanumeric();
                let end = rest[1..].find(|character| !is_word(character)).map_or(rest.len(), |end| end + 1);
                (TagTokenKind::Word(&rest[..end]), end)
            }
            other => return Err(self.error_at(start, &rest[..other.len_utf8()])),
        };
        self.at = start + len;
        Ok(Some(TagToken { start, kind }))
    }

    /// The token that was read last stands at the wrong place.
    fn unexpected(&self, token: &TagToken<'_>) -> ExpressionError {
        self.error_at(token.start, &self.text[token.start..self.at])
    }

    fn error_at(&self, start: usize, unexpected: &str) -> ExpressionError {
        ExpressionError {
            position: self.text[..start].chars().count() + 1,
            unexpected: crate::common::error::bounded(unexpected).to_owned(),
        }
    }
}

fn is_keyword(word: &str) -> bool {
    word.eq_ignore_ascii_case("AND") || word.eq_ignore_ascii_case("OR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tags: &[(&str, &str)], expected: bool) {
        let expression = TagExpression::read_header("x-ms-if-tags", text).unwrap();
        let tags = Tags::read(tags.iter().copied()).unwrap();
        assert_eq!(expression.matches(&tags, None), expected, "{text}");
    }

    #[test]
    fn comparisons_are_of_text() {
        let tags: &[(&str, &str)] = &[("status", "done"), ("prio", "05")];
        check("\"status\" = 'done' AND \"prio\" >= '05'", tags, true);
        check("status='done'", tags, true);
        check("status = 'Done'", tags, false);
        check("Status = 'done'", tags, false);
        check("prio > '1'", tags, false);
        check("prio < '1' and prio <= '05' AND prio >= '05'", tags, true);
        check("prio <> '06'", tags, true);
        check("prio <> '05'", tags, false);
        // What is not there is not even different.
        check("other <> 'x'", tags, false);
        check("other = ''", tags, false);
        check("empty = ''", &[("empty", "")], true);
    }

    #[test]
    fn and_binds_closer_than_or() {
        let tags: &[(&str, &str)] = &[("a", "1"), ("b", "2")];
        check("a='1' OR a='x' AND b='x'", tags, true);
        check("(a='1' OR a='x') AND b='x'", tags, false);
        check("((a = '1'))", tags, true);
        check("a='x' or (b='2' and (a='1'))", tags, true);
    }

    #[test]
    fn find_has_a_smaller_language() {
        let read = |text: &str| TagExpression::read_where(text).map_err(|error| error.message().to_owned());
        let expression = read("@container = 'mycontainer' AND \"tag1\"='val1' AND other > 'a'").unwrap();
        assert_eq!(expression.container(), Some("mycontainer"));
        assert!(expression.names("tag1") && expression.names("other") && !expression.names("tag2"));
        let tags = Tags::read([("tag1", "val1"), ("other", "b")]).unwrap();
        assert!(expression.matches(&tags, Some("mycontainer")));
        assert!(!expression.matches(&tags, Some("another")));
        assert_eq!(read("a='1'").unwrap().container(), None);
        for (text, position, unexpected) in [
            ("a='1' OR b='2'", 7, "OR"),
            ("(a='1')", 1, "("),
            ("a <> '1'", 3, "<>"),
            ("\"tag\" = 'x' AND \"year\" Year", 24, "Year"),
            ("@other = 'x'", 1, "@other"),
            ("a = '1", 5, "'1"),
            ("ä = '1'", 1, "ä"),
            ("\"ä\" = b", 7, "b"),
            ("a =", 4, ""),
            ("", 1, ""),
        ] {
            let expected = format!(
                "Error parsing query at or near character position {position}: unexpected '{unexpected}'"
            );
            assert_eq!(read(text), Err(expected), "{text}");
        }
        let error = TagExpression::read_where("a").unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidQueryParameterValue);
        assert_eq!(error.elements().next(), Some(("QueryParameterName", "where")));
    }

    #[test]
    fn conditions_are_refused_where_they_are_wrong() {
        for text in [
            "a",
            "a=1",
            "'a'='b'",
            "a='1' AND",
            "AND='1'",
            "(a='1'",
            "a='1')",
            "@container='x'",
            "a==''",
            "\"\"='x'",
        ] {
            let error = TagExpression::read_header("x-ms-if-tags", text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidHeaderValue, "{text}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let chain = |count: usize| vec!["a='1'"; count + 1].join(" AND ");
        assert!(TagExpression::read_where(&chain(10)).is_ok());
        assert!(TagExpression::read_where(&chain(11)).is_err());
        let nested = |depth: usize| format!("{}a='1'{}", "(".repeat(depth), ")".repeat(depth));
        assert!(TagExpression::read_header("x", &nested(DEPTH_MAX)).is_ok());
        assert!(TagExpression::read_header("x", &nested(DEPTH_MAX + 1)).is_err());
        assert!(TagExpression::read_header("x", &nested(100_000)).is_err());
    }

    #[test]
    fn no_text_makes_the_parser_panic() {
        const PIECES: [&str; 19] = [
            "a='c'",
            "a",
            "\"b\"",
            "'c'",
            "=",
            "<",
            ">",
            "<>",
            ">=",
            "(",
            ")",
            " AND ",
            " or ",
            "@container",
            "'",
            "\"",
            "ä",
            " ",
            "\u{1F600}",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        let mut taken = 0;
        for _ in 0..20_000 {
            let text: String =
                (0..random.usize(1..12)).map(|_| PIECES[random.usize(..PIECES.len())]).collect();
            let _ = TagExpression::read_where(&text);
            if let Ok(expression) = TagExpression::read_header("x", &text) {
                taken += 1;
                assert_eq!(expression.text(), text);
                expression.matches(&Tags::default(), None);
            }
        }
        assert!(taken > 10, "{taken}");
    }
}
