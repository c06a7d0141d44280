use lazulite_client::{Entity, Filter, filter};

#[derive(Entity)]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    age: i32,
    #[entity(encrypt)]
    ssn: String,
}

#[derive(Entity)]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    id: String,
}

fn main() {
    let _ = Employee::age().eq("thirty");
    let _ = Employee::age().starts_with("3");
    let _ = Employee::age().eq(30) & Department::name().eq("Sales");
    let _ = Employee::ssn().eq("123");
    let _: Result<Filter<Employee>, _> = filter!("age gt {} and age lt {}", 30);
}
