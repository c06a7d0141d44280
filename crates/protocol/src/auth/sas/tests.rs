//! The published test vectors of every version, and tokens that are wrong in one way each.

use super::*;
use crate::ErrorCode;
use crate::table::model::TableName;
use crate::table::{KIND, TableScope};

const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// A signature of the right length.
const SIG: &str = "sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D";

fn key() -> AccountKey {
    AccountKey::from_base64(KEY).unwrap()
}

fn read(query: &str) -> Result<Option<SasToken<'_>>, MalformedSas> {
    SasToken::read(&Query::split(query), "", &KIND)
}

fn parse(query: &str) -> SasToken<'_> {
    read(query).unwrap().unwrap()
}

fn whole_table(name: &str) -> TableScope {
    TableScope::new(TableName::parse(name).unwrap())
}

/// The token reads, verifies with one of two keys, and minting its terms gives the same signature again.
#[track_caller]
fn check_vector(terms: &str, signature: &str) {
    let keys = [AccountKey::from_base64("AAAA").unwrap(), key()];
    let query = format!("{terms}&sig={signature}");
    let token = parse(&query);
    assert!(token.verify(ACCOUNT, &keys), "{:?}", token.terms().string_to_sign(ACCOUNT));
    assert!(!token.verify(ACCOUNT, &keys[..1]));
    assert!(!token.verify("another", &keys));
    assert!(!token.verify(ACCOUNT, &[]));

    let minted = token.terms().mint(ACCOUNT, &key()).unwrap();
    let escaped = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    assert!(minted.ends_with(&format!("&sig={escaped}")), "{minted}");
    assert_eq!(parse(&minted), token);
}

/// The first, second and fourth are from the specification, sections 8.3 and 8.4.
#[test]
fn the_vectors_of_every_version_verify() {
    check_vector(
        "se=2030-01-01T00%3A00%3A00Z&sp=rwdlacu&sv=2019-02-02&ss=t&srt=sco",
        "Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW+qY5V7MM9DMY=",
    );
    check_vector(
        "sv=2020-12-06&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00:00:00Z&spr=https,http",
        "aQbb1uM9CNZPJhjuzMWpvrja5t6VW2FlvCUFVvjctAk=",
    );
    check_vector(
        "sv=2021-08-06&ss=bqt&srt=os&sp=lr&st=2020-01-01&se=2030-01-01T00%3A00Z&sip=10.0.0.1-10.0.0.9&spr=https&ses=scope",
        "nT04FMILDBxy+Yd+DFq0KSVnFtjyPbUUEj28Qmmg40E=",
    );
    check_vector(
        "se=2030-01-01T00%3A00%3A00Z&sp=raud&sv=2019-02-02&tn=MyTable&spk=pk1&srk=rk1&epk=pk2&erk=rk2",
        "QtwqIO93O3k40gfiFMcCyf9QtUA1iR5/34zCqPqKnMc=",
    );
    check_vector(
        "sv=2015-04-05&tn=mytable&sp=r&st=2020-01-01&se=2030-01-01&sip=10.0.0.1&spr=https",
        "jM7pfXj4LEhPVsH+Ax+li2wUAaks9cwFjtf9M4fAgRA=",
    );
    check_vector(
        "sv=2015-02-21&tn=mytable&sp=r&se=2030-01-01&spk=a+b",
        "lRPABo0iml6u5Xzb2y1EAWEMv7HVq9sStu0UQMnAx6g=",
    );
    check_vector(
        "sv=2014-02-14&tn=mytable&sp=r&se=2030-01-01&epk=%C3%BC",
        "DZl49BCT7Jw/spYt0vSZ0oAGPImrDw0CfckzWWtmN+A=",
    );
    check_vector(
        "sv=2013-08-15&tn=mytable&sp=r&se=2030-01-01",
        "2IGmMOR6BP2ghHG4VTjmU5NGh4Spk2Ks5ovrjQL7j7Y=",
    );
    check_vector("sv=2012-02-12&tn=mytable&si=policy", "W7CyhLguJx8LQ5EP7VBEtj/rvp4HmYiIkWzLS9d8FHA=");
}

#[test]
fn signatures_are_read_escaped_and_raw() {
    let terms = "se=2030-01-01T00%3A00%3A00Z&sp=rwdlacu&sv=2019-02-02&ss=t&srt=sco";
    for signature in [
        "Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW+qY5V7MM9DMY=",
        "Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW%2BqY5V7MM9DMY%3D",
        "Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW%2bqY5V7MM9DMY%3d",
    ] {
        assert!(parse(&format!("{terms}&sig={signature}")).verify(ACCOUNT, &[key()]), "{signature}");
    }
}

