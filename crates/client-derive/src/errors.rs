//! Errors of a derive, collected so that one compilation shows them all.

use proc_macro2::TokenStream;

#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub fn at(&mut self, place: impl quote::ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(place, message));
    }

    /// The value, or `None` once the error is noted.
    pub fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub fn finish(self, tokens: TokenStream) -> syn::Result<TokenStream> {
        match self.0 {
            Some(error) => Err(error),
            None => Ok(tokens),
        }
    }
}
