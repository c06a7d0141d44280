//! The derive macros of `lazulite-client`, which exports them: `Entity`, `EntityKind` and `Enumeration`.
//!
//! Promises: errors are at the word, field or type that they are about, and say what to write instead. Leaves to
//! others: everything that does not depend on the fields, which is in the client's `__private`.

mod attributes;
mod entity;
mod entity_code;
mod enumeration;
mod errors;
mod kind;
mod names;
mod template;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

fn run(input: DeriveInput, derive: fn(DeriveInput) -> syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    derive(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct an entity: it can be stored, read back, and named in filters.
///
/// Every field that has no other mark is a property with the field's name.
///
/// On the struct:
///
/// - `partition_key = "..."`, `row_key = "..."`: a key that is put together from fields, and taken apart when it is
///   read, such as `"{department}_{year:04}"`. Fields are written by `Display` and read by `FromStr`. Without a field,
///   the key is the same for all entities.
/// - `rename_all = "PascalCase"`: how properties are named; also `camelCase`, `snake_case`, `SCREAMING_SNAKE_CASE`,
///   `lowercase` and `UPPERCASE`. Without it, a property has exactly its field's name.
/// - `view`: the struct is only read, so that it needs no keys.
/// - `columns = EmployeeColumns`: the functions for filters are on this new type, for a struct that has functions with
///   these names of its own.
/// - `crate = path`: what the client is called, if not `lazulite_client`.
///
/// On a field:
///
/// - `partition_key`, `row_key`: the field is the key; text, an integer, a GUID, or with `display` anything that has
///   `Display` and `FromStr`.
/// - `rename = "Name"`: the property's name.
/// - `default`, `default = path`: what the field is when the property is absent. Without it that is an error, except
///   for an `Option`.
/// - `json`: stored as JSON in a text, by serde.
/// - `display`: stored as text, by `Display` and `FromStr`.
/// - `skip`: not stored. When it is read, it has its default.
/// - `etag`: the entity's ETag, a `String` or an `Option<String>`.
/// - `timestamp`: the entity's Timestamp, an instant, best in an `Option`.
/// - `rest`: the properties that have no field, in a `BTreeMap<String, Value<'static>>`, a `HashMap` of the same, or a
///   `Vec<Property<'static>>`.
/// - `encrypt`: sealed before it leaves the program. It cannot be named in filters.
/// - `stored`: a field of a key's template is a property as well.
///
/// For each property there is a function on the struct that names its column in filters, and for every entity
/// `partition_key()`, `row_key()` and `timestamp()`.
///
/// ```
/// use std::collections::BTreeMap;
/// use lazulite_client::{Entity, Keys, Value};
///
/// #[derive(Entity)]
/// #[entity(partition_key = "{department}_{year:04}", rename_all = "PascalCase")]
/// struct Review {
///     department: String,
///     year: u16,
///     #[entity(row_key)]
///     employee: String,
///     rating: i32,
///     comment: Option<String>,
///     #[entity(default)]
///     tags: String,
///     #[entity(etag)]
///     etag: Option<String>,
///     #[entity(rest)]
///     rest: BTreeMap<String, Value<'static>>,
/// }
///
/// let review = Review {
///     department: "Sales".into(), year: 2024, employee: "0042".into(), rating: 5, comment: None, tags: "".into(),
///     etag: None, rest: BTreeMap::new(),
/// };
/// assert_eq!(review.keys()?, Keys::new("Sales_2024", "0042"));
///
/// let filter = Review::partition_key().starts_with("Sales_") & Review::rating().ge(4);
/// assert_eq!(filter.to_string(), "PartitionKey ge 'Sales_' and PartitionKey lt 'Sales`' and Rating ge 4");
/// # Ok::<(), lazulite_client::EntityError>(())
/// ```
///
/// A key that could not be taken apart again is refused: two fields side by side by the compiler, a field that contains
/// the text that follows it when the entity is written.
#[proc_macro_derive(Entity, attributes(entity))]
pub fn derive_entity(input: TokenStream) -> TokenStream {
    run(parse_macro_input!(input as DeriveInput), entity::derive)
}

/// Makes an enum of entities an entity: several kinds in one table, told apart by a property or by how their row keys
/// begin.
///
/// With `property = "EntityType"` the property is written with every entity and decides as what it is read. A kind's
/// value is its name, or `value = "..."`. With `row_key_prefix` each kind has a `prefix = "..."`, with which the row
/// keys of its struct must begin; of several prefixes that fit, the longest counts. An entity of no kind is an error,
/// unless a variant marked `other` takes it, which mostly holds a `DynamicEntity`.
///
/// ```
/// use lazulite_client::{DynamicEntity, Entity, EntityKind};
///
/// #[derive(Entity)]
/// struct Department {
///     #[entity(partition_key)]
///     name: String,
///     #[entity(row_key)]
///     id: String,
///     budget: i64,
/// }
///
/// #[derive(Entity)]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     id: String,
///     email: String,
/// }
///
/// #[derive(EntityKind)]
/// #[entity(property = "EntityType")]
/// enum Staff {
///     Department(Department),
///     #[entity(value = "Person")]
///     Employee(Employee),
///     #[entity(other)]
///     Other(DynamicEntity),
/// }
///
/// let ada = Staff::from(Employee { department: "Sales".into(), id: "1".into(), email: "ada@example.com".into() });
/// let mut properties = Vec::new();
/// ada.write(&mut properties)?;
/// assert_eq!(properties[1].name, "EntityType");
/// assert_eq!(Staff::kind().eq("Person").to_string(), "EntityType eq 'Person'");
/// # Ok::<(), lazulite_client::EntityError>(())
/// ```
#[proc_macro_derive(EntityKind, attributes(entity))]
pub fn derive_entity_kind(input: TokenStream) -> TokenStream {
    run(parse_macro_input!(input as DeriveInput), kind::derive)
}

/// Makes an enum without fields a value: stored as text by the names of its variants, usable as a property, as a key
/// and in filters.
///
/// `rename_all` on the enum and `rename` on a variant change the names. `display` on the enum adds `Display` and
/// `FromStr`, which templates of keys need. A variant marked `other` that holds a `String` takes the names that no
/// other variant has; without one they are an error.
///
/// ```
/// use lazulite_client::{Entity, Enumeration};
///
/// #[derive(Enumeration)]
/// #[entity(rename_all = "camelCase")]
/// enum Leave {
///     Parental,
///     #[entity(rename = "ill")]
///     Sickness,
/// }
///
/// #[derive(Entity)]
/// struct Absence {
///     #[entity(partition_key)]
///     employee: String,
///     #[entity(row_key)]
///     day: String,
///     leave: Leave,
/// }
///
/// assert_eq!(Absence::leave().eq(Leave::Sickness).to_string(), "leave eq 'ill'");
/// ```
#[proc_macro_derive(Enumeration, attributes(entity))]
pub fn derive_enumeration(input: TokenStream) -> TokenStream {
    run(parse_macro_input!(input as DeriveInput), enumeration::derive)
}
