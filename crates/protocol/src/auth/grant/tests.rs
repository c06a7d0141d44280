//! Every operation of a service against every kind of grant.

use super::*;
use crate::common::query::Query;
use crate::service::ServiceOperation;
use crate::table::model::{ETag, TableName};
use crate::table::operation::{AclOperation, Address, EntityRead, EntityWrite, Operation, TableOperation};
use crate::table::{CONTRIBUTOR, KIND, READER};

fn table(name: &str) -> TableName {
    TableName::parse(name).unwrap()
}

fn time(text: &str) -> DateTime {
    DateTime::parse(text).unwrap()
}

fn address(name: &str, partition_key: &'static str, row_key: &'static str) -> Address<'static> {
    Address { table: table(name), partition_key: partition_key.into(), row_key: row_key.into() }
}

/// Every operation, by the word that the tables below use for it.
fn operation(word: &str) -> Operation<'static> {
    let address = address("MyTable", "p", "r");
    let any = || ETag::parse("*").unwrap();
    match word {
        "get properties" => Operation::Service(ServiceOperation::GetProperties),
        "set properties" => Operation::Service(ServiceOperation::SetProperties),
        "get stats" => Operation::Service(ServiceOperation::GetStats),
        "query tables" => Operation::Tables(TableOperation::Query),
        "get table" => Operation::Tables(TableOperation::Get(table("MyTable"))),
        "create table" => Operation::Tables(TableOperation::Create),
        "delete table" => Operation::Tables(TableOperation::Delete(table("MyTable"))),
        "get acl" => Operation::Acl(AclOperation::Get(table("MyTable"))),
        "set acl" => Operation::Acl(AclOperation::Set(table("MyTable"))),
        "query" => Operation::Read(EntityRead::Query(table("MyTable"))),
        "get" => Operation::Read(EntityRead::Get { address, if_match: None, if_none_match: None }),
        "insert" => Operation::Write(EntityWrite::Insert(table("MyTable"))),
        "insert or replace" => Operation::Write(EntityWrite::Replace { address, condition: None }),
        "insert or merge" => Operation::Write(EntityWrite::Merge { address, condition: None }),
        "replace" => Operation::Write(EntityWrite::Replace { address, condition: Some(any()) }),
        "merge" => Operation::Write(EntityWrite::Merge { address, condition: Some(any()) }),
        "delete" => Operation::Write(EntityWrite::Delete { address, condition: any() }),
        "batch" => Operation::Batch,
        other => panic!("{other}"),
    }
}

const OPERATIONS: [&str; 18] = [
    "get properties",
    "set properties",
    "get stats",
    "query tables",
    "get table",
    "create table",
    "delete table",
    "get acl",
    "set acl",
    "query",
    "get",
    "insert",
    "insert or replace",
    "insert or merge",
    "replace",
    "merge",
    "delete",
    "batch",
];

#[track_caller]
fn check(grant: &Grant, word: &str, expected: Result<(), ErrorCode>) {
    let verdict = grant.authorize(&KIND, &operation(word).need());
    assert_eq!(verdict.map_err(|error| error.code), expected, "{word} with {grant:?}");
}

fn account_sas(services: &str, resource_types: &str, permissions: &str) -> Grant {
    Grant::AccountSas {
        services: LetterSet::parse(services),
        resource_types: LetterSet::parse(resource_types),
        permissions: LetterSet::parse(permissions),
    }
}

fn table_sas(name: &str, permissions: &str) -> Grant {
    Grant::ServiceSas {
        resource: name.into(),
        permissions: LetterSet::parse(permissions),
        bounds: KeyBounds::default(),
    }
}

const EVERY_PERMISSION: &str = "rwdlacupitfxy";

#[test]
fn the_account_key_may_do_everything() {
    for word in OPERATIONS {
        check(&Grant::Everything, word, Ok(()));
    }
}

