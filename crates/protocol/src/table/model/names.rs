//! Table names, and the rules for property names and keys. A [`TableName`] is always valid.

use unicode_general_category::{GeneralCategory, get_general_category};

use crate::{ErrorCode, ServiceError};

const TABLE_NAME_LEN: std::ops::RangeInclusive<usize> = 3..=63;
const PROPERTY_NAME_UTF16_UNITS_MAX: usize = 255;
/// How the names of the tables begin that the service itself writes.
const SYSTEM_PREFIX: &str = "$Metrics";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableNameError {
    Length,
    Characters,
}

impl From<TableNameError> for ServiceError {
    fn from(error: TableNameError) -> ServiceError {
        match error {
            TableNameError::Characters => ErrorCode::InvalidResourceName.into(),
            TableNameError::Length => ServiceError::with_detail(
                ErrorCode::OutOfRangeInput,
                "The specified resource name length is not within the permissible limits.",
            ),
        }
    }
}

/// A letter, then letters and digits, 3 to 63 characters in all; not `tables`. Keeps the case in which it was given,
/// but names that differ only in case are the same table.
#[derive(Clone, Debug)]
pub struct TableName(Box<str>);

impl TableName {
    pub fn parse(text: &str) -> Result<TableName, TableNameError> {
        let valid_characters = text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !text.as_bytes().first().is_some_and(u8::is_ascii_digit)
            && !text.eq_ignore_ascii_case("tables");
        let units = if valid_characters { text.len() } else { text.encode_utf16().count() };
        if !TABLE_NAME_LEN.contains(&units) {
            return Err(TableNameError::Length);
        }
        if !valid_characters {
            return Err(TableNameError::Characters);
        }
        Ok(TableName(text.into()))
    }

    /// The name of a table that the service itself writes, such as `$MetricsHourPrimaryTransactionsTable`. Nobody else
    /// can create it, and no list shows it.
    pub fn parse_system(text: &str) -> Option<TableName> {
        // Nearly all tables are somebody else's.
        if !text.starts_with('$') {
            return None;
        }
        let (prefix, rest) = text.split_at_checked(SYSTEM_PREFIX.len())?;
        let is_system = prefix.eq_ignore_ascii_case(SYSTEM_PREFIX)
            && !rest.is_empty()
            && TABLE_NAME_LEN.contains(&text.len())
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_system {
            return None;
        }
        // Before 2013-08-15 there was one kind of metrics, which is the hourly one of today. Both names are good.
        let is_old = rest.to_ascii_lowercase().starts_with("transactions");
        let name = if is_old { format!("{SYSTEM_PREFIX}HourPrimary{rest}") } else { text.to_owned() };
        Some(TableName(name.into()))
    }

    /// The name of a table that may be read: one that anybody can create, or one that the service itself writes.
    pub fn parse_addressed(text: &str) -> Result<TableName, TableNameError> {
        match TableName::parse_system(text) {
            Some(name) => Ok(name),
            None => TableName::parse(text),
        }
    }

    /// Whether the service itself writes the table.
    pub fn is_system(&self) -> bool {
        self.0.starts_with('$')
    }

