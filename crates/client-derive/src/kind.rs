//! `#[derive(EntityKind)]`: enums of entities that share a table.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, Ident, LitStr, Path, Type};

use crate::attributes::{for_each, krate as read_crate, text};
use crate::errors::Errors;
use crate::names;

struct Variant<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    /// The value or the prefix; none for the variant that takes all other entities.
    mark: Option<LitStr>,
}

/// How kinds are told apart.
enum Apart {
    Property(LitStr),
    Prefix,
}

pub fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "kinds of entity are the variants of an enum; a struct is an entity with #[derive(Entity)]",
        ));
    };
    if !input.generics.params.is_empty() {
        errors.at(&input.generics, "an enum of entities has no parameters");
    }
    let (mut property, mut is_prefix, mut krate) = (None::<LitStr>, false, None::<Path>);
    for_each(&input.attrs, &mut errors, |meta, word| {
        match word {
            "property" => property = Some(text(meta)?),
            "row_key_prefix" => is_prefix = true,
            "crate" => krate = Some(read_crate(meta)?),
            _ => {
                return Err(meta.error(
                    "unknown word; an enum of entities can have `property`, `row_key_prefix`, `crate`",
                ));
            }
        }
        Ok(())
    });
    let krate = krate.map_or_else(|| quote!(::lazulite_client), |path| path.into_token_stream());
    let apart = match (property, is_prefix) {
        (Some(name), false) => {
            errors.take(names::check_property(&name.value(), name.span()));
            Apart::Property(name)
        }
        (None, true) => Apart::Prefix,
        (Some(name), true) => {
            errors.at(&name, "kinds are told apart by a property or by a prefix of the row key, not by both");
            Apart::Prefix
        }
        (None, false) => {
            return Err(syn::Error::new_spanned(
                &input.ident,
                "say how the kinds are told apart: #[entity(property = \"EntityType\")] or #[entity(row_key_prefix)]",
            ));
        }
    };

    if data.variants.is_empty() {
        errors.at(&input.ident, "there is no kind of entity");
    }
    let variants = read_variants(&data.variants, &apart, &mut errors);
    let ident = &input.ident;
    let code = KindCode { krate: &krate, ident, apart: &apart, variants: &variants };
    let (entity, columns, conversions) = (code.entity(), code.columns(&input.vis), code.conversions());
    errors.finish(quote!(#entity #columns #conversions))
}

fn read_variants<'a>(
    found: impl IntoIterator<Item = &'a syn::Variant>,
    apart: &Apart,
    errors: &mut Errors,
) -> Vec<Variant<'a>> {
    let mut variants: Vec<Variant<'a>> = Vec::new();
    for variant in found {
        let (mut value, mut prefix, mut is_other) = (None::<LitStr>, None::<LitStr>, false);
        for_each(&variant.attrs, errors, |meta, word| {
            match word {
                "value" => value = Some(text(meta)?),
                "prefix" => prefix = Some(text(meta)?),
                "other" => is_other = true,
                _ => return Err(meta.error("unknown word; a kind can have `value`, `prefix` or `other`")),
            }
            Ok(())
        });
        let ty = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => &fields.unnamed[0].ty,
            _ => {
                let example = format!("a kind holds one entity: `{0}({0})`", variant.ident);
                errors.at(variant, example);
                continue;
            }
        };
        let mark = match (apart, value, prefix) {
            (_, value, prefix) if is_other => {
                for mark in value.iter().chain(&prefix) {
                    errors.at(mark, "the variant for all other entities has neither a value nor a prefix");
                }
                if variants.iter().any(|variant| variant.mark.is_none()) {
                    errors.at(&variant.ident, "only one variant can be for all other entities");
                }
                None
            }
            (Apart::Property(_), value, None) => Some(
                value
                    .unwrap_or_else(|| LitStr::new(&variant.ident.unraw().to_string(), variant.ident.span())),
            ),
            (Apart::Property(_), _, Some(prefix)) => {
                errors.at(&prefix, "the kinds are told apart by a property: write `value = ...`");
                continue;
            }
            (Apart::Prefix, None, Some(prefix)) => Some(prefix),
            (Apart::Prefix, Some(value), _) => {
                errors.at(&value, "the kinds are told apart by the row key: write `prefix = ...`");
                continue;
            }
            (Apart::Prefix, None, None) => {
                errors.at(&variant.ident, "say how its row keys begin: #[entity(prefix = \"...\")]");
                continue;
            }
        };
        if let Some(mark) = &mark {
            let same = |earlier: &&Variant<'_>| {
                earlier.mark.as_ref().is_some_and(|earlier| earlier.value() == mark.value())
            };
            if let Some(earlier) = variants.iter().find(same) {
                errors.at(mark, format!("`{}` already has {:?}", earlier.ident, mark.value()));
            }
            if mark.value().is_empty() {
                errors.at(
                    mark,
                    "an empty text tells nothing apart; the variant for all other entities is marked `other`",
                );
            }
        }
        variants.push(Variant { ident: &variant.ident, ty, mark });
    }
    variants
}

