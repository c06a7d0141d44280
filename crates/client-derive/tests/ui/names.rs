use lazulite_client::Entity;

#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    row_key: String,
    #[entity(rename = "first name")]
    first_name: String,
    age: i32,
    #[entity(rename = "Age")]
    years: i32,
}

fn main() {}
