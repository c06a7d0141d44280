//! The derive macros of `lazulite-client`.

use proc_macro::TokenStream;

#[proc_macro_derive(Entity, attributes(entity))]
pub fn derive_entity(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}

#[proc_macro_derive(EntityKind, attributes(entity))]
pub fn derive_entity_kind(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}
