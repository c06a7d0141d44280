//! Paths: percent-decoding, key predicates, and the resource that a path names.
//!
//! A path is decoded once, as UTF-8, before quotes are read: `%2527` becomes the three characters `%27`.

use std::borrow::Cow;

use crate::common::percent::percent_decode;
use crate::{ErrorCode, ServiceError};

/// What a path names, relative to the account's base.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resource<'a> {
    Root,
    /// `Tables` or `Tables()`.
    Tables,
    /// `Tables('name')`. The name is not checked yet.
    Table(Cow<'a, str>),
    /// `name` or `name()`. The name is not checked yet.
    Entities(Cow<'a, str>),
    Entity {
        table: Cow<'a, str>,
        partition_key: Cow<'a, str>,
        row_key: Cow<'a, str>,
    },
    /// `name('key')` and the like, where the number of keys is not two.
    WrongKeyCount {
        table: Cow<'a, str>,
    },
    /// `name/more`: OData navigation, which the service does not support. `keyed` when the last segment has keys.
    Navigation {
        table: Cow<'a, str>,
        keyed: bool,
    },
    Batch,
    Metadata,
}

/// Writes a key as the service does in `Location`, `odata.id` and the like: quotes are doubled, and all but a small set
/// of characters are escaped as UTF-8 with upper-case hex digits.
pub(crate) fn write_key(key: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        out.extend_from_slice(key.as_bytes());
        return;
    }
    for byte in key.bytes() {
        match byte {
            b'\'' => out.extend_from_slice(b"''"),
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'('
            | b')'
            | b'*'
            | b'!' => {
                out.push(byte);
            }
            _ => out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
}

/// Writes `table(PartitionKey='p',RowKey='r')`.
pub fn write_entity_path(table: &str, partition_key: &str, row_key: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    write_key(partition_key, out);
    out.extend_from_slice(b"',RowKey='");
    write_key(row_key, out);
    out.extend_from_slice(b"')");
}

/// Reads a path without the account's base, still percent-encoded, with or without its leading slash.
pub fn parse_path(raw: &str) -> Result<Resource<'_>, ServiceError> {
    let raw = raw.strip_prefix('/').unwrap_or(raw);
    if let Some(entity) = parse_usual(raw) {
        return Ok(entity);
    }
    let path = percent_decode(raw).ok_or_else(syntax_error)?;
    if has_slash_in_name(raw, &path) {
        return Err(ErrorCode::InvalidResourceName.into());
    }
    match path {
        Cow::Borrowed(path) => parse_decoded(path),
        Cow::Owned(path) => parse_decoded(&path).map(own),
    }
}

/// Reads `table(PartitionKey='p',RowKey='r')`, the form in which most clients name an entity. `None` for any other form, and
/// for a path with anything in it that needs a closer look.
fn parse_usual(path: &str) -> Option<Resource<'_>> {
    if memchr::memchr3(b'%', b'/', b'\\', path.as_bytes()).is_some() {
        return None;
    }
    let (table, rest) = split_before(path, b'(')?;
    let (partition_key, rest) = split_before(rest.strip_prefix("(PartitionKey='")?, b'\'')?;
    // A partition key with a doubled quote goes on differently.
    let row_key = rest.strip_prefix("',RowKey='")?.strip_suffix("')")?;
    if memchr::memchr(b'\'', row_key.as_bytes()).is_some() || table == "Tables" {
        return None;
    }
    Some(Resource::Entity {
        table: table.into(),
        partition_key: partition_key.into(),
        row_key: row_key.into(),
    })
}

fn split_before(text: &str, byte: u8) -> Option<(&str, &str)> {
    text.split_at_checked(memchr::memchr(byte, text.as_bytes())?)
}

