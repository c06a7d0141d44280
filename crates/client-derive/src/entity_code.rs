//! The code that `#[derive(Entity)]` writes, from fields that `entity` has checked.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{GenericArgument, Ident, LitStr, PathArguments, Type, Visibility};

use crate::attributes::{DefaultValue, Role};
use crate::entity::{Field, Key, SYSTEM_COLUMNS};
use crate::names;
use crate::template::Template;

/// Everything that the code is made from.
pub struct EntityCode<'a> {
    pub krate: TokenStream,
    pub ident: &'a Ident,
    pub generics: &'a syn::Generics,
    pub fields: &'a [Field],
    pub partition_key: Key,
    pub row_key: Key,
}

impl EntityCode<'_> {
    pub fn entity(&self) -> TokenStream {
        let EntityCode { krate, ident, .. } = self;
        let (impl_generics, type_generics, where_clause) = self.generics.split_for_impl();
        let columns = self.column_list();
        let encrypted =
            self.properties().filter(|(field, _)| field.attributes.encrypt.is_some()).map(|(_, name)| name);
        let keys = self.keys();
        let writes = self.writes();
        let read = self.read();
        let etag = self.fields.iter().find(|field| field.role() == Some(Role::ETag)).map(|field| {
            let (ident, ty) = (&field.ident, &field.ty);
            let as_etag = quote_spanned!(span_of(ty)=> <#ty as #krate::__private::ETagField>::as_etag);
            quote! {
                fn etag(&self) -> ::core::option::Option<&str> {
                    #as_etag(&self.#ident)
                }
            }
        });
        let stamp = self.stamp();
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

                #stamp
            }
        }
    }

    /// The fields that a write changes.
    fn stamp(&self) -> Option<TokenStream> {
        let krate = &self.krate;
        let stamps: Vec<TokenStream> = self
            .fields
            .iter()
            .filter_map(|field| {
                let (ident, ty) = (&field.ident, &field.ty);
                match field.role()? {
                    Role::ETag => {
                        let from_etag =
                            quote_spanned!(span_of(ty)=> <#ty as #krate::__private::ETagField>::from_etag);
                        Some(quote! {
                            self.#ident =
                                #from_etag(::core::option::Option::Some(::std::borrow::Cow::Borrowed(etag)));
                        })
                    }
                    Role::Timestamp => {
                        let from_value = quote_spanned!(span_of(ty)=> <#ty as #krate::Field>::from_value);
                        // A field that must have a time keeps the old one when the service tells none.
                        Some(quote! {
                            if let ::core::result::Result::Ok(value) =
                                #from_value("Timestamp", timestamp.map(#krate::Value::DateTime))
                            {
                                self.#ident = value;
                            }
                        })
                    }
                    _ => None,
                }
            })
            .collect();
        (!stamps.is_empty()).then(|| {
            quote! {
                fn stamp(&mut self, etag: &str, timestamp: ::core::option::Option<#krate::DateTime>) {
                    let _ = (etag, timestamp);
                    #(#stamps)*
                }
            }
        })
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
                    let to_text = quote_spanned!(span_of(ty)=> <#ty as #krate::__private::KeyPart>::to_text);
                    quote!(::std::borrow::Cow::Owned(#to_text(&self.#ident)))
                } else {
                    let to_key = quote_spanned!(span_of(ty)=> <#ty as #krate::KeyField>::to_key);
                    quote!(#to_key(&self.#ident))
                }
            }
            Key::Template(Template { prefix, fields, .. }) if fields.is_empty() => {
                quote!(::std::borrow::Cow::Borrowed(#prefix))
            }
            Key::Template(template) => {
                let prefix = &template.prefix;
                let pieces = template.fields.iter().map(|piece| {
                    let Some(field) =
                        self.fields.iter().find(|field| field.ident.unraw() == piece.ident.unraw())
                    else {
                        return TokenStream::new();
                    };
                    let (ident, plain, separator) =
                        (&field.ident, field.ident.unraw().to_string(), &piece.separator);
                    let format = match piece.format.as_str() {
                        "" => "{}".to_owned(),
                        format => format!("{{:{format}}}"),
                    };
                    let format = LitStr::new(&format, template.text.span());
                    let text =
                        quote_spanned!(span_of(&field.ty)=> ::core::format_args!(#format, self.#ident));
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
                    let to_value = quote_spanned!(span_of(ty)=> <#ty as #krate::Field>::to_value);
                    return quote!(#krate::__private::write_value(#name, #to_value(&self.#ident, #name)?, out););
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
            let Field { ident, ty, .. } = field;
            let own = self.properties().map(|(_, name)| name);
            let write = quote_spanned!(span_of(ty)=> <#ty as #krate::__private::RestField>::write);
            writes.push(quote!(#write(&self.#ident, &[#(#own),*], out)?;));
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
            declared
                .push(quote!(let mut rest: ::std::vec::Vec<#krate::Property<'_>> = ::std::vec::Vec::new();));
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
                let Some(field) = self.fields.iter().find(|field| field.ident.unraw() == piece.ident.unraw())
                else {
                    return TokenStream::new();
                };
                let (plain, ty, separator) = (field.ident.unraw().to_string(), &field.ty, &piece.separator);
                // A key's own field is read from the key; a field that is named twice is read once.
                let is_first = field.role().is_none() && !parsed.contains(&plain);
                let place = if is_first {
                    format_ident!("part_{}", plain)
                } else {
                    format_ident!("_again_{}", plain)
                };
                parsed.push(plain.clone());
                let from_text = quote_spanned!(span_of(ty)=> <#ty as #krate::__private::KeyPart>::from_text);
                quote! {
                    let text = key.part(#separator)?;
                    let ::core::option::Option::Some(#place) = #from_text(text) else {
                        return ::core::result::Result::Err(key.unreadable(#plain, text));
                    };
                }
            });
            before.push(quote! {
                let mut key = #krate::__private::KeyReader::new(#name, #text, &row.#of_row);
                key.literal(#prefix)?;
                #(#pieces)*
                key.end()?;
            });
            checks.push(quote! {
                #krate::__private::check_same_key(#name, &row.#of_row, &keys.#of_row)?;
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
            quote! {
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
            let found = if attributes.display.is_some() {
                let from_key = quote_spanned!(span=> <#ty as #krate::__private::KeyPart>::from_own_text);
                quote!(#from_key(&row.#of_row))
            } else {
                let from_key = quote_spanned!(span=> <#ty as #krate::KeyField>::from_key);
                // Mostly the copy of a borrow: only a key with an escape in its JSON is more.
                quote!(#from_key(::core::clone::Clone::clone(&row.#of_row)))
            };
            quote! {
                match #found {
                    ::core::option::Option::Some(key) => key,
                    ::core::option::Option::None => {
                        return ::core::result::Result::Err(#krate::__private::unreadable_key(#name, &row.#of_row));
                    }
                }
            }
        };
        let default = attributes.default.as_ref().map(|default| match default {
            DefaultValue::OfType => quote_spanned!(span=> <#ty as ::core::default::Default>::default),
            DefaultValue::From(path) => quote!(#path),
        });
        let from_value = quote_spanned!(span=> <#ty as #krate::Field>::from_value);
        match field.role() {
            Some(Role::PartitionKey) => return key("PartitionKey", format_ident!("partition_key")),
            Some(Role::RowKey) => return key("RowKey", format_ident!("row_key")),
            Some(Role::ETag) => {
                let from_etag = quote_spanned!(span=> <#ty as #krate::__private::ETagField>::from_etag);
                return quote!(#from_etag(row.etag));
            }
            Some(Role::Timestamp) => {
                return quote!(#from_value("Timestamp", row.timestamp.map(#krate::Value::DateTime))?);
            }
            Some(Role::Rest) => {
                let from_rest = quote_spanned!(span=> <#ty as #krate::__private::RestField>::from_rest);
                return quote!(#from_rest(rest));
            }
            Some(Role::Skip) => {
                let default = default
                    .unwrap_or_else(|| quote_spanned!(span=> <#ty as ::core::default::Default>::default));
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
                Some(default) => quote! {
                    match #value {
                        ::core::option::Option::None => #default(),
                        value => #from_value(#name, value)?,
                    }
                },
                None => quote!(#from_value(#name, #value)?),
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
    pub fn columns(&self, visibility: &Visibility, own_type: Option<&Ident>) -> TokenStream {
        let EntityCode { krate, ident, .. } = self;
        let (impl_generics, type_generics, where_clause) = self.generics.split_for_impl();
        let entity = quote!(#ident #type_generics);
        let function = |visibility: &Visibility, function: &Ident, name: &str, ty: TokenStream| {
            let documentation = format!("The column `{name}`, for filters.");
            quote! {
                #[doc = #documentation]
                // A struct `Name` with a field `name` is no constructor that is named after its type.
                #[allow(dead_code, non_snake_case, clippy::self_named_constructors)]
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
                (None, Some(name))
                    if field.attributes.encrypt.is_none() && names::can_be_filtered(&name.value()) =>
                {
                    let compared = if field.is_text() { text.clone() } else { ty.to_token_stream() };
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
