use lazulite_client::Entity;

#[derive(Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    name: String,
}

fn main() {}
