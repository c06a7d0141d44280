//! What derived code calls. Not for anybody else: it may change with every version.
//!
//! The less code a derive repeats in every struct, the faster programs compile, so that everything that does not depend
//! on a struct's fields is here.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Write};
use std::str::FromStr;

pub use crate::filter::{check_placeholders, literal};
pub use crate::kind::*;

use crate::field::refused;
use crate::{EntityError, KeyField, Property, Value};

/// Appends a field's property, unless it is absent.
pub fn write_value<'a>(name: &'static str, value: Option<Value<'a>>, out: &mut Vec<Property<'a>>) {
    if let Some(value) = value {
        out.push(Property { name: Cow::Borrowed(name), value });
    }
}

/// Appends a text that was made from a field.
pub fn write_text(name: &'static str, text: String, out: &mut Vec<Property<'_>>) {
    out.push(Property { name: Cow::Borrowed(name), value: Value::String(Cow::Owned(text)) });
}

/// The text of a property, if it is there.
pub fn text_of<'a>(
    name: &'static str,
    value: Option<Value<'a>>,
) -> Result<Option<Cow<'a, str>>, EntityError> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(refused(name, format!("expected Edm.String, found {}", other.edm_type().name()))),
    }
}

/// The error for a property that must be there.
pub fn absent(name: &'static str) -> EntityError {
    crate::field::absent(name)
}

/// A value as JSON.
pub fn to_json<T: serde_core::Serialize>(name: &'static str, value: &T) -> Result<String, EntityError> {
    serde_json::to_string(value)
        .map_err(|error| refused(name, format!("it cannot be written as JSON: {error}")))
}

/// A value from JSON.
pub fn from_json<T: serde_core::de::DeserializeOwned>(
    name: &'static str,
    text: &str,
) -> Result<T, EntityError> {
    serde_json::from_str(text)
        .map_err(|error| refused(name, format!("it is not the JSON of such a value: {error}")))
}

/// A value from its text.
pub fn from_text<T: FromStr<Err: Display>>(name: &'static str, text: &str) -> Result<T, EntityError> {
    text.parse().map_err(|error| refused(name, format!("{text:?} cannot be read: {error}")))
}

/// The error for a key that is none of this struct's.
pub fn unreadable_key(name: &'static str, text: &str) -> EntityError {
    refused(name, format!("{text:?} is not a key of this entity"))
}

/// Checks a key that is the same for all entities of a struct.
pub fn check_constant_key(
    name: &'static str,
    expected: &'static str,
    found: &str,
) -> Result<(), EntityError> {
    if found == expected {
        return Ok(());
    }
    Err(refused(name, format!("{found:?} is not {expected:?}")))
}

/// The error for the keys of a struct that has none.
pub fn no_keys() -> EntityError {
    refused("", "a view has no keys: it can be read, but not written")
}

/// A field that is part of a key, or a key, by its text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written into a key and read from it",
    label = "needs `Display` and `FromStr`"
)]
pub trait KeyPart: Sized {
    /// As `Display` writes it.
    fn to_text(&self) -> String;
    /// As `FromStr` reads it.
    fn from_text(text: &str) -> Option<Self>;
    /// The same, if it would be written exactly so.
    fn from_own_text(text: &str) -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Display + FromStr> KeyPart for T {
    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(text: &str) -> Option<T> {
        text.parse().ok()
    }

    fn from_own_text(text: &str) -> Option<T> {
        crate::key_field::from_displayed(text)
    }
}

/// A key that is being written from a template.
pub struct KeyWriter {
    name: &'static str,
    text: String,
}

impl KeyWriter {
    /// An empty key, with the name that errors call it.
    pub fn new(name: &'static str) -> KeyWriter {
        KeyWriter { name, text: String::new() }
    }

    /// Text of the template, in front of the first field.
    pub fn literal(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// A field, and the text of the template that follows it. The field must not contain that text, or the key could
    /// not be taken apart again.
    pub fn field(
        &mut self,
        field: &'static str,
        text: fmt::Arguments<'_>,
        separator: &'static str,
    ) -> Result<(), EntityError> {
        let start = self.text.len();
        self.text
            .write_fmt(text)
            .map_err(|_| refused(self.name, format!("the field `{field}` cannot be written")))?;
        let end = self.text.len();
        self.text.push_str(separator);
        if !separator.is_empty() && self.text[start..].find(separator) != Some(end - start) {
            let found = &self.text[start..end];
            let reason =
                format!("the field `{field}` is {found:?}, but {separator:?} separates it from what follows");
            return Err(refused(self.name, reason));
        }
        Ok(())
    }

    /// The key.
    pub fn finish(self) -> Cow<'static, str> {
        Cow::Owned(self.text)
    }
}

/// A key that is being taken apart by a template.
pub struct KeyReader<'k> {
    name: &'static str,
    template: &'static str,
    key: &'k str,
    rest: &'k str,
}