/// Whether a table's name has slashes: escaped ones, or two in a row, between which there is nothing to navigate to.
fn has_slash_in_name(raw: &str, path: &str) -> bool {
    if memchr::memchr(b'/', path.as_bytes()).is_none() {
        return false;
    }
    let before_keys = |text| str::split(text, '(').next().unwrap_or_default();
    let name = before_keys(path);
    // A parenthesis may be escaped too; then this looks at the keys, where a slash is wrong anyway.
    name.contains("//") || name.contains('/') && before_keys(raw).to_ascii_uppercase().contains("%2F")
}

fn parse_decoded(path: &str) -> Result<Resource<'_>, ServiceError> {
    if path.is_empty() {
        return Ok(Resource::Root);
    }
    let name_end = memchr::memchr2(b'(', b'/', path.as_bytes()).unwrap_or(path.len());
    let (name, rest) = path.split_at(name_end);
    if rest.is_empty() || rest == "/" {
        return Ok(match name {
            "Tables" => Resource::Tables,
            "$batch" => Resource::Batch,
            "$metadata" => Resource::Metadata,
            _ => Resource::Entities(name.into()),
        });
    }
    if rest.starts_with('/') {
        return Ok(Resource::Navigation {
            table: name.into(),
            keyed: rest.ends_with(')') && !rest.ends_with("()"),
        });
    }

    let (predicate, after) = parse_predicate(rest)?;
    if after.starts_with('/') {
        return Ok(Resource::Navigation { table: name.into(), keyed: after.ends_with(')') });
    }
    if !after.is_empty() {
        return Err(syntax_error());
    }
    if name == "Tables" {
        return match predicate {
            Predicate::Empty => Ok(Resource::Tables),
            Predicate::Positional(key) => Ok(Resource::Table(key)),
            Predicate::Named(keys) => match keys.as_slice() {
                [("TableName", key)] => Ok(Resource::Table(key.clone())),
                _ => Ok(Resource::WrongKeyCount { table: name.into() }),
            },
        };
    }
    match predicate {
        Predicate::Empty => Ok(Resource::Entities(name.into())),
        Predicate::Positional(_) => Ok(Resource::WrongKeyCount { table: name.into() }),
        Predicate::Named(keys) => entity(name, keys),
    }
}

fn entity<'a>(table: &'a str, keys: Vec<(&'a str, Cow<'a, str>)>) -> Result<Resource<'a>, ServiceError> {
    if keys.len() != 2 {
        return Ok(Resource::WrongKeyCount { table: table.into() });
    }
    let (mut partition_key, mut row_key) = (None, None);
    for (name, key) in keys {
        let slot = match name {
            "PartitionKey" => &mut partition_key,
            "RowKey" => &mut row_key,
            _ => return Err(syntax_error()),
        };
        // The service treats `/` and `\` as path separators wherever they occur.
        if slot.is_some() || memchr::memchr2(b'/', b'\\', key.as_bytes()).is_some() {
            return Err(syntax_error());
        }
        *slot = Some(key);
    }
    let (Some(partition_key), Some(row_key)) = (partition_key, row_key) else { return Err(syntax_error()) };
    Ok(Resource::Entity { table: table.into(), partition_key, row_key })
}

enum Predicate<'a> {
    Empty,
    Positional(Cow<'a, str>),
    Named(Vec<(&'a str, Cow<'a, str>)>),
}

/// More keys than any resource has; a predicate with more is refused.
const KEY_COUNT_MAX: usize = 8;

/// Reads `(...)` and returns the text after it.
fn parse_predicate(text: &str) -> Result<(Predicate<'_>, &str), ServiceError> {
    let mut rest = skip_blanks(text.strip_prefix('(').ok_or_else(syntax_error)?);
    if let Some(after) = rest.strip_prefix(')') {
        return Ok((Predicate::Empty, after));
    }
    if rest.starts_with('\'') {
        let (key, after) = parse_quoted(rest)?;
        let after = skip_blanks(after).strip_prefix(')').ok_or_else(syntax_error)?;
        return Ok((Predicate::Positional(key), after));
    }
    let mut keys = Vec::with_capacity(2);
    loop {
        let equals = memchr::memchr(b'=', rest.as_bytes()).ok_or_else(syntax_error)?;
        let (name, value) = (&rest[..equals], &rest[equals + 1..]);
        let (key, after) = parse_quoted(skip_blanks(value))?;
        keys.push((name.trim(), key));
        let after = skip_blanks(after);
        if let Some(after) = after.strip_prefix(')') {
            return Ok((Predicate::Named(keys), after));
        }
        rest = skip_blanks(after.strip_prefix(',').ok_or_else(syntax_error)?);
        if keys.len() == KEY_COUNT_MAX {
            return Err(syntax_error());
        }
    }
}

