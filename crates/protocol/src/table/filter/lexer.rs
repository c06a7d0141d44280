//! Splits the text of a filter into tokens, one at a time, looking at each byte once.
//!
//! Tokens end where the OData library ends them: spaces separate tokens but are rarely required (`not(a)`, `5and`), and
//! a number ends where it stops looking like one.

use crate::ServiceError;

use super::refusal;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    End,
    Open,
    Close,
    Comma,
    Slash,
    Minus,
    /// A character that is legal in OData but in no filter that the service accepts.
    Stray,
    Identifier,
    String,
    Int32,
    Int64,
    Double,
    Single,
    Decimal,
    DateTime,
    Guid,
    Binary,
    Boolean(bool),
    Null,
}

impl TokenKind {
    pub(crate) fn is_numeric(self) -> bool {
        matches!(
            self,
            TokenKind::Int32 | TokenKind::Int64 | TokenKind::Double | TokenKind::Single | TokenKind::Decimal
        )
    }
}

/// A token and its position in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Token<'t> {
    pub kind: TokenKind,
    pub text: &'t str,
    pub start: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    /// Whether an opening parenthesis follows immediately, without a space.
    pub(crate) fn opens_at_once(&self) -> bool {
        self.peek() == Some(b'(')
    }

    pub fn next(&mut self) -> Result<Token<'t>, ServiceError> {
        self.skip(char::is_whitespace);
        let start = self.at;
        let Some(first) = self.text[start..].chars().next() else {
            return Ok(Token { kind: TokenKind::End, text: "", start });
        };
        let kind = match first {
            '\'' => self.string()?,
            '(' => self.single(TokenKind::Open),
            ')' => self.single(TokenKind::Close),
            ',' => self.single(TokenKind::Comma),
            '/' => self.single(TokenKind::Slash),
            '*' | '.' | ':' | '=' | '?' => self.single(TokenKind::Stray),
            '-' => self.minus()?,
            '0'..='9' => self.number()?,
            first if starts_identifier(first) => self.identifier()?,
            other => return Err(refusal::invalid_character(self.text, start, other)),
        };
        Ok(Token { kind, text: &self.text[start..self.at], start })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn single(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn skip(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|character| !belongs(character)).unwrap_or(rest.len());
    }

    /// Moves past the next quote, if there is one.
    fn skip_past_quote(&mut self) -> bool {
        match memchr::memchr(b'\'', &self.text.as_bytes()[self.at..]) {
            Some(offset) => {
                self.at += offset + 1;
                true
            }
            None => false,
        }
    }

    /// Reads a string, which ends at the first quote that is not followed by another.
    fn string(&mut self) -> Result<TokenKind, ServiceError> {
        loop {
            self.at += 1;
            if !self.skip_past_quote() {
                return Err(refusal::unterminated_string(self.text));
            }
            if self.peek() != Some(b'\'') {
                return Ok(TokenKind::String);
            }
        }
    }

    fn minus(&mut self) -> Result<TokenKind, ServiceError> {
        self.at += 1;
        if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.number();
        }
        let after_minus = self.at;
        self.skip(continues_identifier);
        if &self.text[after_minus..self.at] == "INF" {
            return Ok(TokenKind::Double);
        }
        self.at = after_minus;
        Ok(TokenKind::Minus)
    }

    /// Reads digits, a fraction, an exponent, and the letter that names the type. Like the OData library, it reads them
    /// in this order, so `1.5L` is a malformed Int64 and not two tokens.
    fn number(&mut self) -> Result<TokenKind, ServiceError> {
        self.digits()?;
        let mut kind = TokenKind::Int32;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
            kind = TokenKind::Double;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
            kind = TokenKind::Double;
        }
        Ok(match self.peek() {
            Some(b'L' | b'l') => self.single(TokenKind::Int64),
            Some(b'D' | b'd') => self.single(TokenKind::Double),
            Some(b'F' | b'f') => self.single(TokenKind::Single),
            Some(b'M' | b'm') => self.single(TokenKind::Decimal),
            _ => kind,
        })
    }

    fn digits(&mut self) -> Result<(), ServiceError> {
        let start = self.at;
        self.skip(|character| character.is_ascii_digit());
        if self.at == start { Err(refusal::digit_expected(self.text, start)) } else { Ok(()) }
    }

    fn identifier(&mut self) -> Result<TokenKind, ServiceError> {
        let start = self.at;
        self.skip(|character| character == '$' || continues_identifier(character));
        let name = &self.text[start..self.at];
        if self.peek() == Some(b'\'')
            && let Some(kind) = typed_literal(name)
        {
            // In a typed literal quotes are never doubled: the first one ends it.
            self.at += 1;
            return if self.skip_past_quote() {
                Ok(kind)
            } else {
                Err(refusal::unterminated_literal(self.text))
            };
        }
        Ok(match name {
            "true" => TokenKind::Boolean(true),
            "false" => TokenKind::Boolean(false),
            "null" => TokenKind::Null,
            "NaN" | "INF" => TokenKind::Double,
            _ => TokenKind::Identifier,
        })
    }
}

fn typed_literal(prefix: &str) -> Option<TokenKind> {
    match prefix {
        "datetime" | "datetimeoffset" => Some(TokenKind::DateTime),
        "guid" => Some(TokenKind::Guid),
        "binary" | "X" | "x" => Some(TokenKind::Binary),
        _ => None,
    }
}

fn starts_identifier(character: char) -> bool {
    character == '_' || character == '$' || character.is_alphabetic()
}

/// More permissive than the rule for property names, so that every name an entity may have can be used in a filter.
fn continues_identifier(character: char) -> bool {
    character == '_'
        || character.is_alphanumeric()
        || !character.is_ascii() && !character.is_whitespace() && !character.is_control()
}