/// The table of section 8.3: the resource type, and every minimal set of letters that is enough.
#[test]
fn an_account_sas_needs_the_resource_type_and_the_letters() {
    let check_need = |word: &str, resource_type: char, enough: &[&str]| {
        let others: String = "sco".chars().filter(|letter| *letter != resource_type).collect();
        let resource_type = resource_type.to_string();
        let mismatch = Err(ErrorCode::AuthorizationPermissionMismatch);
        for letters in enough {
            check(&account_sas("bqt", &resource_type, letters), word, Ok(()));
            for missing in letters.chars() {
                let fewer = letters.replace(missing, "");
                check(&account_sas("t", "sco", &fewer), word, mismatch);
            }
        }
        // None of the letters that help, and all of those that do not.
        let useless = EVERY_PERMISSION.replace(|letter| enough.concat().contains(letter), "");
        check(&account_sas("t", "sco", &useless), word, mismatch);
        // The checks come in this order: service, resource type, permissions.
        check(&account_sas("t", &others, "?"), word, Err(ErrorCode::AuthorizationResourceTypeMismatch));
        check(&account_sas("bqf", "?", "?"), word, Err(ErrorCode::AuthorizationServiceMismatch));
    };
    check_need("get properties", 's', &["r"]);
    check_need("get stats", 's', &["r"]);
    check_need("set properties", 's', &["w"]);
    check_need("query tables", 'c', &["l"]);
    check_need("get table", 'c', &["l"]);
    check_need("create table", 'c', &["c", "w"]);
    check_need("delete table", 'c', &["d"]);
    check_need("query", 'o', &["r"]);
    check_need("get", 'o', &["r"]);
    check_need("insert", 'o', &["a"]);
    check_need("insert or replace", 'o', &["au"]);
    check_need("insert or merge", 'o', &["au"]);
    check_need("replace", 'o', &["u"]);
    check_need("merge", 'o', &["u"]);
    check_need("delete", 'o', &["d"]);
    for word in ["get acl", "set acl"] {
        check(&account_sas("t", "sco", EVERY_PERMISSION), word, Err(ErrorCode::AuthorizationFailure));
    }
    check(&account_sas("b", "", ""), "batch", Ok(()));
}

#[test]
fn a_table_sas_is_for_the_entities_of_one_table() {
    let check_need = |word: &str, enough: &str| {
        check(&table_sas("mytable", enough), word, Ok(()));
        for missing in enough.chars() {
            let fewer = EVERY_PERMISSION.replace(missing, "");
            check(&table_sas("mytable", &fewer), word, Err(ErrorCode::AuthorizationPermissionMismatch));
        }
        check(&table_sas("mytable2", EVERY_PERMISSION), word, Err(ErrorCode::AuthorizationFailure));
    };
    check_need("query", "r");
    check_need("get", "r");
    check_need("insert", "a");
    check_need("insert or replace", "au");
    check_need("insert or merge", "au");
    check_need("replace", "u");
    check_need("merge", "u");
    check_need("delete", "d");
    for word in [
        "get properties",
        "set properties",
        "get stats",
        "query tables",
        "get table",
        "create table",
        "delete table",
        "get acl",
        "set acl",
    ] {
        check(&table_sas("mytable", EVERY_PERMISSION), word, Err(ErrorCode::AuthorizationFailure));
    }
    check(&table_sas("another", ""), "batch", Ok(()));
}

#[test]
fn a_bearer_token_may_what_its_role_may() {
    for word in OPERATIONS {
        let is_read =
            ["get properties", "get stats", "query tables", "get table", "query", "get"].contains(&word);
        let refused = Err(ErrorCode::AuthorizationPermissionMismatch);
        let (reader, contributor, nobody) = match word {
            "batch" => (Ok(()), Ok(()), Ok(())),
            "get acl" | "set acl" => {
                let hidden = Err(ErrorCode::ResourceNotFound);
                (hidden, hidden, hidden)
            }
            _ if is_read => (Ok(()), Ok(()), refused),
            _ => (refused, Ok(()), refused),
        };
        check(&Grant::Roles(READER), word, reader);
        check(&Grant::Roles(CONTRIBUTOR), word, contributor);
        check(&Grant::Roles(RoleSet::NONE), word, nobody);
    }
}

