use lazulite_client::{DynamicEntity, Filter, filter};

fn main() {
    let _: Result<Filter<DynamicEntity>, _> = filter!("Name eq '{}'", "Ada");
}