struct KindCode<'a> {
    krate: &'a TokenStream,
    ident: &'a Ident,
    apart: &'a Apart,
    variants: &'a [Variant<'a>],
}

impl KindCode<'_> {
    fn entity(&self) -> TokenStream {
        let KindCode { krate, ident, variants, .. } = self;
        let idents: Vec<&Ident> = variants.iter().map(|variant| variant.ident).collect();
        let types: Vec<&Type> = variants.iter().map(|variant| variant.ty).collect();
        let own_column = match self.apart {
            Apart::Property(name) => quote!(#name),
            Apart::Prefix => quote!("RowKey"),
        };
        // What is written must be read back as the same kind, so the reader's decision is made here too.
        let marks: Vec<String> =
            variants.iter().flat_map(|variant| &variant.mark).map(LitStr::value).collect();
        let keys = variants.iter().map(|Variant { ident, mark, .. }| match (self.apart, mark) {
            (Apart::Prefix, mark) => {
                let prefix = mark.as_ref().map(LitStr::value).unwrap_or_default();
                // Of two prefixes that fit, the reader takes the longer one.
                let longer = marks.iter().filter(|other| **other != prefix && other.starts_with(&prefix));
                quote! {
                    Self::#ident(entity) => {
                        let keys = #krate::Entity::keys(entity)?;
                        #krate::__private::check_prefix(#prefix, &[#(#longer),*], &keys.row_key)?;
                        ::core::result::Result::Ok(keys)
                    }
                }
            }
            _ => quote!(Self::#ident(entity) => #krate::Entity::keys(entity),),
        });
        let writes = variants.iter().map(|Variant { ident, mark, .. }| match (self.apart, mark) {
            (Apart::Property(name), Some(value)) => quote! {
                Self::#ident(entity) => {
                    let from = out.len();
                    #krate::Entity::write(entity, out)?;
                    #krate::__private::write_kind(#name, #value, out, from)
                }
            },
            (Apart::Property(name), None) => quote! {
                Self::#ident(entity) => {
                    let from = out.len();
                    #krate::Entity::write(entity, out)?;
                    #krate::__private::check_other_kind(#name, &[#(#marks),*], &out[from..])
                }
            },
            _ => quote!(Self::#ident(entity) => #krate::Entity::write(entity, out),),
        });
        let knows = variants.iter().map(|Variant { ident, mark, .. }| match (self.apart, mark) {
            (Apart::Property(own), Some(_)) => {
                quote!(Self::#ident(entity) => name == #own || #krate::Entity::knows(entity, name),)
            }
            _ => quote!(Self::#ident(entity) => #krate::Entity::knows(entity, name),),
        });
        let read = self.read();
        quote! {
            #[automatically_derived]
            impl #krate::Entity for #ident {
                const COLUMNS: ::core::option::Option<&'static [&'static str]> = {
                    const KINDS: &[::core::option::Option<&'static [&'static str]>] =
                        &[#(<#types as #krate::Entity>::COLUMNS),*];
                    const NAMES: &[&[&'static str]] =
                        &[#(#krate::__private::names_of(<#types as #krate::Entity>::COLUMNS),)* &[#own_column]];
                    const MAX: usize = #krate::__private::union_len_max(NAMES);
                    const UNION: &([&'static str; MAX], usize) = &#krate::__private::union::<MAX>(NAMES);
                    if #krate::__private::all_are_known(KINDS) {
                        ::core::option::Option::Some(UNION.0.split_at(UNION.1).0)
                    } else {
                        ::core::option::Option::None
                    }
                };
                const ENCRYPTED: &'static [&'static str] = {
                    const NAMES: &[&[&'static str]] = &[#(<#types as #krate::Entity>::ENCRYPTED),*];
                    const MAX: usize = #krate::__private::union_len_max(NAMES);
                    const UNION: &([&'static str; MAX], usize) = &#krate::__private::union::<MAX>(NAMES);
                    UNION.0.split_at(UNION.1).0
                };

                fn keys(&self) -> ::core::result::Result<#krate::Keys<'_>, #krate::EntityError> {
                    match self {
                        #(#keys)*
                    }
                }

                fn write<'entity>(
                    &'entity self,
                    out: &mut ::std::vec::Vec<#krate::Property<'entity>>,
                ) -> ::core::result::Result<(), #krate::EntityError> {
                    match self {
                        #(#writes)*
                    }
                }

                fn read(row: #krate::Row<'_>) -> ::core::result::Result<Self, #krate::EntityError> {
                    #read
                }

                fn etag(&self) -> ::core::option::Option<&str> {
                    match self {
                        #(Self::#idents(entity) => #krate::Entity::etag(entity),)*
                    }
                }

                fn stamp(&mut self, etag: &str, timestamp: ::core::option::Option<#krate::DateTime>) {
                    match self {
                        #(Self::#idents(entity) => #krate::Entity::stamp(entity, etag, timestamp),)*
                    }
                }

                fn knows(&self, name: &str) -> bool {
                    match self {
                        #(#knows)*
                    }
                }
            }
        }
    }

    fn read(&self) -> TokenStream {
        let KindCode { krate, variants, .. } = self;
        let other = variants.iter().find(|variant| variant.mark.is_none()).map(|variant| {
            let ident = variant.ident;
            quote!(#krate::Entity::read(row).map(Self::#ident))
        });
        let mut marked: Vec<&Variant<'_>> =
            variants.iter().filter(|variant| variant.mark.is_some()).collect();
        match self.apart {
            Apart::Property(name) => {
                let values = marked.iter().map(|variant| &variant.mark);
                let numbers = 0..marked.len();
                let arms = marked.iter().enumerate().map(|(at, Variant { ident, ty, .. })| {
                    quote! {
                        ::core::option::Option::Some(#at) => {
                            let mut row = row;
                            #krate::__private::strip_kind(#name, <#ty as #krate::Entity>::COLUMNS, &mut row);
                            #krate::Entity::read(row).map(Self::#ident)
                        }
                    }
                });
                let other = other.unwrap_or_else(
                    || quote!(::core::result::Result::Err(#krate::__private::unknown_kind(#name, &row))),
                );
                quote! {
                    let kind: ::core::option::Option<usize> = match #krate::__private::read_kind(#name, &row) {
                        #(::core::option::Option::Some(#values) => ::core::option::Option::Some(#numbers),)*
                        _ => ::core::option::Option::None,
                    };
                    match kind {
                        #(#arms)*
                        _ => #other,
                    }
                }
            }
            Apart::Prefix => {
                // Of two prefixes that fit, the longer one says more.
                marked.sort_by_key(|variant| {
                    std::cmp::Reverse(variant.mark.as_ref().map(|mark| mark.value().len()))
                });
                let tests = marked.iter().map(|Variant { ident, mark, .. }| {
                    quote! {
                        if row.row_key.starts_with(#mark) {
                            return #krate::Entity::read(row).map(Self::#ident);
                        }
                    }
                });
                let other = other.unwrap_or_else(
                    || quote!(::core::result::Result::Err(#krate::__private::unknown_prefix(&row))),
                );
                quote!(#(#tests)* #other)
            }
        }
    }

    fn columns(&self, visibility: &syn::Visibility) -> TokenStream {
        let KindCode { krate, ident, .. } = self;
        let kind = match self.apart {
            Apart::Property(name) if names::can_be_filtered(&name.value()) => {
                let documentation =
                    format!("The column `{}`, which tells the kinds apart, for filters.", name.value());
                Some(quote! {
                    #[doc = #documentation]
                    #[allow(dead_code)]
                    #[must_use]
                    #visibility fn kind() -> #krate::Column<#ident, ::std::string::String> {
                        #krate::Column::named(#name)
                    }
                })
            }
            _ => None,
        };
        quote! {
            #[automatically_derived]
            impl #ident {
                #[doc = "The column `PartitionKey`, for filters."]
                #[allow(dead_code)]
                #[must_use]
                #visibility fn partition_key() -> #krate::Column<#ident, ::std::string::String> {
                    #krate::Column::named("PartitionKey")
                }

                #[doc = "The column `RowKey`, for filters."]
                #[allow(dead_code)]
                #[must_use]
                #visibility fn row_key() -> #krate::Column<#ident, ::std::string::String> {
                    #krate::Column::named("RowKey")
                }

                #[doc = "The column `Timestamp`, for filters."]
                #[allow(dead_code)]
                #[must_use]
                #visibility fn timestamp() -> #krate::Column<#ident, #krate::DateTime> {
                    #krate::Column::named("Timestamp")
                }

                #kind
            }
        }
    }

    /// `From` for each kind whose type no other kind has.
    fn conversions(&self) -> TokenStream {
        let spelled = |variant: &Variant<'_>| variant.ty.to_token_stream().to_string();
        let unique = self.variants.iter().filter(|variant| {
            self.variants.iter().filter(|other| spelled(other) == spelled(variant)).count() == 1
        });
        let ident = self.ident;
        unique
            .map(|Variant { ident: variant, ty, .. }| {
                quote! {
                    #[automatically_derived]
                    impl ::core::convert::From<#ty> for #ident {
                        fn from(entity: #ty) -> Self {
                            Self::#variant(entity)
                        }
                    }
                }
            })
            .collect()
    }
}