#[test]
fn refusals_have_their_status_and_message() {
    let check = |grant: Grant, word: &str, status: u16, message: &str| {
        let error = grant.authorize(&KIND, &operation(word).need()).unwrap_err();
        assert_eq!((error.code.status(), error.message()), (status, message));
    };
    let text = "This request is not authorized to perform this operation";
    check(account_sas("b", "o", "r"), "get", 403, &format!("{text} using this service."));
    check(account_sas("t", "s", "r"), "get", 403, &format!("{text} using this resource type."));
    check(account_sas("t", "o", "a"), "get", 403, &format!("{text} using this permission."));
    check(table_sas("other", "r"), "get", 403, &format!("{text}."));
    check(Grant::Roles(RoleSet::NONE), "get", 403, &format!("{text} using this permission."));
    check(Grant::Roles(RoleSet::NONE), "get acl", 404, "The specified resource does not exist.");
}

fn bounds(start: (&str, &str), end: (&str, &str)) -> KeyBounds {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    KeyBounds {
        start: given(start.0).map(|key| (key, given(start.1))),
        end: given(end.0).map(|key| (key, given(end.1))),
    }
}

/// The table of section 8.4.
#[test]
fn bounds_include_both_their_ends() {
    let check = |start, end, key: (&str, &str), expected: bool| {
        assert_eq!(bounds(start, end).contains(key.0, key.1), expected, "{start:?} {end:?} {key:?}");
    };
    let open = ("", "");
    check(open, open, ("", ""), true);
    check(("b", ""), open, ("b", ""), true);
    check(("b", ""), open, ("c", ""), true);
    check(("b", ""), open, ("a", "z"), false);
    check(("b", "m"), open, ("b", "m"), true);
    check(("b", "m"), open, ("b", "n"), true);
    check(("b", "m"), open, ("b", "l"), false);
    check(("b", "m"), open, ("c", "a"), true);
    check(("b", "m"), open, ("a", "z"), false);
    check(open, ("b", ""), ("b", "z"), true);
    check(open, ("b", ""), ("a", "z"), true);
    check(open, ("b", ""), ("ba", ""), false);
    check(open, ("b", "m"), ("b", "m"), true);
    check(open, ("b", "m"), ("b", "l"), true);
    check(open, ("b", "m"), ("b", "ma"), false);
    check(open, ("b", "m"), ("a", "z"), true);
    check(open, ("b", "m"), ("c", "a"), false);
    check(("b", "m"), ("b", "m"), ("b", "m"), true);
    check(("c", ""), ("b", ""), ("b", ""), false);
    check(("B", ""), ("Z", ""), ("c", ""), false);
    check(("\u{1F600}", ""), open, ("\u{FFFD}", ""), true);
    check(("\u{FFFD}", ""), open, ("\u{1F600}", ""), false);
}

/// Compares with plain tuples of UTF-16 units. A missing row key is the smallest at the start and the largest at the
/// end.
#[test]
fn random_bounds_agree_with_tuples() {
    type Units = Vec<u32>;
    let units = |text: &str| text.encode_utf16().map(u32::from).collect::<Units>();
    let mut random = fastrand::Rng::with_seed(8_4);
    let text = |random: &mut fastrand::Rng| -> String {
        (0..random.usize(0..3))
            .map(|_| random.choice(['a', 'B', '\u{E000}', '\u{1F600}', 'é']).unwrap())
            .collect()
    };
    let mut inside = 0;
    for round in 0..20_000 {
        let end = |random: &mut fastrand::Rng| {
            let end = (text(random), random.bool().then(|| text(random)));
            random.bool().then_some(end)
        };
        let bounds = KeyBounds { start: end(&mut random), end: end(&mut random) };
        let (partition_key, row_key) = (text(&mut random), text(&mut random));

        let key = (units(&partition_key), units(&row_key));
        let least = |row: &Option<String>| row.as_deref().map_or(Units::new(), units);
        let greatest = |row: &Option<String>| row.as_deref().map_or(vec![u32::MAX], units);
        let expected = bounds.start.as_ref().is_none_or(|(pk, rk)| key >= (units(pk), least(rk)))
            && bounds.end.as_ref().is_none_or(|(pk, rk)| key <= (units(pk), greatest(rk)));
        let contained = bounds.contains(&partition_key, &row_key);
        assert_eq!(contained, expected, "round {round}: {bounds:?} {partition_key:?} {row_key:?}");
        inside += u32::from(contained);
    }
    assert!((5_000..15_000).contains(&inside), "{inside}");
}

