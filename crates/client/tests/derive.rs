//! `#[derive(Entity)]`, `#[derive(EntityKind)]` and `#[derive(Enumeration)]`: what is stored, what is read, what is
//! refused, and what filters they make.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use lazulite_client::{
    Column, DateTime, DynamicEntity, Entity, EntityKind, Enumeration, Filter, Keys, Property, Row, Value,
    json,
};

/// The entity's payload, as text.
#[track_caller]
fn payload(entity: &impl Entity) -> String {
    let (mut properties, mut body) = (Vec::new(), Vec::new());
    entity.write(&mut properties).unwrap();
    json::write_entity(Some(&entity.keys().unwrap()), &properties, &mut body);
    String::from_utf8(body).unwrap()
}

#[track_caller]
fn read<E: Entity>(body: &str) -> E {
    E::read(json::read_row(body.as_bytes()).unwrap()).unwrap()
}

/// The property and the reason of the refusal.
#[track_caller]
fn refusal<E: Entity>(body: &str) -> (String, String) {
    match E::read(json::read_row(body.as_bytes()).unwrap()) {
        Ok(_) => panic!("{body} was read"),
        Err(error) => (error.property.into_owned(), error.reason.into_owned()),
    }
}

#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
struct Address {
    street: String,
    number: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Version(u16, u16);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let (major, minor) = text.split_once('.').ok_or("no point")?;
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        Ok(Version(number(major)?, number(minor)?))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Enumeration)]
#[entity(rename_all = "camelCase", display)]
enum Level {
    Junior,
    SeniorEngineer,
    #[entity(rename = "CTO")]
    Chief,
}

#[derive(Clone, PartialEq, Debug, Enumeration)]
enum Colour {
    Red,
    #[entity(other)]
    Other(String),
}

fn forty() -> i32 {
    40
}

#[derive(Clone, PartialEq, Debug, Entity)]
#[entity(rename_all = "PascalCase")]
struct Employee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: u32,
    first_name: String,
    #[entity(rename = "years")]
    age: i32,
    email: Option<String>,
    #[entity(default)]
    bonus: f64,
    #[entity(default = forty)]
    hours: i32,
    #[entity(json)]
    address: Address,
    #[entity(json)]
    second_address: Option<Address>,
    #[entity(display)]
    version: Version,
    #[entity(display, default = "Default::default")]
    former: Option<Version>,
    level: Level,
    colour: Option<Colour>,
    #[entity(encrypt)]
    ssn: Option<String>,
    #[entity(skip)]
    is_dirty: bool,
    #[entity(etag)]
    etag: Option<String>,
    #[entity(timestamp)]
    timestamp: Option<DateTime>,
    r#type: bool,
}

fn ada() -> Employee {
    Employee {
        department: "R&D".into(),
        id: 7,
        first_name: "Ada".into(),
        age: 36,
        email: None,
        bonus: 0.0,
        hours: 40,
        address: Address { street: "\"Main\"".into(), number: 1 },
        second_address: None,
        version: Version(1, 2),
        former: None,
        level: Level::SeniorEngineer,
        colour: Some(Colour::Other("teal".into())),
        ssn: None,
        is_dirty: false,
        etag: None,
        timestamp: None,
        r#type: true,
    }
}

