//! `#[derive(Enumeration)]`: enums that are stored by name.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, Ident, LitStr, Path};

use crate::attributes::{for_each, krate as read_crate, text};
use crate::errors::Errors;
use crate::names::Style;

struct NamedVariant<'a> {
    ident: &'a Ident,
    name: LitStr,
}

pub fn derive(input: DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "an enumeration is an enum whose variants have no fields",
        ));
    };
    if !input.generics.params.is_empty() {
        errors.at(&input.generics, "an enumeration has no parameters");
    }
    let (mut style, mut krate, mut is_displayed) = (Style::Exact, None::<Path>, false);
    for_each(&input.attrs, &mut errors, |meta, word| {
        match word {
            "rename_all" => style = Style::parse(&text(meta)?)?,
            "crate" => krate = Some(read_crate(meta)?),
            "display" => is_displayed = true,
            _ => {
                return Err(
                    meta.error("unknown word; an enumeration can have `rename_all`, `display`, `crate`")
                );
            }
        }
        Ok(())
    });
    let krate = krate.map_or_else(|| quote!(::lazulite_client), |path| path.into_token_stream());

    let mut variants: Vec<NamedVariant<'_>> = Vec::new();
    let mut other: Option<&Ident> = None;
    for variant in &data.variants {
        let (mut rename, mut is_other) = (None, false);
        for_each(&variant.attrs, &mut errors, |meta, word| {
            match word {
                "rename" => rename = Some(text(meta)?),
                "other" => is_other = true,
                _ => return Err(meta.error("unknown word; a variant can have `rename` or `other`")),
            }
            Ok(())
        });
        if is_other {
            let holds_one = matches!(&variant.fields, Fields::Unnamed(fields) if fields.unnamed.len() == 1);
            if !holds_one {
                errors.at(variant, "the variant for other names holds the name: `Other(String)`");
            }
            if other.replace(&variant.ident).is_some() {
                errors.at(&variant.ident, "only one variant can be for other names");
            }
            continue;
        }
        if !variant.fields.is_empty() {
            errors.at(
                &variant.fields,
                "a variant of an enumeration has no fields; a value with fields is stored with #[entity(json)], \
                 and kinds of entity are an enum with #[derive(EntityKind)]",
            );
        }
        let plain = variant.ident.unraw().to_string();
        let name = rename.unwrap_or_else(|| LitStr::new(&style.apply(&plain), variant.ident.span()));
        if let Some(earlier) = variants.iter().find(|earlier| earlier.name.value() == name.value()) {
            let message = format!("`{}` is already the name of `{}`", name.value(), earlier.ident);
            errors.push(syn::Error::new(name.span(), message));
        }
        variants.push(NamedVariant { ident: &variant.ident, name });
    }
    if variants.is_empty() && other.is_none() {
        errors.at(&input.ident, "an enumeration has at least one variant");
    }

    let ident = &input.ident;
    let enumeration = ident.unraw().to_string();
    let (idents, names): (Vec<_>, Vec<_>) =
        variants.iter().map(|variant| (variant.ident, &variant.name)).unzip();
    let to_other = other.map(|other| quote!(Self::#other(name) => ::std::borrow::Cow::Borrowed(&**name),));
    let from_other = match other {
        Some(other) => quote!(_ => ::core::option::Option::Some(Self::#other(text.into_owned().into()))),
        None => quote!(_ => ::core::option::Option::None),
    };
    let displayed = is_displayed.then(|| {
        quote! {
            #[automatically_derived]
            impl ::core::fmt::Display for #ident {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.pad(&#krate::KeyField::to_key(self))
                }
            }

            #[automatically_derived]
            impl ::core::str::FromStr for #ident {
                type Err = #krate::EntityError;

                fn from_str(text: &str) -> ::core::result::Result<Self, #krate::EntityError> {
                    #krate::KeyField::from_key(::std::borrow::Cow::Borrowed(text))
                        .ok_or_else(|| #krate::__private::unknown_name("", text, #enumeration))
                }
            }
        }
    });
    errors.finish(quote! {
        #[automatically_derived]
        impl #krate::KeyField for #ident {
            fn to_key(&self) -> ::std::borrow::Cow<'_, str> {
                match self {
                    #(Self::#idents => ::std::borrow::Cow::Borrowed(#names),)*
                    #to_other
                }
            }

            fn from_key(text: ::std::borrow::Cow<'_, str>) -> ::core::option::Option<Self> {
                match &*text {
                    #(#names => ::core::option::Option::Some(Self::#idents),)*
                    #from_other
                }
            }
        }

        #[automatically_derived]
        impl #krate::Field for #ident {
            type Compared = Self;

            fn to_value(
                &self,
                _name: &str,
            ) -> ::core::result::Result<::core::option::Option<#krate::Value<'_>>, #krate::EntityError> {
                let text = #krate::KeyField::to_key(self);
                ::core::result::Result::Ok(::core::option::Option::Some(#krate::Value::String(text)))
            }

            fn from_value(
                name: &str,
                value: ::core::option::Option<#krate::Value<'_>>,
            ) -> ::core::result::Result<Self, #krate::EntityError> {
                #krate::__private::read_enumeration(name, value, #enumeration)
            }
        }

        #[automatically_derived]
        impl #krate::ToLiteral for #ident {
            fn to_literal(&self) -> #krate::Literal<'_> {
                #krate::Literal::exact(#krate::Value::String(#krate::KeyField::to_key(self)))
            }
        }

        #[automatically_derived]
        impl #krate::ComparesWith<#ident> for #ident {}

        #displayed
    })
}
