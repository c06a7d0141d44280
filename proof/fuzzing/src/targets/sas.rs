//! Shared access signatures: reads a query string, signs it again from its own terms, verifies it, and makes a grant of
//! it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use protocol::ServiceError;
use protocol::auth::{AccountKey, AccountScope, Connection, Grant, SasScope, SasTerms, SasToken};
use protocol::common::query::Query;
use protocol::common::version::is_version;
use protocol::common::version::protocol_version;
use protocol::common::{DateTime, StoredPolicy};
use protocol::table::model::TableName;
use protocol::table::{KIND, TableScope};

use crate::golden::distinct;
use crate::{ACCOUNT, ACCOUNT_KEY, Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "sas",
    run,
    input_bytes_max: 64 * 1024,
    tokens: &[
        b"sv=",
        b"ss=",
        b"srt=",
        b"sp=",
        b"st=",
        b"se=",
        b"sip=",
        b"spr=",
        b"sig=",
        b"tn=",
        b"si=",
        b"spk=",
        b"srk=",
        b"epk=",
        b"erk=",
        b"ses=",
        b"api-version=",
        b"&",
        b"=",
        b"+",
        b"%",
        b"%2B",
        b"%3A",
        b"%0A",
        b"%26",
        b"%FF",
        b"%C3%A9",
        b"2019-02-02",
        b"2012-02-12",
        b"2015-04-05",
        b"2020-12-06",
        b"2099-12-31",
        b"2018-13-01",
        b"2030-01-01T00:00:00Z",
        b"2030-01-01",
        b"2000-01-01T00%3A00Z",
        b"raud",
        b"t",
        b"sco",
        b"bqtf",
        b"https",
        b"https,http",
        b"http",
        b"127.0.0.1",
        b"0.0.0.0-255.255.255.255",
        b"9.9.9.9-1.1.1.1",
        b"::1",
        b"People",
        b"tables",
        b"policy",
        b"47DEQpj8HBSa%2B%2FTImW%2B5JCeuQeRkm5NMpJWZG3hSuFU%3D",
        b"\x00",
        b"\xC3\xA9",
        b"\xFF",
    ],
    seeds,
};

static KEYS: LazyLock<Vec<AccountKey>> =
    LazyLock::new(|| vec![AccountKey::from_base64(ACCOUNT_KEY).expect("the published key is Base64")]);

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let key = &KEYS[0];
    let account_scope = SasScope::Account(AccountScope {
        services: "bt".into(),
        resource_types: "sco".into(),
        encryption_scope: "".into(),
    });
    let table_scope = |policy: &str, range: bool| {
        let mut scope = TableScope::new(TableName::parse("People").expect("a table's name"));
        scope.policy = policy.to_owned();
        if range {
            scope.start_partition_key = "a".to_owned();
            scope.start_row_key = "é".to_owned();
            scope.end_partition_key = "z".to_owned();
            scope.end_row_key = "9".to_owned();
        }
        SasScope::Service(scope.into_scope().expect("both row keys have partition keys"))
    };
    let terms = |version: &'static str, scope: SasScope<'static>| SasTerms {
        permissions: "raud".into(),
        expiry: "2030-01-01T00:00:00Z".into(),
        ..SasTerms::new(version, scope)
    };
    let limited = SasTerms {
        start: "2019-01-01".into(),
        ip: "127.0.0.1-127.0.0.9".into(),
        protocol: "https,http".into(),
        api_version: "2019-02-02".into(),
        ..terms("2019-02-02", table_scope("", true))
    };
    let minted = [
        terms("2019-02-02", account_scope.clone()),
        terms("2021-06-08", account_scope),
        terms("2012-02-12", table_scope("", false)),
        SasTerms::new("2018-03-28", table_scope("policy", false)),
        limited,
    ];
    let minted =
        minted.iter().map(|terms| terms.mint(ACCOUNT, key).expect("the terms are good").into_bytes());
    let queries = golden.requests().map(|request| request.query()).filter(|query| query.contains("sig="));
    distinct(minted.chain(queries.map(|query| query.as_bytes().to_vec())))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let query = Query::split(as_text(input)?);
    if let Some(version) = protocol_version(&query, None, KIND.version_order) {
        assert!(is_version(version), "{version}");
    }
    let token = SasToken::read(&query, "", &KIND).map_err(ServiceError::from)?;
    let Some(token) = token else { return Err(Outcome::Refused("no signature")) };

    let minted = token.terms().mint(ACCOUNT, &KEYS[0]).expect("terms that were read can be minted");
    let again =
        SasToken::read(&Query::split(&minted), "", &KIND).ok().flatten().expect("a minted token can be read");
    assert_eq!(again.terms(), token.terms(), "{minted}");
    assert!(again.verify(ACCOUNT, &KEYS), "a minted token is not verified: {minted}");
    // A service SAS signs the account in its resource, an account SAS as a line of its own.
    assert!(!again.verify("another", &KEYS), "a token of one account opens another");

    let policy = StoredPolicy {
        id: "policy".to_owned(),
        start: None,
        expiry: DateTime::parse("2030-01-01T00:00:00Z"),
        permission: Some("raud".to_owned()),
    };
    let now = DateTime::parse("2020-08-20T22:20:23Z").expect("a date");
    let connection = Connection { peer: IpAddr::V4(Ipv4Addr::LOCALHOST), is_https: true };
    let granted = token.grant(&[policy], now, &connection);
    let is_right = token.verify(ACCOUNT, &KEYS);
    match granted? {
        Grant::AccountSas { .. } if is_right => Ok(Outcome::Accepted("account, verified")),
        Grant::AccountSas { .. } => Ok(Outcome::Accepted("account")),
        Grant::ServiceSas { .. } if is_right => Ok(Outcome::Accepted("table, verified")),
        Grant::ServiceSas { .. } => Ok(Outcome::Accepted("table")),
        other => panic!("a SAS granted {other:?}"),
    }
}
