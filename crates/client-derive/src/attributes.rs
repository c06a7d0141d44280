//! `#[entity(...)]` on structs and their fields, as it was written. Whether it makes sense together is decided where
//! the code is made.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Ident, LitStr, Path};

use crate::errors::Errors;
use crate::names::Style;

/// On a struct.
#[derive(Default)]
pub struct OnStruct {
    pub partition_key: Option<LitStr>,
    pub row_key: Option<LitStr>,
    pub rename_all: Option<Style>,
    /// Only read, so that keys may be missing.
    pub is_view: bool,
    /// The name of a type for the columns, instead of the struct itself.
    pub columns: Option<Ident>,
    pub krate: Option<Path>,
}

/// On a field. Every mark is where it was written.
#[derive(Default)]
pub struct OnField {
    pub role: Option<(Role, Span)>,
    pub rename: Option<LitStr>,
    pub default: Option<DefaultValue>,
    pub json: Option<Span>,
    pub display: Option<Span>,
    pub encrypt: Option<Span>,
    pub stored: Option<Span>,
}

/// What a field is, unless it is a property.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    PartitionKey,
    RowKey,
    ETag,
    Timestamp,
    Rest,
    Skip,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::PartitionKey => "partition_key",
            Role::RowKey => "row_key",
            Role::ETag => "etag",
            Role::Timestamp => "timestamp",
            Role::Rest => "rest",
            Role::Skip => "skip",
        }
    }
}

pub enum DefaultValue {
    OfType,
    From(Path),
}

/// Calls `read` for each word in `#[entity(...)]`.
pub fn for_each(
    attributes: &[Attribute],
    errors: &mut Errors,
    mut read: impl FnMut(&ParseNestedMeta<'_>, &str) -> syn::Result<()>,
) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("entity")) {
        let result = attribute.parse_nested_meta(|meta| {
            let word = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            read(&meta, &word)
        });
        errors.take(result);
    }
}

pub fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

/// A path, written as it is or in quotes.
fn path(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    let value = meta.value()?;
    if value.peek(LitStr) { value.parse::<LitStr>()?.parse() } else { value.parse() }
}

/// `crate = path`, for programs that know the client by another name.
pub fn krate(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    path(meta)
}

fn put<T>(place: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>, word: &str) -> syn::Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error(format!("`{word}` is given twice"))),
    }
}

impl OnStruct {
    pub fn read(attributes: &[Attribute], errors: &mut Errors) -> OnStruct {
        let mut found = OnStruct::default();
        for_each(attributes, errors, |meta, word| {
            match word {
            "partition_key" => put(&mut found.partition_key, text(meta)?, meta, word),
            "row_key" => put(&mut found.row_key, text(meta)?, meta, word),
            "rename_all" => put(&mut found.rename_all, Style::parse(&text(meta)?)?, meta, word),
            "columns" => put(&mut found.columns, meta.value()?.parse()?, meta, word),
            "crate" => put(&mut found.krate, krate(meta)?, meta, word),
            "view" => {
                found.is_view = true;
                Ok(())
            }
            "property" | "row_key_prefix" => {
                Err(meta.error(format!("`{word}` is for #[derive(EntityKind)] on an enum")))
            }
            _ => Err(meta.error(
                "unknown word; a struct can have `partition_key`, `row_key`, `rename_all`, `view`, `columns`, \
                 `crate`",
            )),
        }
        });
        found
    }
}

impl OnField {
    pub fn read(attributes: &[Attribute], errors: &mut Errors) -> OnField {
        let mut found = OnField::default();
        for_each(attributes, errors, |meta, word| {
            use syn::spanned::Spanned;
            let span = meta.path.span();
            let role = match word {
                "partition_key" => Role::PartitionKey,
                "row_key" => Role::RowKey,
                "etag" => Role::ETag,
                "timestamp" => Role::Timestamp,
                "rest" => Role::Rest,
                "skip" => Role::Skip,
                "rename" => return put(&mut found.rename, text(meta)?, meta, word),
                "json" => return put(&mut found.json, span, meta, word),
                "display" => return put(&mut found.display, span, meta, word),
                "encrypt" => return put(&mut found.encrypt, span, meta, word),
                "stored" => return put(&mut found.stored, span, meta, word),
                "default" if meta.input.peek(syn::Token![=]) => {
                    return put(&mut found.default, DefaultValue::From(path(meta)?), meta, word);
                }
                "default" => return put(&mut found.default, DefaultValue::OfType, meta, word),
                _ => {
                    return Err(meta.error(
                        "unknown word; a field can have `partition_key`, `row_key`, `rename`, `skip`, `default`, \
                         `json`, `display`, `etag`, `timestamp`, `rest`, `encrypt`, `stored`",
                    ));
                }
            };
            if meta.input.peek(syn::Token![=]) {
                return Err(meta.error(match role {
                    Role::PartitionKey | Role::RowKey => {
                        "a template of a key belongs to the struct, not to a field"
                    }
                    _ => "this word has no value",
                }));
            }
            match found.role.replace((role, span)) {
                None => Ok(()),
                Some((other, _)) if other == role => Err(meta.error(format!("`{word}` is given twice"))),
                Some((other, _)) => {
                    Err(meta.error(format!("a field cannot be `{}` and `{word}`", other.name())))
                }
            }
        });
        found
    }
}