#[test]
fn keys_outside_the_bounds_are_refused_wherever_they_stand() {
    let grant = |bounds: KeyBounds| Grant::ServiceSas {
        resource: "mytable".into(),
        permissions: LetterSet::parse("raud"),
        bounds,
    };
    let inside = grant(bounds(("p", "a"), ("p", "z")));
    let outside = grant(bounds(("p", "s"), ("p", "z")));
    for word in ["insert or replace", "insert or merge", "replace", "merge", "delete"] {
        check(&inside, word, Ok(()));
        check(&outside, word, Err(ErrorCode::AuthorizationFailure));
    }
    // These are allowed here: for a read, what is outside does not exist, and an insert has its keys in the body.
    for word in ["get", "query", "insert", "batch"] {
        check(&outside, word, Ok(()));
    }
    assert!(inside.authorize_key("p", "r").is_ok());
    let error = outside.authorize_key("p", "r").unwrap_err();
    assert_eq!(error.message(), "This request is not authorized to perform this operation.");
    assert_eq!((error.code, error.code.status()), (ErrorCode::AuthorizationFailure, 403));

    assert_eq!(inside.bounds(), Some(&bounds(("p", "a"), ("p", "z"))));
    for unbounded in [
        grant(KeyBounds::default()),
        Grant::Everything,
        account_sas("t", "sco", "r"),
        Grant::Roles(RoleSet::NONE),
    ] {
        assert_eq!(unbounded.bounds(), None);
        assert!(unbounded.authorize_key("p", "r").is_ok());
    }
}

#[test]
fn letters_are_a_set() {
    let set = LetterSet::parse("duUr!ré d");
    assert_eq!(set, LetterSet::parse("rud"));
    assert!(set.has_all("") && set.has_all("d") && set.has_all("rud"));
    assert!(!set.has_all("a") && !set.has_all("ra"));
}

const SIG: &str = "sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D";
const NOW: &str = "2025-06-01T12:00:00Z";

fn granted(
    terms: &str,
    policies: &[StoredPolicy],
    now: &str,
    connection: Connection,
) -> Result<Grant, ServiceError> {
    let query = format!("{terms}&{SIG}");
    let token = SasToken::read(&Query::split(&query), "", &KIND).unwrap().unwrap();
    token.grant(policies, time(now), &connection)
}

fn connection(peer: &str, is_https: bool) -> Connection {
    Connection { peer: peer.parse().unwrap(), is_https }
}

#[test]
fn a_token_grants_what_it_says() {
    let grant = |terms: &str| granted(terms, &[], NOW, connection("::1", false)).unwrap();
    assert_eq!(grant("sv=2019-02-02&ss=bt&srt=co&sp=rl&se=2030-01-01"), account_sas("bt", "co", "rl"));
    assert_eq!(grant("sv=2019-02-02&tn=MyTable&sp=dr&se=2030-01-01"), table_sas("mytable", "rd"));
    let bounded = |keys: &str| {
        let grant = grant(&format!("sv=2019-02-02&tn=abc&sp=r&se=2030-01-01{keys}"));
        grant.bounds().cloned()
    };
    assert_eq!(bounded(""), None);
    assert_eq!(bounded("&spk=a"), Some(bounds(("a", ""), ("", ""))));
    assert_eq!(bounded("&spk=a&srk=b&epk=c&erk=d"), Some(bounds(("a", "b"), ("c", "d"))));
    assert_eq!(bounded("&epk=c"), Some(bounds(("", ""), ("c", ""))));
}

