//! What the compiler says about mistakes: each file in `tests/ui` does not compile, and its `.stderr` is the message.
//!
//! `TRYBUILD=overwrite cargo test -p lazulite-client-derive --test mistakes` writes the messages again.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
