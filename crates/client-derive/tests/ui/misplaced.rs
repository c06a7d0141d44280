use lazulite_client::Entity;

#[derive(Entity)]
struct Employee {
    #[entity(partition_key, rename = "Department")]
    department: String,
    #[entity(row_key, encrypt)]
    id: String,
    #[entity(json, display)]
    address: String,
    #[entity(skip, default, rename = "x")]
    skipped: i32,
    #[entity(stored)]
    stored: i32,
    #[entity(row_key = "{id}")]
    template: String,
}

fn main() {}