#[test]
fn a_change_to_any_signed_field_breaks_the_signature() {
    #[track_caller]
    fn check(terms: &str, changes: &[(&str, &str)]) {
        let minted = parse(&format!("{terms}&{SIG}")).terms().mint(ACCOUNT, &key()).unwrap();
        assert!(parse(&minted).verify(ACCOUNT, &[key()]));
        for (name, value) in changes {
            // The first value of a repeated parameter counts.
            let changed = format!("{name}={value}&{minted}");
            let changed = parse(&changed);
            assert!(!changed.verify(ACCOUNT, &[key()]), "{name}={value}");
        }
    }
    let common = [
        ("sp", "ra"),
        ("st", "2020-01-02"),
        ("se", "2040-01-01"),
        ("sip", "10.0.0.2"),
        ("sip", ""),
        ("spr", "https,http"),
        ("sv", "2021-08-06"),
    ];
    let of_account =
        "sv=2022-11-02&ss=t&srt=o&sp=r&st=2020-01-01&se=2030-01-01&sip=10.0.0.1&spr=https&ses=scope";
    check(of_account, &common);
    check(of_account, &[("ss", "bt"), ("srt", "so"), ("ses", "other")]);
    let of_table = "sv=2022-11-02&tn=abc&sp=r&st=2020-01-01&se=2030-01-01&sip=10.0.0.1&spr=https&si=x\
                    &spk=a&srk=b&epk=c&erk=d";
    check(of_table, &common);
    check(of_table, &[("tn", "abd"), ("si", "y"), ("si", "")]);
    check(of_table, &[("spk", "0"), ("srk", "0"), ("srk", ""), ("epk", "x"), ("erk", "x"), ("erk", "")]);
}

#[test]
fn a_query_without_a_signature_has_no_token() {
    for query in ["", "$top=1", "sv=2019-02-02&tn=mytable&sp=r", "Sig=x", "%zz=1&$filter=%f"] {
        assert_eq!(read(query).unwrap(), None, "{query}");
    }
}

#[test]
fn the_first_of_a_repeated_field_counts_and_others_are_left_alone() {
    let query = format!("$filter=%zz&sv=2019-02-02&tn=MyTable&sp=dra&{SIG}&se=2030-01-01&sp=r&sig=x&tn=x");
    let token = parse(&query);
    let SasScope::Service(scope) = &token.terms().scope else { panic!("{token:?}") };
    assert_eq!((scope.container(), &*token.terms().permissions), ("mytable", "dra"));
}

#[test]
fn an_empty_field_is_an_absent_one() {
    let terms = format!("sv=2019-02-02&tn=abc&sp=r&se=2030-01-01&{SIG}");
    let empty = format!("{terms}&st=&sip=&spr=&si=&spk=&srk=&epk=&erk=&api-version=");
    assert_eq!(parse(&empty), parse(&terms));
}

#[test]
fn what_no_token_can_have_is_refused() {
    #[track_caller]
    fn check(query: &str, reason: &str) {
        let error = ServiceError::from(read(query).unwrap_err());
        assert_eq!((error.code, error.code.status()), (ErrorCode::AuthenticationFailed, 403), "{query}");
        assert_eq!(error.detail, None);
        assert_eq!(error.source.unwrap().to_string(), reason, "{query}");
    }
    let account = |change: &str| format!("{change}&sv=2019-02-02&ss=t&srt=o&sp=r&se=2030-01-01&{SIG}");
    let table = |change: &str| format!("{change}&sv=2019-02-02&tn=abc&sp=r&se=2030-01-01&{SIG}");
    parse(&account(""));
    parse(&table(""));

    let signature = "the signature is not the Base64 of 32 bytes";
    for bad in
        ["", "x", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "%zz", "%C3%BC", &"A".repeat(900)]
    {
        check(&table(&format!("sig={bad}")), signature);
    }
    check(&table("sig"), signature);

    for bad in ["", "2019", "2019-2-2", "2019-02-02x", "2019_02_02", "v019-02-02"] {
        check(&table(&format!("sv={bad}")), "sv is not a version");
        check(&account(&format!("sv={bad}")), "sv is not a version");
    }
    check(&account("sv=2015-02-21"), "sv is older than account SAS");
    check(&table("sv=2011-08-18"), "sv is older than service SAS");
    check(&table("sv=2015-02-21&sip=10.0.0.1"), "sv is older than sip and spr");
    check(&table("sv=2015-02-21&spr=https"), "sv is older than sip and spr");

    for missing in ["ss=", "srt=", "sp=", "se="] {
        check(&account(missing), "ss, srt, sp and se are required");
    }
    for missing in ["sp=", "se="] {
        check(&table(missing), "sp and se are required without a stored policy");
    }
    parse(&table("sp=&se=&si=policy"));
    for bad in ["tn=", "tn=ab", "tn=a-b-c", "tn=Tables"] {
        check(&table(bad), "tn names no table");
    }
    check(&format!("sv=2019-02-02&sp=r&se=2030-01-01&{SIG}"), "tn names no table");

    check(&table("srk=r"), "srk needs spk, and erk needs epk");
    check(&table("erk=r"), "srk needs spk, and erk needs epk");
    check(&table("spk=p&erk=r"), "srk needs spk, and erk needs epk");

    for name in ["st", "se"] {
        for bad in ["soon", "2030", "2030-02-30", "2030-01-01T00Z", "01/01/2030"] {
            check(&table(&format!("{name}={bad}")), "st or se is not a time");
            check(&account(&format!("{name}={bad}")), "st or se is not a time");
        }
    }
    for bad in [
        "x",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.1-",
        "-10.0.0.1",
        "10.0.0.1-10.0.0.2-10.0.0.3",
        "%3A%3A1",
        "10.0.0.0/8",
    ] {
        check(&table(&format!("sip={bad}")), "sip is neither an IPv4 address nor a range of them");
    }
    for bad in ["http", "http,https", "HTTPS", "ftp", "https,"] {
        check(&account(&format!("spr={bad}")), "spr is neither https nor https,http");
    }
    check(&table("api-version=new"), "api-version is not a version");
    check(&table("spk=%zz"), "a field is not percent-encoded UTF-8");
    check(&table("spk=%ff"), "a field is not percent-encoded UTF-8");
    for name in ["sp", "si", "spk"] {
        check(&table(&format!("{name}=a%0Ab")), "a field holds a control character");
    }
    for name in ["sp", "ss", "srt", "ses"] {
        check(&account(&format!("{name}=a%0Ab")), "a field holds a control character");
    }
}

