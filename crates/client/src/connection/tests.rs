//! One line per connection string: what it means, or which part is wrong.

use super::*;

const KEY: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0";
const SAS: &str = "sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2030-01-01&sig=c2VjcmV0%3D";

/// Table endpoint, its secondary, queue endpoint, its secondary, and the credential.
fn describe(connection: &ConnectionString) -> String {
    let mut lines = Vec::new();
    for endpoints in [&connection.table, &connection.queue] {
        match endpoints {
            Some(endpoints) => {
                lines.push(endpoints.primary.to_string());
                lines.push(endpoints.secondary.as_ref().map_or("-".to_owned(), Endpoint::to_string));
            }
            None => lines.push("none".to_owned()),
        }
    }
    lines.push(format!("{:?}", connection.credential));
    lines.join("\n")
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let text = text.replace("KEY", KEY).replace("SAS", SAS);
    // Any order of the parts means the same.
    let mut parts: Vec<&str> = text.split(';').collect();
    for _ in 0..parts.len() {
        let connection = ConnectionString::parse(&parts.join(";")).unwrap();
        assert_eq!(describe(&connection), expected.join("\n"), "{text}");
        parts.rotate_left(1);
    }
    let lower: Vec<String> = parts
        .iter()
        .map(|part| match part.split_once('=') {
            Some((name, value)) => format!(" {}={value} ", name.to_ascii_lowercase()),
            None => (*part).to_owned(),
        })
        .collect();
    assert_eq!(describe(&ConnectionString::parse(&lower.join(";")).unwrap()), expected.join("\n"), "{text}");
}

#[track_caller]
fn check_wrong(text: &str, expected: &str) {
    let text = text.replace("KEY", KEY).replace("SAS", SAS);
    let error = ConnectionString::parse(&text).unwrap_err().to_string();
    assert_eq!(error, format!("configuration: {expected}"), "{text}");
    assert!(!error.contains("c2VjcmV0"), "{error}");
}

#[test]
fn an_account_and_its_key_name_the_endpoints() {
    let credential = "Credential::SharedKey(\"shop\", ..)";
    let azure = [
        "https://shop.table.core.windows.net",
        "https://shop-secondary.table.core.windows.net",
        "https://shop.queue.core.windows.net",
        "https://shop-secondary.queue.core.windows.net",
        credential,
    ];
    check(
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=KEY;EndpointSuffix=core.windows.net",
        &azure,
    );
    check("AccountName=shop;AccountKey=KEY", &azure);
    check("AccountName=shop;AccountKey=KEY;;", &azure);
    check("AccountName=shop;AccountKey=KEY;Unheard=of", &azure);
    check("AccountName=shop;AccountKey=KEY;BlobEndpoint=https://shop.blob.core.windows.net/", &azure);
    check(
        "DefaultEndpointsProtocol=http;AccountName=shop;AccountKey=KEY;EndpointSuffix=core.chinacloudapi.cn",
        &[
            "http://shop.table.core.chinacloudapi.cn",
            "http://shop-secondary.table.core.chinacloudapi.cn",
            "http://shop.queue.core.chinacloudapi.cn",
            "http://shop-secondary.queue.core.chinacloudapi.cn",
            credential,
        ],
    );
}