#[track_caller]
fn check_refused(error: ServiceError, reason: &str) {
    assert_eq!((error.code, error.code.status()), (ErrorCode::AuthenticationFailed, 403), "{reason}");
    assert_eq!(error.detail, None);
    assert_eq!(error.source.unwrap().to_string(), reason);
}

#[test]
fn a_token_is_good_from_its_start_until_its_expiry() {
    let check = |times: &str, now: &str, refusal: Option<&str>| {
        for scope in ["ss=t&srt=o", "tn=abc"] {
            let terms = format!("sv=2019-02-02&{scope}&sp=r&{times}");
            match (granted(&terms, &[], now, connection("::1", false)), refusal) {
                (Ok(_), None) => {}
                (Err(error), Some(reason)) => check_refused(error, reason),
                (other, _) => panic!("{terms} at {now}: {other:?}"),
            }
        }
    };
    let (early, late) = (Some("the SAS is not valid yet"), Some("the SAS has expired"));
    check("st=2025-06-01T12:00Z&se=2025-06-01T13:00:00Z", "2025-06-01T11:59:59.9999999Z", early);
    check("st=2025-06-01T12:00Z&se=2025-06-01T13:00:00Z", "2025-06-01T12:00:00Z", None);
    check("st=2025-06-01T12:00Z&se=2025-06-01T13:00:00Z", "2025-06-01T12:59:59.9999999Z", None);
    check("st=2025-06-01T12:00Z&se=2025-06-01T13:00:00Z", "2025-06-01T13:00:00Z", late);
    check("se=2025-06-01", "2025-05-31T23:59:59Z", None);
    check("se=2025-06-01", "2025-06-01T00:00:00Z", late);
    check("se=2025-06-01T00:00:00.5Z", "2025-06-01T00:00:00.4Z", None);
    check("st=2025-06-02&se=2030-01-01", "2025-06-01T23:59:59Z", early);
}

#[test]
fn a_token_may_be_bound_to_addresses() {
    let check = |ips: &str, peer: &str, refused_peer: Option<&str>| {
        let terms = format!("sv=2019-02-02&tn=abc&sp=r&se=2030-01-01&sip={ips}&spr=https");
        let result = granted(&terms, &[], NOW, connection(peer, true));
        let message = result.map(|_| ()).map_err(|error| {
            assert_eq!((error.code, error.code.status()), (ErrorCode::AuthorizationSourceIPMismatch, 403));
            error.message().to_owned()
        });
        let expected = match refused_peer {
            None => Ok(()),
            Some(peer) => Err(format!(
                "This request is not authorized to perform this operation using this source IP {peer}."
            )),
        };
        assert_eq!(message, expected, "{ips} {peer}");
    };
    check("", "1.2.3.4", None);
    check("", "::1", None);
    check("10.0.0.9", "10.0.0.9", None);
    check("10.0.0.9", "::ffff:10.0.0.9", None);
    check("10.0.0.9", "10.0.0.10", Some("10.0.0.10"));
    check("10.0.0.9", "::ffff:10.0.0.10", Some("10.0.0.10"));
    check("10.0.0.9", "::1", Some("::1"));
    check("10.0.0.9-10.0.0.20", "10.0.0.9", None);
    check("10.0.0.9-10.0.0.20", "10.0.0.10", None);
    check("10.0.0.9-10.0.0.20", "10.0.0.20", None);
    check("10.0.0.9-10.0.0.20", "10.0.0.8", Some("10.0.0.8"));
    check("10.0.0.9-10.0.0.20", "10.0.0.21", Some("10.0.0.21"));
    check("10.0.0.20-10.0.0.9", "10.0.0.10", Some("10.0.0.10"));
}

#[test]
fn a_token_may_be_bound_to_https() {
    let check = |protocol: &str, is_https: bool, expected: Result<(), ErrorCode>| {
        let terms = format!("sv=2019-02-02&ss=t&srt=o&sp=r&se=2030-01-01&spr={protocol}");
        let result = granted(&terms, &[], NOW, connection("1.2.3.4", is_https));
        assert_eq!(result.map(|_| ()).map_err(|error| error.code), expected, "{protocol} {is_https}");
    };
    check("", false, Ok(()));
    check("", true, Ok(()));
    check("https,http", false, Ok(()));
    check("https,http", true, Ok(()));
    check("https", true, Ok(()));
    check("https", false, Err(ErrorCode::AuthorizationProtocolMismatch));
    assert_eq!(ErrorCode::AuthorizationProtocolMismatch.status(), 403);
}