impl<'k> KeyReader<'k> {
    /// Begins with the whole key.
    pub fn new(name: &'static str, template: &'static str, key: &'k str) -> KeyReader<'k> {
        KeyReader { name, template, key, rest: key }
    }

    fn mismatch(&self) -> EntityError {
        refused(self.name, format!("{:?} is not of the form {:?}", self.key, self.template))
    }

    /// Text of the template, in front of the first field.
    pub fn literal(&mut self, text: &'static str) -> Result<(), EntityError> {
        self.rest = self.rest.strip_prefix(text).ok_or_else(|| self.mismatch())?;
        Ok(())
    }

    /// The text of a field, up to the text that follows it in the template; up to the end of the key, if that is empty.
    pub fn part(&mut self, separator: &'static str) -> Result<&'k str, EntityError> {
        let (text, rest) = match separator {
            "" => (self.rest, ""),
            _ => self.rest.split_once(separator).ok_or_else(|| self.mismatch())?,
        };
        self.rest = rest;
        Ok(text)
    }

    /// The error for a field that cannot have this text.
    pub fn unreadable(&self, field: &'static str, text: &str) -> EntityError {
        let (key, template) = (self.key, self.template);
        refused(self.name, format!("{key:?} is not of the form {template:?}: `{field}` cannot be {text:?}"))
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), EntityError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.mismatch()) }
    }
}

/// Checks that an entity would be stored where it was read, so that updating it does not make another one.
pub fn check_same_key(name: &'static str, found: &str, written: &str) -> Result<(), EntityError> {
    if found == written {
        return Ok(());
    }
    Err(refused(name, format!("{found:?} is read as the entity whose key is {written:?}")))
}

/// A field that keeps the ETag. Empty text counts as none, so that a new entity can have it.
#[diagnostic::on_unimplemented(message = "an ETag is kept as `String` or `Option<String>`, not as `{Self}`")]
pub trait ETagField {
    /// From the row.
    fn from_etag(etag: Option<Cow<'_, str>>) -> Self;
    /// For a condition.
    fn as_etag(&self) -> Option<&str>;
}

impl ETagField for String {
    fn from_etag(etag: Option<Cow<'_, str>>) -> String {
        etag.map(Cow::into_owned).unwrap_or_default()
    }

    fn as_etag(&self) -> Option<&str> {
        if self.is_empty() { None } else { Some(self) }
    }
}

impl ETagField for Option<String> {
    fn from_etag(etag: Option<Cow<'_, str>>) -> Option<String> {
        etag.map(Cow::into_owned)
    }

    fn as_etag(&self) -> Option<&str> {
        self.as_deref().filter(|etag| !etag.is_empty())
    }
}

/// A field that keeps the properties for which the struct has no field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot keep the rest of the properties",
    note = "use a `BTreeMap<String, Value<'static>>`, a `HashMap` of the same, or a `Vec<Property<'static>>`"
)]
pub trait RestField {
    /// From what is left of the row.
    fn from_rest(properties: Vec<Property<'_>>) -> Self;
    /// Appends all of them. A property that a field of the struct writes cannot be in the rest as well.
    fn write<'a>(&'a self, own: &[&str], out: &mut Vec<Property<'a>>) -> Result<(), EntityError>;
}

fn write_rest<'a>(
    rest: impl Iterator<Item = (&'a str, &'a Value<'static>)>,
    own: &[&str],
    out: &mut Vec<Property<'a>>,
) -> Result<(), EntityError> {
    for (name, value) in rest {
        if own.contains(&name) || matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
            return Err(refused(
                name,
                "the rest of the properties has a value for it, and so has the struct",
            ));
        }
        out.push(Property { name: Cow::Borrowed(name), value: crate::field::borrowed(value) });
    }
    Ok(())
}

impl RestField for BTreeMap<String, Value<'static>> {
    fn from_rest(properties: Vec<Property<'_>>) -> Self {
        properties
            .into_iter()
            .map(|property| (property.name.into_owned(), property.value.into_owned()))
            .collect()
    }

    fn write<'a>(&'a self, own: &[&str], out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        write_rest(self.iter().map(|(name, value)| (name.as_str(), value)), own, out)
    }
}

impl RestField for HashMap<String, Value<'static>> {
    fn from_rest(properties: Vec<Property<'_>>) -> Self {
        properties
            .into_iter()
            .map(|property| (property.name.into_owned(), property.value.into_owned()))
            .collect()
    }

    fn write<'a>(&'a self, own: &[&str], out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        write_rest(self.iter().map(|(name, value)| (name.as_str(), value)), own, out)
    }
}

impl RestField for Vec<Property<'static>> {
    fn from_rest(properties: Vec<Property<'_>>) -> Self {
        let owned = |property: Property<'_>| Property {
            name: Cow::Owned(property.name.into_owned()),
            value: property.value.into_owned(),
        };
        properties.into_iter().map(owned).collect()
    }

    fn write<'a>(&'a self, own: &[&str], out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        write_rest(self.iter().map(|property| (&*property.name, &property.value)), own, out)
    }
}

/// The error for a text that is the name of no variant.
pub fn unknown_name(property: &str, name: &str, enumeration: &'static str) -> EntityError {
    refused(property, format!("{name:?} is not a name of {enumeration}"))
}

/// Reads an enum that is stored by name.
pub fn read_enumeration<T: KeyField>(
    property: &str,
    value: Option<Value<'_>>,
    enumeration: &'static str,
) -> Result<T, EntityError> {
    match value {
        None => Err(crate::field::absent(property)),
        Some(Value::String(name)) => {
            let shown = name.clone();
            T::from_key(name).ok_or_else(|| unknown_name(property, &shown, enumeration))
        }
        Some(other) => {
            Err(refused(property, format!("expected Edm.String, found {}", other.edm_type().name())))
        }
    }
}
