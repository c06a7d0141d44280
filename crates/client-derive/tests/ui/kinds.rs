use lazulite_client::{DynamicEntity, EntityKind};

#[derive(EntityKind)]
enum Undecided {
    A(DynamicEntity),
}

#[derive(EntityKind)]
#[entity(property = "Kind")]
enum ByProperty {
    #[entity(value = "x")]
    A(DynamicEntity),
    #[entity(value = "x")]
    B(DynamicEntity),
    #[entity(prefix = "y")]
    C(DynamicEntity),
    D { entity: DynamicEntity },
}

#[derive(EntityKind)]
#[entity(row_key_prefix)]
enum ByPrefix {
    A(DynamicEntity),
}

fn main() {}
