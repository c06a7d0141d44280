use lazulite_client::Entity;

#[derive(Entity)]
#[entity(partition_key = "{department}{year}", row_key = "{nobody}")]
struct Ambiguous {
    department: String,
    year: u16,
}

#[derive(Entity)]
#[entity(partition_key = "a/b", row_key = "{id")]
struct Forbidden {
    id: u16,
}

#[derive(Entity)]
#[entity(partition_key = "{department}", row_key = "head")]
struct Twice {
    #[entity(partition_key)]
    department: String,
}

fn main() {}