#[test]
fn time_is_checked_before_the_address_and_the_address_before_the_protocol() {
    let code = |times: &str, peer: &str| {
        let terms = format!("sv=2019-02-02&tn=abc&sp=r&{times}&sip=10.0.0.1&spr=https");
        granted(&terms, &[], NOW, connection(peer, false)).unwrap_err().code
    };
    assert_eq!(code("se=2020-01-01", "10.0.0.2"), ErrorCode::AuthenticationFailed);
    assert_eq!(code("se=2030-01-01", "10.0.0.2"), ErrorCode::AuthorizationSourceIPMismatch);
    assert_eq!(code("se=2030-01-01", "10.0.0.1"), ErrorCode::AuthorizationProtocolMismatch);
}

#[test]
fn a_stored_policy_completes_a_token_and_never_overlaps_it() {
    let full = StoredPolicy {
        id: "full".into(),
        start: Some(time("2025-01-01T00:00:00Z")),
        expiry: Some(time("2026-01-01T00:00:00Z")),
        permission: Some("ra".into()),
    };
    let policies = [
        StoredPolicy { id: "empty".into(), permission: Some(String::new()), ..Default::default() },
        full.clone(),
        StoredPolicy { id: "times".into(), permission: None, ..full.clone() },
        StoredPolicy { id: "letters".into(), start: None, expiry: None, ..full.clone() },
        StoredPolicy { id: "open".into(), start: None, ..full.clone() },
        StoredPolicy { id: "over".into(), expiry: Some(time("2025-02-01T00:00:00Z")), ..full.clone() },
        StoredPolicy { id: "future".into(), start: Some(time("2025-12-01T00:00:00Z")), ..full },
    ];
    let check = |terms: &str, expected: Result<&str, &str>| {
        let terms = format!("sv=2019-02-02&tn=abc&{terms}");
        match (granted(&terms, &policies, NOW, connection("::1", false)), expected) {
            (Ok(grant), Ok(letters)) => assert_eq!(grant, table_sas("abc", letters), "{terms}"),
            (Err(error), Err(reason)) => check_refused(error, reason),
            (other, _) => panic!("{terms}: {other:?}"),
        }
    };
    check("si=full", Ok("ra"));
    check("si=times&sp=d", Ok("d"));
    check("si=letters&se=2030-01-01", Ok("ra"));
    check("si=letters&st=2025-01-01&se=2030-01-01", Ok("ra"));
    check("si=open", Ok("ra"));
    check("si=open&st=2025-01-01", Ok("ra"));
    check("si=empty&sp=u&se=2030-01-01", Ok("u"));

    let doubled = Err("a term is in both the SAS and its policy");
    check("si=full&sp=r", doubled);
    check("si=full&st=2025-01-01", doubled);
    check("si=full&se=2030-01-01", doubled);
    check("si=letters&sp=r&se=2030-01-01", doubled);

    check("si=letters", Err("neither the SAS nor its policy has an expiry"));
    check("si=times", Err("neither the SAS nor its policy has permissions"));
    check("si=empty&se=2030-01-01", Err("neither the SAS nor its policy has permissions"));
    check("si=empty&sp=r", Err("neither the SAS nor its policy has an expiry"));
    check("si=unknown&sp=r&se=2030-01-01", Err("the stored policy of the SAS is not there"));
    check("si=FULL", Err("the stored policy of the SAS is not there"));
    check("si=over", Err("the SAS has expired"));
    check("si=future", Err("the SAS is not valid yet"));
    check("si=letters&se=2025-01-01", Err("the SAS has expired"));
    check("si=open&st=2025-12-01", Err("the SAS is not valid yet"));
    // A token that names no policy ignores them.
    check("sp=r&se=2030-01-01", Ok("r"));
}