#[test]
fn endpoints_may_be_named() {
    check(
        "AccountName=shop;AccountKey=KEY;TableEndpoint=https://tables.example.com:8443/;TableSecondaryEndpoint=https://replica.example.com/",
        &[
            "https://tables.example.com:8443",
            "https://replica.example.com",
            "https://shop.queue.core.windows.net",
            "https://shop-secondary.queue.core.windows.net",
            "Credential::SharedKey(\"shop\", ..)",
        ],
    );
    check(
        "DefaultEndpointsProtocol=https;AccountName=cosmos;AccountKey=KEY;TableEndpoint=https://cosmos.table.cosmos.azure.com:443/",
        &[
            "https://cosmos.table.cosmos.azure.com:443",
            "https://cosmos-secondary.table.cosmos.azure.com:443",
            "https://cosmos.queue.core.windows.net",
            "https://cosmos-secondary.queue.core.windows.net",
            "Credential::SharedKey(\"cosmos\", ..)",
        ],
    );
    // A host without the account's name in front tells nothing about a replica.
    check(
        "AccountName=a;AccountKey=KEY;TableEndpoint=https://example.com;QueueEndpoint=https://queue.example.com:1",
        &["https://example.com", "-", "https://queue.example.com:1", "-", "Credential::SharedKey(\"a\", ..)"],
    );
    // The endpoint tells the account.
    check(
        "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;AccountKey=KEY",
        &[
            "http://127.0.0.1:10002/devstoreaccount1",
            "http://127.0.0.1:10002/devstoreaccount1-secondary",
            "none",
            "Credential::SharedKey(\"devstoreaccount1\", ..)",
        ],
    );
    check(
        "QueueEndpoint=https://shop.queue.core.windows.net;AccountKey=KEY",
        &[
            "none",
            "https://shop.queue.core.windows.net",
            "https://shop-secondary.queue.core.windows.net",
            "Credential::SharedKey(\"shop\", ..)",
        ],
    );
    check(
        "AccountName=a;AccountKey=KEY;TableEndpoint=http://10.0.0.7:10002;QueueEndpoint=http://[::1]:10001/a",
        &[
            "http://10.0.0.7:10002",
            "-",
            "http://[::1]:10001/a",
            "http://[::1]:10001/a-secondary",
            "Credential::SharedKey(\"a\", ..)",
        ],
    );
}

#[test]
fn a_signature_takes_the_place_of_the_key() {
    check(
        "TableEndpoint=https://shop.table.core.windows.net/;SharedAccessSignature=SAS",
        &[
            "https://shop.table.core.windows.net",
            "https://shop-secondary.table.core.windows.net",
            "none",
            "Credential::Sas(..)",
        ],
    );
    check(
        "BlobEndpoint=https://shop.blob.core.windows.net/;QueueEndpoint=https://shop.queue.core.windows.net/;FileEndpoint=https://shop.file.core.windows.net/;TableEndpoint=https://shop.table.core.windows.net/;SharedAccessSignature=?SAS",
        &[
            "https://shop.table.core.windows.net",
            "https://shop-secondary.table.core.windows.net",
            "https://shop.queue.core.windows.net",
            "https://shop-secondary.queue.core.windows.net",
            "Credential::Sas(..)",
        ],
    );
    check(
        "AccountName=shop;SharedAccessSignature=SAS;EndpointSuffix=.example.org",
        &[
            "https://shop.table.example.org",
            "https://shop-secondary.table.example.org",
            "https://shop.queue.example.org",
            "https://shop-secondary.queue.example.org",
            "Credential::Sas(..)",
        ],
    );
}

#[test]
fn the_emulator_has_a_name_of_its_own() {
    let at = |host: &str| {
        [
            format!("{host}:10002/devstoreaccount1"),
            format!("{host}:10002/devstoreaccount1-secondary"),
            format!("{host}:10001/devstoreaccount1"),
            format!("{host}:10001/devstoreaccount1-secondary"),
            "Credential::SharedKey(\"devstoreaccount1\", ..)".to_owned(),
        ]
    };
    let local = at("http://127.0.0.1");
    let proxied = at("http://emulator.internal");
    check("UseDevelopmentStorage=true", &local.each_ref().map(String::as_str));
    check("UseDevelopmentStorage=True;", &local.each_ref().map(String::as_str));
    check(
        "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://emulator.internal",
        &proxied.each_ref().map(String::as_str),
    );
}

