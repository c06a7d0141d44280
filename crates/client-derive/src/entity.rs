//! `#[derive(Entity)]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, GenericArgument, Ident, LitStr, PathArguments, Type, Visibility};

use crate::attributes::{DefaultValue, OnField, OnStruct, Role};
use crate::errors::Errors;
use crate::names::{self, Style};
use crate::template::Template;

/// Functions that every entity has, besides those for its properties.
const SYSTEM_COLUMNS: [&str; 3] = ["partition_key", "row_key", "timestamp"];

struct Field {
    ident: Ident,
    visibility: Visibility,
    ty: Type,
    attributes: OnField,
    /// In which key's template it is named.
    in_template: bool,
    /// The name in the table, if it is a property.
    property: Option<LitStr>,
}

impl Field {
    fn role(&self) -> Option<Role> {
        self.attributes.role.map(|(role, _)| role)
    }

    /// Whether it is stored as text that is made from its value.
    fn is_text(&self) -> bool {
        self.attributes.json.is_some() || self.attributes.display.is_some()
    }
}

/// Where a key comes from.
enum Key {
    Field(usize),
    Template(Template),
    Missing,
}

pub fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let on_struct = OnStruct::read(&input.attrs, &mut errors);
    let krate = on_struct.krate.clone().map_or_else(|| quote!(::lazulite_client), |path| path.into_token_stream());

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
                "an entity is a struct with named fields; several kinds of entity are an enum with #[derive(EntityKind)], \
                 and a value with names is one with #[derive(Enumeration)]",
            ));
        }
        Data::Union(data) => {
            return Err(syn::Error::new_spanned(data.union_token, "an entity is a struct with named fields"));
        }
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        errors.at(lifetime, "an entity owns its values: it is read from an answer that does not live as long");
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

    let code = Code { krate, ident: &input.ident, generics: &input.generics, fields: &fields, partition_key, row_key };
    let entity = code.entity();
    let columns = code.columns(&input.vis, on_struct.columns.as_ref());
    errors.finish(quote!(#entity #columns))
}

/// Finds the key's field or template.
fn key(fields: &mut [Field], template: Option<LitStr>, role: Role, errors: &mut Errors) -> Key {
    let marked: Vec<usize> = (0..fields.len()).filter(|at| fields[*at].role() == Some(role)).collect();
    for extra in marked.iter().skip(1) {
        let message = format!("only one field can be the {}; several make a key by a template on the struct", role.name());
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
        return Key::Template(Template { text: LitStr::new("", Span::call_site()), prefix: String::new(), fields: vec![] });
    };
    for named in &template.fields {
        match fields.iter_mut().find(|field| field.ident.unraw() == named.ident.unraw()) {
            Some(field) => match field.role() {
                None | Some(Role::PartitionKey | Role::RowKey) => field.in_template = true,
                Some(Role::Skip) => errors.at(
                    &field.ident,
                    format!("`{}` is part of a key, so that it is not a property anyway: remove `skip`", field.ident),
                ),
                Some(other) => errors.at(
                    &field.ident,
                    format!("`{}` is the entity's `{}` and cannot be part of a key", field.ident, other.name()),
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
                errors.push(syn::Error::new(span, format!("`{word}` is for a property, but `{}` is {what}", field.ident)));
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
        errors.take(names::check_property(&name.value(), name.span()));
        if SYSTEM_COLUMNS.contains(&plain.as_str()) {
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
            let message = format!("the property `{}` is already that of the field `{}`", name.value(), earlier.ident);
            errors.push(syn::Error::new(name.span(), message));
        }
        fields[at].property = Some(name);
    }
}

/// Everything that the code is made from.
struct Code<'a> {
    krate: TokenStream,
    ident: &'a Ident,
    generics: &'a syn::Generics,
    fields: &'a [Field],
    partition_key: Key,
    row_key: Key,
}

impl Code<'_> {
    fn entity(&self) -> TokenStream {
        let Code { krate, ident, .. } = self;
        let (impl_generics, type_generics, where_clause) = self.generics.split_for_impl();
        let columns = self.column_list();
        let encrypted = self.properties().filter(|(field, _)| field.attributes.encrypt.is_some()).map(|(_, name)| name);
        let keys = self.keys();
        let writes = self.writes();
        let read = self.read();
        let etag = self.fields.iter().find(|field| field.role() == Some(Role::ETag)).map(|field| {
            let (ident, span) = (&field.ident, span_of(&field.ty));
            let as_etag = quote_spanned!(span=> #krate::__private::ETagField::as_etag(&self.#ident));
            quote! {
                fn etag(&self) -> ::core::option::Option<&str> {
                    #as_etag
                }
            }
        });
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::Entity for #ident #type_generics #where_clause {
                const COLUMNS: ::core::option::Option<&'static [&'static str]> = #columns;
                const ENCRYPTED: &'static [&'static str] = &[#(#encrypted),*];

                fn keys(&self) -> ::core::result::Result<#krate::Keys<'_>, #krate::EntityError> {
                    #keys
                }

                fn write<'entity>(
                    &'entity self,
                    out: &mut ::std::vec::Vec<#krate::Property<'entity>>,
                ) -> ::core::result::Result<(), #krate::EntityError> {
                    let _ = &out;
                    #(#writes)*
                    ::core::result::Result::Ok(())
                }

                fn read(row: #krate::Row<'_>) -> ::core::result::Result<Self, #krate::EntityError> {
                    #read
                }

                #etag
            }
        }
    }

    fn properties(&self) -> impl Iterator<Item = (&Field, &LitStr)> {
        self.fields.iter().filter_map(|field| field.property.as_ref().map(|name| (field, name)))
    }

    fn column_list(&self) -> TokenStream {
        if self.fields.iter().any(|field| field.role() == Some(Role::Rest)) {
            return quote!(::core::option::Option::None);
        }
        let mut names: Vec<String> = Vec::new();
        for (key, name) in [(&self.partition_key, "PartitionKey"), (&self.row_key, "RowKey")] {
            if !matches!(key, Key::Missing) {
                names.push(name.to_owned());
            }
        }
        if self.fields.iter().any(|field| field.role() == Some(Role::Timestamp)) {
            names.push("Timestamp".to_owned());
        }
        names.extend(self.properties().map(|(_, name)| name.value()));
        quote!(::core::option::Option::Some(&[#(#names),*]))
    }

    fn keys(&self) -> TokenStream {
        let krate = &self.krate;
        if matches!(self.partition_key, Key::Missing) || matches!(self.row_key, Key::Missing) {
            return quote!(::core::result::Result::Err(#krate::__private::no_keys()));
        }
        let partition_key = self.key("PartitionKey", &self.partition_key);
        let row_key = self.key("RowKey", &self.row_key);
        quote! {
            ::core::result::Result::Ok(#krate::Keys { partition_key: #partition_key, row_key: #row_key })
        }
    }

    fn key(&self, name: &str, key: &Key) -> TokenStream {
        let krate = &self.krate;
        match key {
            Key::Missing => TokenStream::new(),
            Key::Field(at) => {
                let Field { ident, ty, attributes, .. } = &self.fields[*at];
                if attributes.display.is_some() {
                    quote_spanned!(span_of(ty)=> ::std::borrow::Cow::Owned(::std::string::ToString::to_string(&self.#ident)))
                } else {
                    quote_spanned!(span_of(ty)=> #krate::KeyField::to_key(&self.#ident))
                }
            }
            Key::Template(Template { prefix, fields, .. }) if fields.is_empty() => {
                quote!(::std::borrow::Cow::Borrowed(#prefix))
            }
            Key::Template(template) => {
                let prefix = &template.prefix;
                let pieces = template.fields.iter().map(|piece| {
                    let Some(field) = self.fields.iter().find(|field| field.ident.unraw() == piece.ident.unraw()) else {
                        return TokenStream::new();
                    };
                    let (ident, plain, separator) = (&field.ident, field.ident.unraw().to_string(), &piece.separator);
                    let format = match piece.format.as_str() {
                        "" => "{}".to_owned(),
                        format => format!("{{:{format}}}"),
                    };
                    let format = LitStr::new(&format, template.text.span());
                    let text = quote_spanned!(span_of(&field.ty)=> ::core::format_args!(#format, self.#ident));
                    quote!(key.field(#plain, #text, #separator)?;)
                });
                quote! {{
                    let mut key = #krate::__private::KeyWriter::new(#name);
                    key.literal(#prefix);
                    #(#pieces)*
                    key.finish()
                }}
            }
        }
    }

    fn writes(&self) -> Vec<TokenStream> {
        let krate = &self.krate;
        let mut writes: Vec<TokenStream> = self
            .properties()
            .map(|(field, name)| {
                let Field { ident, ty, .. } = field;
                if !field.is_text() {
                    return quote_spanned! {span_of(ty)=>
                        #krate::__private::write_field(#name, &self.#ident, out)?;
                    };
                }
                let text = |value: TokenStream| {
                    if field.attributes.json.is_some() {
                        quote_spanned!(span_of(ty)=> #krate::__private::to_json(#name, #value)?)
                    } else {
                        quote_spanned!(span_of(ty)=> ::std::string::ToString::to_string(#value))
                    }
                };
                if option_of(ty).is_some() {
                    let text = text(quote!(value));
                    quote! {
                        if let ::core::option::Option::Some(value) = &self.#ident {
                            #krate::__private::write_text(#name, #text, out);
                        }
                    }
                } else {
                    let text = text(quote!(&self.#ident));
                    quote!(#krate::__private::write_text(#name, #text, out);)
                }
            })
            .collect();
        for field in self.fields.iter().filter(|field| field.role() == Some(Role::Rest)) {
            let (ident, own) = (&field.ident, self.properties().map(|(_, name)| name));
            writes.push(quote_spanned! {span_of(&field.ty)=>
                #krate::__private::write_rest(&self.#ident, &[#(#own),*], out)?;
            });
        }
        writes
    }

    fn read(&self) -> TokenStream {
        let krate = &self.krate;
        let value = |at: usize| Ident::new(&format!("value_{at}"), Span::mixed_site());

        // Where the value of each property is put.
        let mut declared = Vec::new();
        let mut arms = Vec::new();
        for (at, field) in self.fields.iter().enumerate() {
            if let Some(name) = &field.property {
                if field.in_template {
                    // It is read from the key. The copy is there for filters, and is not part of the rest.
                    arms.push(quote!(#name => {}));
                    continue;
                }
                let value = value(at);
                declared.push(quote! {
                    let mut #value: ::core::option::Option<#krate::Value<'_>> = ::core::option::Option::None;
                });
                arms.push(quote!(#name => #value = ::core::option::Option::Some(property.value),));
            }
        }
        let has_rest = self.fields.iter().any(|field| field.role() == Some(Role::Rest));
        if has_rest {
            declared.push(quote!(let mut rest: ::std::vec::Vec<#krate::Property<'_>> = ::std::vec::Vec::new();));
            arms.push(quote!(_ => rest.push(property),));
        } else {
            arms.push(quote!(_ => {}));
        }

        let mut before = Vec::new();
        let mut checks = Vec::new();
        let mut parsed: Vec<String> = Vec::new();
        for (key, name, of_row) in [
            (&self.partition_key, "PartitionKey", format_ident!("partition_key")),
            (&self.row_key, "RowKey", format_ident!("row_key")),
        ] {
            let Key::Template(template) = key else { continue };
            let (text, prefix) = (&template.text, &template.prefix);
            if template.fields.is_empty() {
                before.push(quote!(#krate::__private::check_constant_key(#name, #prefix, &row.#of_row)?;));
                continue;
            }
            let pieces = template.fields.iter().map(|piece| {
                let Some(field) = self.fields.iter().find(|field| field.ident.unraw() == piece.ident.unraw()) else {
                    return TokenStream::new();
                };
                let (plain, ty, separator) = (field.ident.unraw().to_string(), &field.ty, &piece.separator);
                // A key's own field is read from the key; a field that is named twice is read once.
                let is_first = field.role().is_none() && !parsed.contains(&plain);
                let place = if is_first { format_ident!("part_{}", plain) } else { format_ident!("_again_{}", plain) };
                parsed.push(plain.clone());
                quote_spanned!(span_of(ty)=> let #place: #ty = key.field::<#ty>(#plain, #separator)?;)
            });
            before.push(quote! {
                let mut key = #krate::__private::KeyReader::new(#name, #text, &row.#of_row);
                key.literal(#prefix)?;
                #(#pieces)*
                key.end()?;
            });
            checks.push(quote! {
                #krate::__private::check_same_key(#name, &of_row.#of_row, &keys.#of_row)?;
            });
        }

        let fields = self.fields.iter().enumerate().map(|(at, field)| {
            let ident = &field.ident;
            let expression = self.read_field(field, &value(at));
            quote!(#ident: #expression)
        });
        let construct = quote!(Self { #(#fields,)* });
        let can_check = !matches!(self.partition_key, Key::Missing) && !matches!(self.row_key, Key::Missing);
        let finish = if checks.is_empty() || !can_check {
            quote!(::core::result::Result::Ok(#construct))
        } else {
            // A copy of the keys is needed, since they may be moved into fields.
            quote! {
                let of_row = #krate::Keys {
                    partition_key: ::core::clone::Clone::clone(&row.partition_key),
                    row_key: ::core::clone::Clone::clone(&row.row_key),
                };
                let entity = #construct;
                {
                    let keys = #krate::Entity::keys(&entity)?;
                    #(#checks)*
                }
                ::core::result::Result::Ok(entity)
            }
        };
        quote! {
            #(#declared)*
            for property in row.properties {
                match &*property.name {
                    #(#arms)*
                }
            }
            #(#before)*
            #finish
        }
    }

    fn read_field(&self, field: &Field, value: &Ident) -> TokenStream {
        let krate = &self.krate;
        let Field { ident, ty, attributes, .. } = field;
        let span = span_of(ty);
        let key = |name: &str, of_row: Ident| {
            if attributes.display.is_some() {
                quote_spanned!(span=> #krate::__private::read_displayed_key(#name, &row.#of_row)?)
            } else {
                quote_spanned!(span=> #krate::__private::read_key(#name, row.#of_row)?)
            }
        };
        let default = attributes.default.as_ref().map(|default| match default {
            DefaultValue::OfType => quote_spanned!(span=> ::core::default::Default::default),
            DefaultValue::From(path) => quote!(#path),
        });
        match field.role() {
            Some(Role::PartitionKey) => return key("PartitionKey", format_ident!("partition_key")),
            Some(Role::RowKey) => return key("RowKey", format_ident!("row_key")),
            Some(Role::ETag) => return quote_spanned!(span=> #krate::__private::ETagField::from_etag(row.etag)),
            Some(Role::Timestamp) => {
                return quote_spanned! {span=>
                    #krate::Field::from_value("Timestamp", row.timestamp.map(#krate::Value::DateTime))?
                };
            }
            Some(Role::Rest) => return quote_spanned!(span=> #krate::__private::RestField::from_rest(rest)),
            Some(Role::Skip) => {
                let default = default.unwrap_or_else(|| quote_spanned!(span=> ::core::default::Default::default));
                return quote!(#default());
            }
            None => {}
        }
        if field.in_template {
            let part = format_ident!("part_{}", ident.unraw().to_string());
            return quote!(#part);
        }
        let Some(name) = &field.property else { return TokenStream::new() };
        if !field.is_text() {
            return match default {
                Some(default) => quote!(#krate::__private::read_or(#name, #value, #default)?),
                None => quote_spanned!(span=> <#ty as #krate::Field>::from_value(#name, #value)?),
            };
        }
        let read = if attributes.json.is_some() { quote!(from_json) } else { quote!(from_text) };
        let read = quote_spanned!(span=> #krate::__private::#read(#name, &text)?);
        let (read, absent) = match option_of(ty) {
            Some(_) => (quote!(::core::option::Option::Some(#read)), quote!(::core::option::Option::None)),
            None => {
                let error = quote!(#krate::__private::absent(#name));
                (read, quote!(return ::core::result::Result::Err(#error)))
            }
        };
        let absent = default.map_or(absent, |default| quote!(#default()));
        quote! {
            match #krate::__private::text_of(#name, #value)? {
                ::core::option::Option::Some(text) => #read,
                ::core::option::Option::None => #absent,
            }
        }
    }

    /// A function for each column, on the struct or on a type of their own.
    fn columns(&self, visibility: &Visibility, own_type: Option<&Ident>) -> TokenStream {
        let Code { krate, ident, .. } = self;
        let (impl_generics, type_generics, where_clause) = self.generics.split_for_impl();
        let entity = quote!(#ident #type_generics);
        let function = |visibility: &Visibility, function: &Ident, name: &str, ty: TokenStream| {
            let documentation = format!("The column `{name}`, for filters.");
            quote! {
                #[doc = #documentation]
                #[allow(dead_code, non_snake_case)]
                #[must_use]
                #visibility fn #function() -> #krate::Column<#entity, #ty> {
                    #krate::Column::named(#name)
                }
            }
        };
        let text = quote!(::std::string::String);
        let mut functions = vec![
            function(visibility, &format_ident!("partition_key"), "PartitionKey", text.clone()),
            function(visibility, &format_ident!("row_key"), "RowKey", text.clone()),
            function(visibility, &format_ident!("timestamp"), "Timestamp", quote!(#krate::DateTime)),
        ];
        for field in self.fields {
            let Field { ident, visibility, ty, .. } = field;
            let is_system = SYSTEM_COLUMNS.contains(&ident.unraw().to_string().as_str());
            match (field.role(), &field.property) {
                (Some(Role::PartitionKey), _) if !is_system => {
                    functions.push(function(visibility, ident, "PartitionKey", text.clone()));
                }
                (Some(Role::RowKey), _) if !is_system => {
                    functions.push(function(visibility, ident, "RowKey", text.clone()));
                }
                // What is encrypted cannot be compared.
                (None, Some(name)) if field.attributes.encrypt.is_none() && names::can_be_filtered(&name.value()) => {
                    let compared = if field.is_text() {
                        text.clone()
                    } else {
                        quote_spanned!(span_of(ty)=> <#ty as #krate::Field>::Compared)
                    };
                    functions.push(function(visibility, ident, &name.value(), compared));
                }
                _ => {}
            }
        }
        match own_type {
            None => quote! {
                #[automatically_derived]
                impl #impl_generics #entity #where_clause {
                    #(#functions)*
                }
            },
            Some(columns) => {
                let documentation = format!("The columns of [`{ident}`], for filters.");
                quote! {
                    #[doc = #documentation]
                    #[allow(dead_code)]
                    #visibility struct #columns;

                    #[automatically_derived]
                    impl #columns {
                        #(#functions)*
                    }
                }
            }
        }
    }
}

/// Errors about a type are shown where it is written. Names are looked up where the derive is.
fn span_of(ty: &Type) -> Span {
    ty.span().resolved_at(Span::call_site())
}

/// The `T` of an `Option<T>`, by its spelling.
fn option_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    if last.ident != "Option" {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}
