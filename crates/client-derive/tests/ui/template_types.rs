use lazulite_client::Entity;

#[derive(Entity)]
#[entity(partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: Vec<u8>,
    id: Option<u32>,
}

fn main() {}