    /// The name in the case in which it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0.into()
    }

    /// The lower-case name, by which the table is found.
    pub fn to_lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl PartialEq for TableName {
    fn eq(&self, other: &TableName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// ASCII letters, digits and `_`.
const IS_PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < plain.len() {
        plain[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    plain
};

/// The rules for identifiers in C#: a letter or `_`, then letters, digits, connectors, marks and formatting characters.
pub fn check_property_name(name: &str) -> Result<(), ErrorCode> {
    // Most names are short and plain; they are checked in one pass over the bytes.
    let plain = name.len() <= PROPERTY_NAME_UTF16_UNITS_MAX
        && name.bytes().all(|byte| IS_PLAIN[usize::from(byte)])
        && name.as_bytes().first().is_some_and(|first| !first.is_ascii_digit());
    if plain {
        return Ok(());
    }
    if name.encode_utf16().count() > PROPERTY_NAME_UTF16_UNITS_MAX {
        return Err(ErrorCode::PropertyNameTooLong);
    }
    let mut characters = name.chars();
    let first_is_valid = characters.next().is_some_and(|first| first == '_' || is_letter(first));
    if first_is_valid && characters.all(|character| is_letter(character) || is_identifier_part(character)) {
        Ok(())
    } else {
        Err(ErrorCode::PropertyNameInvalid)
    }
}

/// Categories Lu, Ll, Lt, Lm, Lo and Nl. Superscripts and fractions (No) are no letters, and no digits either.
fn is_letter(character: char) -> bool {
    use GeneralCategory::*;
    matches!(
        get_general_category(character),
        UppercaseLetter | LowercaseLetter | TitlecaseLetter | ModifierLetter | OtherLetter | LetterNumber
    )
}

/// Categories Mn, Mc, Nd, Pc and Cf: what may follow a letter.
fn is_identifier_part(character: char) -> bool {
    use GeneralCategory::*;
    matches!(
        get_general_category(character),
        NonspacingMark | SpacingMark | DecimalNumber | ConnectorPunctuation | Format
    )
}

/// The first character that no key may contain.
pub fn find_forbidden_key_char(key: &str) -> Option<char> {
    let is_forbidden =
        |character: char| matches!(character, '/' | '\\' | '#' | '?' | '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}');
    // Most keys are plain. A fold that never stops early compares many bytes at once.
    let is_plain = key.bytes().fold(true, |plain, byte| {
        plain & (0x20..0x7F).contains(&byte) & !matches!(byte, b'/' | b'\\' | b'#' | b'?')
    });
    if is_plain {
        return None;
    }
    key.chars().find(|character| is_forbidden(*character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_judged_by_length_then_by_characters() {
        let check = |name: &str, expected: Result<(), TableNameError>| {
            assert_eq!(TableName::parse(name).map(|_| ()), expected, "{name}");
        };
        check("abc", Ok(()));
        check("A1z", Ok(()));
        check(&"a".repeat(63), Ok(()));
        check("ab", Err(TableNameError::Length));
        check("", Err(TableNameError::Length));
        check(&"a".repeat(64), Err(TableNameError::Length));
        check("1abc", Err(TableNameError::Characters));
        check("my-table", Err(TableNameError::Characters));
        check("tables", Err(TableNameError::Characters));
        check("Tables", Err(TableNameError::Characters));
        check("täble", Err(TableNameError::Characters));
    }

    #[test]
    fn system_tables_may_be_addressed_and_not_created() {
        let check = |name: &str, expected: Option<&str>| {
            let parsed = TableName::parse_addressed(name).ok();
            assert_eq!(parsed.as_ref().map(TableName::as_str), expected, "{name}");
            assert!(TableName::parse(name).is_err(), "{name}");
            assert!(parsed.is_none_or(|name| name.is_system()));
        };
        let hourly = "$MetricsHourPrimaryTransactionsTable";
        check(hourly, Some(hourly));
        check("$metricsminuteprimarytransactionsqueue", Some("$metricsminuteprimarytransactionsqueue"));
        check("$MetricsTransactionsTable", Some(hourly));
        for wrong in ["$Metrics", "$Metric", "$MetricsHour-1", "$Other", "$", "$MetricsÄ", "$Metricé"] {
            check(wrong, None);
        }
        check(&format!("$Metrics{}", "x".repeat(56)), None);
        assert!(!TableName::parse_addressed("people").unwrap().is_system());
    }

    #[test]
    fn property_names_follow_identifier_rules() {
        let check = |name: &str, expected: Result<(), ErrorCode>| {
            assert_eq!(check_property_name(name), expected, "{name}");
        };
        check("a", Ok(()));
        check("_x1", Ok(()));
        check("größe", Ok(()));
        check("名前", Ok(()));
        check(&"a".repeat(255), Ok(()));
        check(&"ü".repeat(255), Ok(()));
        check(&"a".repeat(256), Err(ErrorCode::PropertyNameTooLong));
        // A titlecase letter, a letter number, a letter beyond U+FFFF; then a mark of each kind, a foreign digit,
        // a connector and a joiner.
        for name in ["ǅ", "Ⅷ", "𝒜b", "x\u{301}", "क\u{93E}", "x٣", "x‿y", "x\u{200D}y"] {
            check(name, Ok(()));
        }
        // Superscripts, fractions and circled numbers are category No; circled letters are symbols.
        for name in
            ["x²", "²x", "x½", "x①", "ⓐ", "x\u{20DD}", "\u{301}x", "٣x", "‿x", "x€", "x·y", "℮", "x\u{A0}y"]
        {
            check(name, Err(ErrorCode::PropertyNameInvalid));
        }
        check("1a", Err(ErrorCode::PropertyNameInvalid));
        check("a-b", Err(ErrorCode::PropertyNameInvalid));
        check("a b", Err(ErrorCode::PropertyNameInvalid));
        check("a.b", Err(ErrorCode::PropertyNameInvalid));
        check("", Err(ErrorCode::PropertyNameInvalid));
    }

    #[test]
    fn keys_may_hold_all_but_a_few_characters() {
        assert_eq!(find_forbidden_key_char("a%+'\"& =:é\u{1F600}..~"), None);
        for forbidden in ['/', '\\', '#', '?', '\0', '\t', '\n', '\u{1F}', '\u{7F}', '\u{85}', '\u{9F}'] {
            assert_eq!(find_forbidden_key_char(&format!("a{forbidden}b")), Some(forbidden));
        }
        assert_eq!(find_forbidden_key_char("\u{A0}"), None);
    }
}