#[test]
fn what_cannot_be_read_cannot_be_minted() {
    let terms = SasTerms::new("2019-02-02", SasScope::Service(whole_table("abc").into_scope().unwrap()));
    assert_eq!(
        terms.mint(ACCOUNT, &key()),
        Err(MalformedSas("sp and se are required without a stored policy"))
    );
    let terms = SasTerms { permissions: "r".into(), expiry: "later".into(), ..terms };
    assert_eq!(terms.mint(ACCOUNT, &key()), Err(MalformedSas("st or se is not a time")));
    let lone_row = TableScope { end_row_key: "r".into(), ..whole_table("abc") };
    assert_eq!(lone_row.into_scope(), Err(MalformedSas("srk needs spk, and erk needs epk")));
}

#[test]
fn minted_tokens_survive_every_character() {
    let hostile = "a&b=c+d e%41#?/\\'\"<>ü\u{1F600}~";
    let scope = TableScope {
        policy: hostile.into(),
        start_partition_key: hostile.into(),
        start_row_key: hostile.into(),
        end_partition_key: hostile.into(),
        end_row_key: hostile.into(),
        ..whole_table("MyTable")
    };
    let terms = SasTerms::new("2019-02-02", SasScope::Service(scope.into_scope().unwrap()));
    let query = terms.mint(ACCOUNT, &key()).unwrap();
    assert!(query.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%&=".contains(&byte)), "{query}");
    let token = parse(&query);
    assert_eq!(*token.terms(), terms);
    assert!(token.verify(ACCOUNT, &[key()]));
    let (table, policy) = token.policy().unwrap();
    assert_eq!((table, policy), ("mytable", hostile));
}

#[test]
fn no_query_makes_the_reader_panic() {
    let seeds = [
        format!(
            "sv=2019-02-02&ss=bt&srt=sco&sp=r&st=2020-01-01T00:00Z&se=2030-01-01&sip=1.2.3.4-5.6.7.8&{SIG}"
        ),
        format!(
            "sv=2019-02-02&tn=abc&sp=r&se=2030-01-01T00:00:00.1%2B01:00&spk=a&srk=b&epk=c&erk=%C3%BC&{SIG}"
        ),
    ];
    let mut random = fastrand::Rng::with_seed(8_5);
    for _ in 0..5_000 {
        let mut query: Vec<char> = random.choice(&seeds).unwrap().chars().collect();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..query.len());
            query[at] = random
                .choice(['%', '&', '=', '+', '-', ':', '.', 'T', 'Z', '0', '9', 'a', 'é', '\0'])
                .unwrap();
        }
        let query: String = query.into_iter().collect();
        if let Ok(Some(token)) = read(&query) {
            let minted = token.terms().mint(ACCOUNT, &key()).unwrap();
            assert_eq!(parse(&minted).terms(), token.terms(), "{query}");
        }
    }
}
