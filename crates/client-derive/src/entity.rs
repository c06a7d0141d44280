//! `#[derive(Entity)]`: reads the struct and refuses what cannot be stored. `entity_code` writes the code.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, Ident, LitStr, Type, Visibility};

use crate::attributes::{OnField, OnStruct, Role};
use crate::entity_code::EntityCode;
use crate::errors::Errors;
use crate::names::{self, Style};
use crate::template::Template;

/// Functions that every entity has, besides those for its properties.
pub const SYSTEM_COLUMNS: [&str; 3] = ["partition_key", "row_key", "timestamp"];

pub struct Field {
    pub ident: Ident,
    pub visibility: Visibility,
    pub ty: Type,
    pub attributes: OnField,
    /// In which key's template it is named.
    pub in_template: bool,
    /// The name in the table, if it is a property.
    pub property: Option<LitStr>,
}

impl Field {
    pub fn role(&self) -> Option<Role> {
        self.attributes.role.map(|(role, _)| role)
    }

    /// Whether it is stored as text that is made from its value.
    pub fn is_text(&self) -> bool {
        self.attributes.json.is_some() || self.attributes.display.is_some()
    }
}

/// Where a key comes from.
pub enum Key {
    Field(usize),
    Template(Template),
    Missing,
}

pub fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let on_struct = OnStruct::read(&input.attrs, &mut errors);
    let krate =
        on_struct.krate.clone().map_or_else(|| quote!(::lazulite_client), |path| path.into_token_stream());

    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            other => {
                let place: &dyn ToTokens = if other.is_empty() { &input.ident } else { other };
                return Err(syn::Error::new_spanned(place, "an entity is a struct with named fields"));
            }
        },
        Data::Enum(data) => {
            return Err(syn::Error::new_spanned(
                data.enum_token,
                "an entity is a struct with named fields; several kinds of entity are an enum with \
                 #[derive(EntityKind)], and a value with names is one with #[derive(Enumeration)]",
            ));
        }
        Data::Union(data) => {
            return Err(syn::Error::new_spanned(data.union_token, "an entity is a struct with named fields"));
        }
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        errors
            .at(lifetime, "an entity owns its values: it is read from an answer that does not live as long");
    }
    if let (Some(columns), false) = (&on_struct.columns, input.generics.params.is_empty()) {
        errors.at(columns, "the columns of a generic struct cannot have a type of their own");
    }

    let style = on_struct.rename_all.unwrap_or(Style::Exact);
    let mut fields: Vec<Field> = Vec::new();
    for field in named {
        let Some(ident) = field.ident.clone() else { continue };
        let attributes = OnField::read(&field.attrs, &mut errors);
        let (visibility, ty) = (field.vis.clone(), field.ty.clone());
        fields.push(Field { ident, visibility, ty, attributes, in_template: false, property: None });
    }

    let partition_key = key(&mut fields, on_struct.partition_key, Role::PartitionKey, &mut errors);
    let row_key = key(&mut fields, on_struct.row_key, Role::RowKey, &mut errors);
    if !on_struct.is_view {
        for (key, role) in [(&partition_key, Role::PartitionKey), (&row_key, Role::RowKey)] {
            if let Key::Missing = key {
                let word = role.name();
                errors.at(
                    &input.ident,
                    format!(
                        "no field is marked #[entity({word})], and the struct has no #[entity({word} = \"...\")]; \
                         a struct that is only read can be an #[entity(view)]"
                    ),
                );
            }
        }
    }
    check_roles(&fields, &mut errors);
    name_properties(&mut fields, style, &mut errors);

    let code = EntityCode {
        krate,
        ident: &input.ident,
        generics: &input.generics,
        fields: &fields,
        partition_key,
        row_key,
    };
    let entity = code.entity();
    let columns = code.columns(&input.vis, on_struct.columns.as_ref());
    errors.finish(quote!(#entity #columns))
}

/// Finds the key's field or template.
fn key(fields: &mut [Field], template: Option<LitStr>, role: Role, errors: &mut Errors) -> Key {
    let marked: Vec<usize> = (0..fields.len()).filter(|at| fields[*at].role() == Some(role)).collect();
    for extra in marked.iter().skip(1) {
        let message = format!(
            "only one field can be the {}; several make a key by a template on the struct",
            role.name()
        );
        errors.at(&fields[*extra].ident, message);
    }
    let Some(literal) = template else {
        return marked.first().map_or(Key::Missing, |at| Key::Field(*at));
    };
    if let Some(at) = marked.first() {
        errors.at(
            &fields[*at].ident,
            format!("the struct already has a template for its {0}: #[entity({0} = ...)]", role.name()),
        );
    }
    let Some(template) = errors.take(Template::parse(literal)) else {
        // The error is noted. Any template will do, so that nothing else is reported about the key.
        return Key::Template(Template {
            text: LitStr::new("", Span::call_site()),
            prefix: String::new(),
            fields: vec![],
        });
    };
    for named in &template.fields {
        match fields.iter_mut().find(|field| field.ident.unraw() == named.ident.unraw()) {
            Some(field) => match field.role() {
                None | Some(Role::PartitionKey | Role::RowKey) => field.in_template = true,
                Some(Role::Skip) => errors.at(
                    &field.ident,
                    format!(
                        "`{}` is part of a key, so that it is not a property anyway: remove `skip`",
                        field.ident
                    ),
                ),
                Some(other) => errors.at(
                    &field.ident,
                    format!(
                        "`{}` is the entity's `{}` and cannot be part of a key",
                        field.ident,
                        other.name()
                    ),
                ),
            },
            None => errors.push(syn::Error::new(
                template.text.span(),
                format!("the struct has no field `{}`", named.ident),
            )),
        }
    }
    Key::Template(template)
}

/// Refuses words that do not go together.
fn check_roles(fields: &[Field], errors: &mut Errors) {
    let mut single: Vec<Role> = Vec::new();
    for field in fields {
        let OnField { role, rename, default, json, display, encrypt, stored } = &field.attributes;
        if let Some((role @ (Role::ETag | Role::Timestamp | Role::Rest), span)) = *role {
            if single.contains(&role) {
                errors.push(syn::Error::new(span, format!("only one field can be `{}`", role.name())));
            }
            single.push(role);
        }
        if let (Some(_), Some(span)) = (json, display) {
            errors.push(syn::Error::new(*span, "a field is either `json` or `display`"));
        }
        if let Some(span) = stored
            && !(field.in_template && role.is_none())
        {
            errors.push(syn::Error::new(*span, "`stored` is for a field that is part of a key's template"));
        }
        let what = match role {
            None if field.in_template && stored.is_none() => "part of a key",
            None => continue,
            Some((Role::PartitionKey | Role::RowKey, _)) => "a key",
            Some((Role::ETag, _)) => "the ETag",
            Some((Role::Timestamp, _)) => "the Timestamp",
            Some((Role::Rest, _)) => "the rest of the properties",
            Some((Role::Skip, _)) => "not stored",
        };
        let is_key = matches!(role, Some((Role::PartitionKey | Role::RowKey, _)));
        let is_skipped = matches!(role, Some((Role::Skip, _)));
        let misplaced = [
            ("rename", rename.as_ref().map(LitStr::span)),
            ("json", *json),
            ("display", display.filter(|_| !is_key)),
            ("default", default.as_ref().filter(|_| !is_skipped).map(|_| field.ident.span())),
        ];
        for (word, span) in misplaced {
            if let Some(span) = span {
                errors.push(syn::Error::new(
                    span,
                    format!("`{word}` is for a property, but `{}` is {what}", field.ident),
                ));
            }
        }
        if let Some(span) = encrypt {
            let reason = if is_key || role.is_none() { ": the service finds the entity by it" } else { "" };
            errors.push(syn::Error::new(
                *span,
                format!("only a property can be encrypted, but `{}` is {what}{reason}", field.ident),
            ));
        }
    }
}

fn name_properties(fields: &mut [Field], style: Style, errors: &mut Errors) {
    for at in 0..fields.len() {
        let field = &fields[at];
        if field.role().is_some() || (field.in_template && field.attributes.stored.is_none()) {
            continue;
        }
        let plain = field.ident.unraw().to_string();
        let name = match &field.attributes.rename {
            Some(name) => name.clone(),
            None => LitStr::new(&style.apply(&plain), field.ident.span()),
        };
        let is_valid = errors.take(names::check_property(&name.value(), name.span())).is_some();
        if is_valid && SYSTEM_COLUMNS.contains(&plain.as_str()) {
            errors.at(
                &field.ident,
                format!(
                    "a property's field cannot be called `{plain}`, because that is the column of every entity; \
                     mark it with #[entity({plain})] or give it another name"
                ),
            );
        }
        let earlier = fields[..at].iter().find(|earlier| {
            earlier.property.as_ref().is_some_and(|property| property.value() == name.value())
        });
        if let Some(earlier) = earlier {
            let message =
                format!("the property `{}` is already that of the field `{}`", name.value(), earlier.ident);
            errors.push(syn::Error::new(name.span(), message));
        }
        fields[at].property = Some(name);
    }
}
