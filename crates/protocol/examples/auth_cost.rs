//! What authentication costs: CPU nanoseconds for one Shared Key request and for one with a shared access signature,
//! each from the bytes of the request to the caller's grant. The budgets are 1,500 and 3,000.
//!
//! `cargo run --release -p lazulite-protocol --example auth_cost`

use std::hint::black_box;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::auth::{
    AccountKey, AccountScope, Authorization, Connection, SasScope, SasTerms, SasToken, ShortRequest,
};
use protocol::common::DateTime;
use protocol::common::query::Query;
use protocol::table::model::TableName;
use protocol::table::{KIND, TableScope};
use ring::hmac;

const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const OTHER_KEY: &str = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXk=";
const DATE: &str = "Tue, 21 Sep 2021 00:50:22 GMT";
const PATH: &str = "/devstoreaccount1/mytable(PartitionKey='some%20partition',RowKey='some%20row')";
const ROUNDS: u32 = 7;
const CALLS: u32 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = |text| AccountKey::from_base64(text).ok_or("a key is Base64");
    let one = [key(KEY)?];
    let second = [key(OTHER_KEY)?, key(KEY)?];
    let now = DateTime::parse("2021-09-21T00:50:22Z").ok_or("a time")?;
    let connection = Connection { peer: [127, 0, 0, 1].into(), is_https: false };

    for (scheme, text) in [
        ("SharedKey", format!("GET\n\n\n{DATE}\n/{ACCOUNT}{PATH}")),
        ("SharedKeyLite", format!("{DATE}\n/{ACCOUNT}{PATH}")),
    ] {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(KEY)?);
        let signature = STANDARD.encode(hmac::sign(&signing, text.as_bytes()));
        let header = format!("{scheme} {ACCOUNT}:{signature}");
        for (keys, which) in [(&one[..], "first key"), (&second[..], "second key")] {
            measure(&format!("{scheme}, {which}"), || shared_key(black_box(&header), keys, now));
        }
    }

    let table = TableName::parse("mytable").map_err(|_| "a table name")?;
    let account = AccountScope { services: "t".into(), resource_types: "sco".into(), ..Default::default() };
    let range = TableScope {
        start_partition_key: "a".into(),
        start_row_key: "1".into(),
        end_partition_key: "z".into(),
        end_row_key: "9".into(),
        ..TableScope::new(table.clone())
    };
    for (name, permissions, scope) in [
        ("account SAS", "rwdlacu", SasScope::Account(account)),
        ("service SAS", "raud", SasScope::Service(TableScope::new(table).into_scope()?)),
        ("service SAS with a range", "raud", SasScope::Service(range.into_scope()?)),
    ] {
        let terms = SasTerms {
            permissions: permissions.into(),
            start: "2021-01-01T00:00:00Z".into(),
            expiry: "2030-01-01T00:00:00Z".into(),
            ip: "127.0.0.0-127.0.0.255".into(),
            protocol: "https,http".into(),
            ..SasTerms::new("2019-02-02", scope)
        };
        let query = terms.mint(ACCOUNT, &one[0])?;
        for (keys, which) in [(&one[..], "first key"), (&second[..], "second key")] {
            measure(&format!("{name}, {which}"), || sas(black_box(&query), keys, now, &connection));
        }
    }
    Ok(())
}

fn shared_key(header: &str, keys: &[AccountKey], now: DateTime) -> bool {
    let Ok(Authorization::Signed { scheme, account, signature }) = Authorization::parse(header) else {
        return false;
    };
    let is_fresh =
        DateTime::parse_http(black_box(DATE)).is_some_and(|date| date.ticks().abs_diff(now.ticks()) == 0);
    let request = ShortRequest {
        method: "GET",
        content_md5: "",
        content_type: "",
        date: DATE,
        account,
        path: black_box(PATH),
        comp: None,
    };
    is_fresh && request.is_signed_by(keys, scheme, signature)
}

fn sas(query: &str, keys: &[AccountKey], now: DateTime, connection: &Connection) -> bool {
    let Ok(Some(token)) = SasToken::read(&Query::split(query), "", &KIND) else { return false };
    token.verify(ACCOUNT, keys) && token.grant(&[], now, connection).is_ok()
}

/// The fastest of several rounds, because other work on the machine can only slow a round down.
#[allow(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
fn measure(name: &str, mut call: impl FnMut() -> bool) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            assert!(call(), "{name} is refused");
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!("{name:<40} {best:>8.0} ns");
}
