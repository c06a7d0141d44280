use lazulite_client::{Entity, EntityKind, Enumeration};

#[derive(Entity)]
struct Tuple(String, String);

#[derive(Entity)]
enum Choice {
    A,
}

#[derive(Entity)]
struct Borrowed<'a> {
    #[entity(partition_key)]
    partition_key: String,
    #[entity(row_key)]
    row_key: String,
    name: &'a str,
}

#[derive(EntityKind)]
struct NoEnum {
    name: String,
}

#[derive(Enumeration)]
enum WithFields {
    A(i32),
    #[entity(rename = "C")]
    B,
    C,
}

fn main() {}