#[test]
fn fields_become_properties_and_come_back() {
    let expected = r#"{"PartitionKey":"R&D","RowKey":"7","FirstName":"Ada","years":36,"Bonus@odata.type":"Edm.Double","Bonus":0.0,"Hours":40,"Address":"{\"street\":\"\\\"Main\\\"\",\"number\":1}","Version":"1.2","Level":"seniorEngineer","Colour":"teal","Type":true}"#;
    assert_eq!(payload(&ada()), expected);
    assert_eq!(read::<Employee>(expected), ada());

    let changed = Employee {
        email: Some("ada@example.com".into()),
        second_address: Some(Address { street: "Hill".into(), number: 2 }),
        former: Some(Version(0, 9)),
        level: Level::Chief,
        colour: Some(Colour::Red),
        ssn: Some("123".into()),
        is_dirty: true,
        ..ada()
    };
    let body = payload(&changed);
    assert!(body.contains(r#""Level":"CTO","Colour":"Red","Ssn":"123""#), "{body}");
    assert_eq!(read::<Employee>(&body), Employee { is_dirty: false, ..changed });
}

#[test]
fn what_is_absent_has_its_default_or_is_refused() {
    let body = r#"{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"1","Timestamp":"2024-01-01T00:00:00Z","FirstName":"A","years":1,"Address":"{\"street\":\"s\",\"number\":1}","Version":"1.0","Level":"junior","Type":false,"Unknown":1}"#;
    let found: Employee = read(body);
    assert_eq!((found.bonus, found.hours, found.email.clone(), found.former), (0.0, 40, None, None));
    assert_eq!(found.etag(), Some("W/\"1\""));
    assert_eq!(found.timestamp, DateTime::parse("2024-01-01T00:00:00Z"));
    assert_eq!(ada().etag(), None);

    let check = |old: &str, new: &str, property: &str, reason: &str| {
        let (found_property, found_reason) = refusal::<Employee>(&body.replace(old, new));
        assert_eq!((found_property.as_str(), found_reason.as_str()), (property, reason));
    };
    check("\"FirstName\":\"A\",", "", "FirstName", "the entity does not have this property");
    check("\"FirstName\":\"A\"", "\"FirstName\":1", "FirstName", "expected Edm.String, found Edm.Int32");
    check("junior", "Junior", "Level", "\"Junior\" is not a name of Level");
    check("\"1.0\"", "\"1\"", "Version", "\"1\" cannot be read: no point");
    check("\"Version\":\"1.0\",", "", "Version", "the entity does not have this property");
    check("\"Version\":\"1.0\",", "\"Version\":1,", "Version", "expected Edm.String, found Edm.Int32");
    check("\"RowKey\":\"1\"", "\"RowKey\":\"01\"", "RowKey", "\"01\" is not a key of this entity");
    let (property, reason) = refusal::<Employee>(&body.replace("\\\"number\\\":1", ""));
    assert_eq!(property, "Address");
    assert!(reason.starts_with("it is not the JSON of such a value: "), "{reason}");
}

#[test]
fn the_columns_and_the_encrypted_ones_are_listed() {
    let columns = [
        "PartitionKey",
        "RowKey",
        "Timestamp",
        "FirstName",
        "years",
        "Email",
        "Bonus",
        "Hours",
        "Address",
        "SecondAddress",
        "Version",
        "Former",
        "Level",
        "Colour",
        "Ssn",
        "Type",
    ];
    assert_eq!(Employee::COLUMNS, Some(&columns[..]));
    assert_eq!(Employee::ENCRYPTED, ["Ssn"]);
}

#[test]
fn filters_read_like_rust() {
    let check = |filter: Filter<Employee>, expected: &str| assert_eq!(filter.to_string(), expected);
    check(
        Employee::department().eq("R&D") & Employee::row_key().starts_with("7"),
        "PartitionKey eq 'R&D' and RowKey ge '7' and RowKey lt '8'",
    );
    check(Employee::id().eq(7.to_string()), "RowKey eq '7'");
    check(Employee::age().between(30, 40), "years ge 30 and years lt 40");
    check(Employee::email().eq("a@b"), "Email eq 'a@b'");
    check(Employee::email().eq(String::from("a@b")), "Email eq 'a@b'");
    check(Employee::bonus().gt(1.5), "Bonus gt 1.5");
    check(Employee::level().is_in([Level::Junior, Level::Chief]), "Level eq 'junior' or Level eq 'CTO'");
    check(Employee::level().ne(Level::Junior), "Level ne 'junior'");
    check(Employee::colour().eq(Colour::Other("x".into())), "Colour eq 'x'");
    check(Employee::version().eq("1.2"), "Version eq '1.2'");
    check(!Employee::r#type().is_true(), "not (Type eq true)");
    check(Employee::timestamp().gt(DateTime::UNIX_EPOCH), "Timestamp gt datetime'1970-01-01T00:00:00Z'");
    check(lazulite_client::filter!("years gt {}", 3).unwrap(), "years gt 3");
}

#[derive(Clone, PartialEq, Debug, Entity)]
#[entity(partition_key = "{department}_{year:04}", row_key = "emp-{level}--{id:05}")]
struct Review {
    department: String,
    year: u16,
    level: Level,
    #[entity(stored, rename = "Id")]
    id: u32,
    rating: i32,
}

fn review() -> Review {
    Review { department: "Sales".into(), year: 24, level: Level::Chief, id: 42, rating: 5 }
}

#[test]
fn computed_keys_are_put_together_and_taken_apart() {
    let body = r#"{"PartitionKey":"Sales_0024","RowKey":"emp-CTO--00042","Id@odata.type":"Edm.Int64","Id":"42","rating":5}"#;
    assert_eq!(payload(&review()), body);
    assert_eq!(read::<Review>(body), review());
    assert_eq!(Review::COLUMNS, Some(&["PartitionKey", "RowKey", "Id", "rating"][..]));
    assert_eq!(Review::id().eq(42).to_string(), "Id eq 42L");

    // A field may be empty.
    let empty = Review { department: "".into(), ..review() };
    assert_eq!(read::<Review>(&payload(&empty)), empty);
}

#[test]
fn a_key_that_could_not_be_taken_apart_is_refused() {
    for department in ["R_D", "_", "Sales_"] {
        let error = Review { department: department.into(), ..review() }.keys().unwrap_err();
        assert_eq!(error.property, "PartitionKey");
        let expected =
            format!("the field `department` is {department:?}, but \"_\" separates it from what follows");
        assert_eq!(error.reason, expected);
    }
    let check = |partition_key: &str, row_key: &str, reason: &str| {
        let body = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","rating":5}}"#);
        assert_eq!(refusal::<Review>(&body).1, reason);
    };
    let row_key = "emp-CTO--00042";
    check("Sales", row_key, "\"Sales\" is not of the form \"{department}_{year:04}\"");
    check(
        "Sales_x",
        row_key,
        "\"Sales_x\" is not of the form \"{department}_{year:04}\": `year` cannot be \"x\"",
    );
    check("Sales_24", row_key, "\"Sales_24\" is read as the entity whose key is \"Sales_0024\"");
    check("Sales_0024", "CTO--1", "\"CTO--1\" is not of the form \"emp-{level}--{id:05}\"");
    check("Sales_0024", "emp-CTO--1", "\"emp-CTO--1\" is read as the entity whose key is \"emp-CTO--00001\"");
}

#[derive(Clone, PartialEq, Debug, Entity)]
#[entity(row_key = "head{{}}")]
struct Head {
    #[entity(partition_key, display)]
    version: Version,
    #[entity(rest)]
    rest: BTreeMap<String, Value<'static>>,
    own: Option<i32>,
    #[entity(etag)]
    etag: String,
}

#[test]
fn constant_keys_are_checked_and_the_rest_is_kept() {
    let body = r#"{"odata.etag":"W/\"2\"","PartitionKey":"1.2","RowKey":"head{}","b":true,"own":1,"a@odata.type":"Edm.Int64","a":"5"}"#;
    let head: Head = read(body);
    assert_eq!(head.rest.get("a"), Some(&Value::Int64(5)));
    assert_eq!(
        payload(&head),
        r#"{"PartitionKey":"1.2","RowKey":"head{}","own":1,"a@odata.type":"Edm.Int64","a":"5","b":true}"#
    );
    assert_eq!((Head::COLUMNS, head.etag()), (None, Some("W/\"2\"")));
    assert_eq!(refusal::<Head>(&body.replace("head", "tail")).1, "\"tail{}\" is not \"head{}\"");
    assert_eq!(refusal::<Head>(&body.replace("1.2", "1.02")).1, "\"1.02\" is not a key of this entity");

    let mut twice = head.clone();
    twice.rest.insert("own".into(), Value::Int32(2));
    assert_eq!(twice.write(&mut Vec::new()).unwrap_err().property, "own");
    assert_eq!(Head { etag: String::new(), ..head }.etag(), None);
}

#[derive(PartialEq, Debug, Entity)]
#[entity(view, columns = ContactColumns)]
struct Contact {
    #[entity(rename = "FirstName")]
    first_name: String,
    #[entity(rest)]
    rest: Vec<Property<'static>>,
}

impl Contact {
    /// Would be a second function of this name if the columns were here too.
    fn first_name(&self) -> &str {
        &self.first_name
    }
}

#[derive(PartialEq, Debug, Entity)]
#[entity(view)]
struct FirstName {
    #[entity(rename = "FirstName")]
    name: String,
}

#[test]
fn a_view_is_read_but_has_no_keys() {
    let contact: Contact = read(r#"{"FirstName":"Ada","x":1}"#);
    assert_eq!(contact.first_name(), "Ada");
    assert_eq!(contact.rest.len(), 1);
    assert!(contact.keys().is_err());
    assert_eq!(ContactColumns::first_name().eq("Ada").to_string(), "FirstName eq 'Ada'");
    assert_eq!(FirstName::COLUMNS, Some(&["FirstName"][..]));
    let filter: Filter<FirstName> = Employee::age().gt(3).cast();
    assert_eq!(filter.to_string(), "years gt 3");
}

#[derive(Entity)]
struct Pair<T: lazulite_client::Field + Send> {
    #[entity(partition_key)]
    partition_key: String,
    #[entity(row_key)]
    row_key: std::sync::Arc<str>,
    value: T,
}

#[test]
fn structs_may_have_parameters() {
    let pair: Pair<i64> =
        read(r#"{"PartitionKey":"p","RowKey":"r","value@odata.type":"Edm.Int64","value":"9"}"#);
    assert_eq!((&*pair.partition_key, &*pair.row_key, pair.value), ("p", "r", 9));
    let column: Column<Pair<i64>, i64> = Pair::value();
    assert_eq!((column.gt(1) & Pair::row_key().eq("r")).to_string(), "value gt 1L and RowKey eq 'r'");
}

#[derive(PartialEq, Debug, Entity)]
#[entity(row_key = "dept")]
struct Department {
    #[entity(partition_key)]
    name: String,
    budget: i64,
}

#[derive(PartialEq, Debug, Entity)]
#[entity(row_key = "empid_{id}")]
struct Person {
    #[entity(partition_key)]
    department: String,
    id: u32,
    #[entity(encrypt)]
    email: String,
}

#[derive(PartialEq, Debug, EntityKind)]
#[entity(property = "EntityType")]
enum Staff {
    Department(Department),
    #[entity(value = "Employee")]
    Person(Person),
}

#[derive(PartialEq, Debug, EntityKind)]
#[entity(property = "EntityType")]
enum AnyStaff {
    Person(Person),
    #[entity(other)]
    Other(DynamicEntity),
}

#[derive(PartialEq, Debug, EntityKind)]
#[entity(row_key_prefix)]
enum Prefixed {
    #[entity(prefix = "empid_")]
    Person(Person),
    #[entity(prefix = "e")]
    Review(Review),
    #[entity(prefix = "dept")]
    Department(Department),
}

#[test]
fn kinds_are_told_apart_by_a_property() {
    let person = Staff::from(Person { department: "Sales".into(), id: 7, email: "x".into() });
    let body = r#"{"PartitionKey":"Sales","RowKey":"empid_7","email":"x","EntityType":"Employee"}"#;
    assert_eq!(payload(&person), body);
    assert_eq!(read::<Staff>(body), person);
    let department = r#"{"PartitionKey":"Sales","RowKey":"dept","budget@odata.type":"Edm.Int64","budget":"1","EntityType":"Department"}"#;
    assert_eq!(read::<Staff>(department), Staff::from(Department { name: "Sales".into(), budget: 1 }));
    let columns = ["PartitionKey", "RowKey", "budget", "email", "EntityType"];
    assert_eq!((Staff::COLUMNS, Staff::ENCRYPTED), (Some(&columns[..]), &["email"][..]));
    let filter = Staff::partition_key().eq("Sales") & Staff::kind().eq("Employee");
    assert_eq!(filter.to_string(), "PartitionKey eq 'Sales' and EntityType eq 'Employee'");

    let kind = |text: &str| refusal::<Staff>(&body.replace("\"Employee\"", text)).1;
    assert_eq!(kind("\"Person\""), "no kind of entity has the value \"Person\"");
    assert_eq!(kind("1"), "expected Edm.String, found Edm.Int32");
    assert_eq!(kind("null"), "the entity does not have this property");
}

#[test]
fn a_variant_can_take_all_other_entities() {
    let body = r#"{"PartitionKey":"p","RowKey":"r","EntityType":"Robot","Volts":5}"#;
    let AnyStaff::Other(robot) = read::<AnyStaff>(body) else { panic!("not the other") };
    assert_eq!(robot.get::<String>("EntityType").unwrap(), "Robot");
    assert_eq!(payload(&AnyStaff::Other(robot)), body);
    assert_eq!(AnyStaff::COLUMNS, None);
    assert!(matches!(read::<AnyStaff>(r#"{"RowKey":"r"}"#), AnyStaff::Other(_)));
}

#[test]
fn kinds_are_told_apart_by_the_beginning_of_the_row_key() {
    let row = |row_key: &str| {
        format!(r#"{{"PartitionKey":"Sales_0024","RowKey":"{row_key}","email":"x","rating":1,"budget":1}}"#)
    };
    assert!(matches!(read::<Prefixed>(&row("empid_7")), Prefixed::Person(Person { id: 7, .. })));
    assert!(matches!(read::<Prefixed>(&row("emp-CTO--00001")), Prefixed::Review(Review { id: 1, .. })));
    assert!(matches!(read::<Prefixed>(&row("dept")), Prefixed::Department(_)));
    assert_eq!(refusal::<Prefixed>(&row("x")).1, "no kind of entity has a row key like \"x\"");
    let person = Prefixed::from(Person { department: "Sales".into(), id: 7, email: "x".into() });
    assert_eq!(person.keys(), Ok(Keys::new("Sales", "empid_7")));
    assert_eq!(
        Prefixed::row_key().starts_with("empid_").to_string(),
        "RowKey ge 'empid_' and RowKey lt 'empid`'"
    );
}

#[derive(Debug, Entity)]
#[entity(row_key = "x")]
struct Labelled {
    #[entity(partition_key)]
    name: String,
    label: String,
}

#[derive(Debug, EntityKind)]
#[entity(property = "label")]
enum Labels {
    Good(Labelled),
}

#[test]
fn a_kind_may_have_the_property_itself_but_no_other_value() {
    let labelled = |label: &str| Labels::Good(Labelled { name: "n".into(), label: label.into() });
    let body = payload(&labelled("Good"));
    assert_eq!(body, r#"{"PartitionKey":"n","RowKey":"x","label":"Good"}"#);
    let Labels::Good(found) = read::<Labels>(&body);
    assert_eq!((&*found.name, &*found.label), ("n", "Good"));
    assert_eq!(labelled("Bad").write(&mut Vec::new()).unwrap_err().property, "label");
}

#[derive(PartialEq, Debug, Entity)]
struct Keyed {
    #[entity(partition_key)]
    partition_key: String,
    #[entity(row_key)]
    row_key: String,
}

#[derive(PartialEq, Debug, EntityKind)]
#[entity(row_key_prefix)]
enum Overlapping {
    #[entity(prefix = "emp")]
    Employee(Keyed),
    #[entity(prefix = "empdept_")]
    Department(Person),
    #[entity(other)]
    Other(DynamicEntity),
}

#[test]
fn what_would_be_read_as_another_kind_is_not_written() {
    let employee =
        |row_key: &str| Overlapping::Employee(Keyed { partition_key: "p".into(), row_key: row_key.into() });
    let reason = |kind: &Overlapping| kind.keys().unwrap_err().reason.into_owned();
    assert_eq!(employee("emp_1").keys(), Ok(Keys::new("p", "emp_1")));
    assert_eq!(
        reason(&employee("empdept_1")),
        "\"empdept_1\" would be read as another kind of entity, whose row keys start with \"empdept_\""
    );
    assert!(reason(&employee("x")).contains("starts with \"emp\""));
    let other = |row_key: &str| Overlapping::Other(DynamicEntity::new("p", row_key));
    assert_eq!(other("em").keys(), Ok(Keys::new("p", "em")));
    assert!(reason(&other("emp")).contains("another kind"));
    assert!(reason(&other("empdept_1")).contains("another kind"));

    let any = |kind: &str| AnyStaff::Other(DynamicEntity::new("p", "r").with("EntityType", kind).unwrap());
    let write = |entity: &AnyStaff| entity.write(&mut Vec::new()).map_err(|error| error.reason.into_owned());
    assert_eq!(write(&any("Robot")), Ok(()));
    assert_eq!(write(&AnyStaff::Other(DynamicEntity::new("p", "r"))), Ok(()));
    let number = DynamicEntity::new("p", "r").with("EntityType", 1).unwrap();
    assert_eq!(write(&AnyStaff::Other(number)), Ok(()));
    assert_eq!(
        write(&any("Person")),
        Err("with the value \"Person\" it would be read as another kind of entity".to_owned())
    );
}

#[test]
fn enumerations_have_their_names_as_text_and_as_keys() {
    assert_eq!(Level::SeniorEngineer.to_string(), "seniorEngineer");
    assert_eq!("CTO".parse::<Level>(), Ok(Level::Chief));
    assert_eq!("cto".parse::<Level>().unwrap_err().reason, "\"cto\" is not a name of Level");
    assert_eq!(format!("{:>8}", Level::Chief), "     CTO");
}

#[test]
fn a_row_without_what_the_struct_needs_never_panics() {
    assert!(Employee::read(Row::default()).is_err());
    assert!(Review::read(Row::default()).is_err());
    assert!(Staff::read(Row::default()).is_err());
    assert!(Prefixed::read(Row::default()).is_err());
    assert!(DynamicEntity::read(Row::default()).is_ok());
}