/// Reads `'...'` with doubled quotes and returns the text after it.
fn parse_quoted(text: &str) -> Result<(Cow<'_, str>, &str), ServiceError> {
    let body = text.strip_prefix('\'').ok_or_else(syntax_error)?;
    let mut has_doubled = false;
    let mut at = 0;
    loop {
        let quote = at + memchr::memchr(b'\'', &body.as_bytes()[at..]).ok_or_else(syntax_error)?;
        if body.as_bytes().get(quote + 1) == Some(&b'\'') {
            has_doubled = true;
            at = quote + 2;
            continue;
        }
        let key = &body[..quote];
        let key = if has_doubled { Cow::Owned(key.replace("''", "'")) } else { Cow::Borrowed(key) };
        return Ok((key, &body[quote + 1..]));
    }
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

fn own(resource: Resource<'_>) -> Resource<'static> {
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    match resource {
        Resource::Root => Resource::Root,
        Resource::Tables => Resource::Tables,
        Resource::Batch => Resource::Batch,
        Resource::Metadata => Resource::Metadata,
        Resource::Table(name) => Resource::Table(own(name)),
        Resource::Entities(name) => Resource::Entities(own(name)),
        Resource::WrongKeyCount { table } => Resource::WrongKeyCount { table: own(table) },
        Resource::Navigation { table, keyed } => Resource::Navigation { table: own(table), keyed },
        Resource::Entity { table, partition_key, row_key } => {
            Resource::Entity { table: own(table), partition_key: own(partition_key), row_key: own(row_key) }
        }
    }
}

fn syntax_error() -> ServiceError {
    ServiceError::with_detail(ErrorCode::InvalidInput, "Bad Request - Error in query syntax.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<Resource<'_>>) {
        assert_eq!(parse_path(path).ok(), expected, "{path}");
    }

    fn entity(partition_key: &'static str, row_key: &'static str) -> Option<Resource<'static>> {
        Some(Resource::Entity {
            table: "t".into(),
            partition_key: partition_key.into(),
            row_key: row_key.into(),
        })
    }

    #[test]
    fn paths_name_resources() {
        check("/", Some(Resource::Root));
        check("/Tables", Some(Resource::Tables));
        check("/Tables()", Some(Resource::Tables));
        check("/Tables('abc')", Some(Resource::Table("abc".into())));
        check("/Tables(%27abc%27)", Some(Resource::Table("abc".into())));
        check("/Tables(TableName='abc')", Some(Resource::Table("abc".into())));
        check("/tables", Some(Resource::Entities("tables".into())));
        check("/$batch", Some(Resource::Batch));
        check("/%24batch", Some(Resource::Batch));
        check("/t", Some(Resource::Entities("t".into())));
        check("/t()", Some(Resource::Entities("t".into())));
        check("/t/Tables", Some(Resource::Navigation { table: "t".into(), keyed: false }));
        check("/t/Tables('x')", Some(Resource::Navigation { table: "t".into(), keyed: true }));
        check("/t('x')", Some(Resource::WrongKeyCount { table: "t".into() }));
        check("/t(PartitionKey='x')", Some(Resource::WrongKeyCount { table: "t".into() }));
    }

    #[test]
    fn a_name_has_no_slashes() {
        for path in [
            "/a//",
            "/a//b",
            "/a%2F%2F",
            "/a%2fb",
            "/a%2Fb()",
            "/a//()",
            "/a%2F%2F(PartitionKey='p',RowKey='r')",
            "/a//(PartitionKey='p',RowKey='r')",
        ] {
            assert_eq!(parse_path(path).unwrap_err().code, ErrorCode::InvalidResourceName, "{path}");
        }
        check("/abc/", Some(Resource::Entities("abc".into())));
        check("/Tables('a//')", Some(Resource::Table("a//".into())));
    }

    #[test]
    fn keys_are_decoded_once_and_then_unquoted() {
        check("/t(PartitionKey='p',RowKey='r')", entity("p", "r"));
        check("/t(RowKey='r',PartitionKey='p')", entity("p", "r"));
        check("/t(PartitionKey='p', RowKey='r')", entity("p", "r"));
        check("/t(PartitionKey=%27p%27,RowKey=%27r%27)", entity("p", "r"));
        check("/t(PartitionKey='',RowKey='')", entity("", ""));
        check("/t(PartitionKey='O''Brien',RowKey='''')", entity("O'Brien", "'"));
        check("/t(PartitionKey='O%27%27Brien',RowKey='%2527')", entity("O'Brien", "%27"));
        check("/t(PartitionKey='a+b',RowKey='a%2Bb')", entity("a+b", "a+b"));
        check("/t(PartitionKey='a%20b',RowKey='%C3%BC')", entity("a b", "ü"));
        check("/t(PartitionKey='..',RowKey='a,b=c)')", entity("..", "a,b=c)"));
        check("/t(PartitionKey='a%252Fb',RowKey='(')", entity("a%2Fb", "("));
    }

    #[test]
    fn the_usual_form_is_read_like_any_other() {
        let mut random = fastrand::Rng::with_seed(1);
        let usual = "t(PartitionKey='p',RowKey='r')";
        assert!(parse_usual(usual).is_some());
        let pieces =
            ["'", "''", "(", ")", ",", "=", "/", "\\", "%27", "%", " ", "ü", "Tables", "RowKey='", "')"];
        let mut read_count = 0;
        for _ in 0..20_000 {
            let mut path = usual.to_owned();
            for _ in 0..random.usize(..3) {
                let at = random.usize(..=path.len());
                if !path.is_char_boundary(at) {
                    continue;
                }
                match random.bool() {
                    true => path.insert_str(at, pieces[random.usize(..pieces.len())]),
                    false => path.truncate(at),
                }
            }
            if let Some(found) = parse_usual(&path) {
                assert_eq!(parse_decoded(&path).ok(), Some(found), "{path}");
                read_count += 1;
            }
        }
        assert!(read_count > 1000, "{read_count}");
        assert_eq!(parse_usual("Tables(PartitionKey='p',RowKey='r')"), None);
    }

    #[test]
    fn broken_predicates_are_refused() {
        for path in [
            "/t(PartitionKey='a%2Fb',RowKey='r')",
            "/t(PartitionKey='a%5Cb',RowKey='r')",
            "/t(PartitionKey='p',RowKey='r'",
            "/t(PartitionKey='p',RowKey='r)",
            "/t(PartitionKey='p',RowKey='r')x",
            "/t(PartitionKey='p',PartitionKey='r')",
            "/t(partitionkey='p',rowkey='r')",
            "/t(PartitionKey=p,RowKey=r)",
            "/t(PartitionKey='%zz',RowKey='r')",
            "/t(PartitionKey='%ff',RowKey='r')",
            "/t(",
            "/t(,)",
        ] {
            assert_eq!(
                parse_path(path).unwrap_err().message(),
                "Bad Request - Error in query syntax.",
                "{path}"
            );
        }
    }

    #[test]
    fn keys_are_written_as_the_service_escapes_them() {
        let mut out = Vec::new();
        write_entity_path("t", "partition1-ô- -'-\"-%20-%27-pk", "a:b", &mut out);
        let expected = "t(PartitionKey='partition1-%C3%B4-%20-''-%22-%2520-%2527-pk',RowKey='a%3Ab')";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
