use lazulite_client::Entity;

struct Address;

#[derive(Entity)]
struct Employee {
    #[entity(partition_key)]
    department: f64,
    #[entity(row_key)]
    id: String,
    address: Address,
    #[entity(etag)]
    version: u32,
}

fn main() {}
