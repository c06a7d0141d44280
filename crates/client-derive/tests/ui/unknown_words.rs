use lazulite_client::Entity;

#[derive(Entity)]
#[entity(rename_all = "Pascal", table = "people")]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(rowkey)]
    id: String,
    #[entity(row_key, etag)]
    both: String,
    #[entity(rename = "a", rename = "b")]
    twice: i32,
}

fn main() {}