#[test]
fn errors_name_the_part_that_is_wrong() {
    check_wrong("", "the connection string is empty or has no known part");
    check_wrong("KEY==", "the connection string is empty or has no known part");
    check_wrong("AccountName=shop;KEY", "part 2 of the connection string has no `=`");
    check_wrong("AccountName=shop", "the connection string has neither AccountKey nor SharedAccessSignature");
    check_wrong(
        "AccountName=shop;AcountKey=KEY",
        "the connection string has neither AccountKey nor SharedAccessSignature; it has unknown parts: AcountKey",
    );
    check_wrong(
        "AccountKey=KEY",
        "the connection string has neither AccountName nor TableEndpoint nor QueueEndpoint",
    );
    check_wrong("AccountName=shop;AccountKey=c2VjcmV0!", "the connection string's AccountKey is not Base64");
    check_wrong("AccountName=shop;AccountKey=", "the connection string's AccountKey is empty");
    check_wrong(
        "AccountName=a;AccountKey=KEY;accountkey=KEY",
        "the connection string's AccountKey is there twice",
    );
    check_wrong(
        "AccountName=shop/x;AccountKey=KEY",
        "the connection string's AccountName has a character that no account's name has",
    );
    check_wrong(
        "AccountName=shop;AccountKey=KEY;DefaultEndpointsProtocol=ftp",
        "the connection string's DefaultEndpointsProtocol is neither http nor https",
    );
    check_wrong(
        "AccountName=shop;AccountKey=KEY;EndpointSuffix=a b",
        "the connection string's EndpointSuffix is not part of a host name",
    );
    check_wrong(
        "TableEndpoint=here;AccountKey=KEY",
        "the connection string's TableEndpoint begins with neither http:// nor https://",
    );
    check_wrong(
        "TableEndpoint=http://a b;AccountKey=KEY",
        "the connection string's TableEndpoint is not a URL",
    );
    check_wrong(
        "TableEndpoint=ftp://a.b;AccountKey=KEY",
        "the connection string's TableEndpoint begins with neither http:// nor https://",
    );
    check_wrong(
        "TableEndpoint=https://u:c2VjcmV0@a.b;AccountKey=KEY",
        "the connection string's TableEndpoint has a user name in it",
    );
    check_wrong(
        "TableEndpoint=https://a.b/?SAS;AccountKey=KEY",
        "the connection string's TableEndpoint has a query: give a shared access signature as a part of its own",
    );
    check_wrong(
        "TableSecondaryEndpoint=https://a.b/;AccountName=a;AccountKey=KEY",
        "the connection string's TableSecondaryEndpoint needs a TableEndpoint",
    );
    check_wrong(
        "TableEndpoint=http://10.0.0.7:10002;AccountKey=KEY",
        "the connection string's AccountName is missing, and the endpoint does not tell it",
    );
    check_wrong(
        "TableEndpoint=https://a.b;SharedAccessSignature=sv=1",
        "the connection string's SharedAccessSignature has no sig, or a character that must be percent-encoded",
    );
    check_wrong("UseDevelopmentStorage=yes", "the connection string's UseDevelopmentStorage is not `true`");
    check_wrong(
        "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=nowhere",
        "the connection string's DevelopmentStorageProxyUri begins with neither http:// nor https://",
    );
}

#[test]
fn a_service_that_is_not_named_is_an_error_only_when_it_is_needed() {
    let connection = ConnectionString::parse(&format!(
        "QueueEndpoint=https://shop.queue.core.windows.net;SharedAccessSignature={SAS}"
    ))
    .unwrap();
    assert!(connection.endpoints(&protocol::queue::KIND).is_ok());
    let error = connection.endpoints(&protocol::table::KIND).unwrap_err();
    assert_eq!(error.to_string(), "configuration: the connection string's TableEndpoint is missing");
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let error = ConnectionString::from_env_var("LAZULITE_NO_SUCH_VARIABLE").unwrap_err();
    assert_eq!(
        error.to_string(),
        "configuration: the environment variable LAZULITE_NO_SUCH_VARIABLE is not set"
    );
}
