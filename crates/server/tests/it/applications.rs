//! The requests that well-known applications send, header for header, and what each application needs in the answer.
//!
//! Every request is written as its client writes it. Only the signature, the date and the address are filled in here.

mod durable_task;
mod orleans;

use serde_json::{Value, json};
use testkit::{Request, Response, Scheme, TestServer, batch_parts, entity_json, percent_encode};

/// A request with these headers only, without those that the test kit usually adds.
fn bare(method: &str, target: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = Request::new(method, target).without("Accept").without("DataServiceVersion");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
}

fn values(response: &Response, name: &str) -> Vec<String> {
    let body = response.json();
    let rows = body["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}")).iter();
    rows.map(|row| row[name].as_str().unwrap().to_owned()).collect()
}

mod storage_explorer {
    use super::*;

    fn send(server: &TestServer, method: &str, target: &str, accept: &str) -> Response {
        let headers = [
            ("User-Agent", "Microsoft Azure Storage Explorer, 1.35.0, win32, azsdk-js-data-tables/13.2.2"),
            ("Accept", accept),
            ("DataServiceVersion", "3.0"),
            ("x-ms-client-request-id", "0d9e0c4e-4d2b-4c1c-a1d6-77d32b4a1b5e"),
            ("Accept-Encoding", "gzip,deflate"),
        ];
        server.send(bare(method, target, &headers).scheme(Scheme::SharedKeyLite))
    }

    const JSON: &str = "application/json;odata=fullmetadata";

    #[test]
    fn opens_a_table_with_empty_select_and_filter() {
        let server = TestServer::with_table("people");
        server.insert("people", "p", "r", r#""age":39"#);
        for query in
            ["$select=&$filter=", "$filter=&$select=&$top=1000", "$top=1000&$filter=", "%24select=&%24top=50"]
        {
            let response = send(&server, "GET", &format!("/people()?{query}"), JSON).expect(200);
            assert_eq!(response.json()["value"][0]["age"], 39, "{query}");
            assert_eq!(response.json()["value"].as_array().unwrap().len(), 1, "{query}");
        }
    }

    #[test]
    fn pages_through_a_table_by_the_size_it_shows() {
        let server = TestServer::with_table("people");
        for row in 0..5 {
            server.insert("people", "p", &row.to_string(), "");
        }
        let first = send(&server, "GET", "/people()?$select=&$top=2", JSON).expect(200);
        assert_eq!(values(&first, "RowKey"), ["0", "1"]);
        let next = |response: &Response| {
            let token = |name: &str| percent_encode(response.required(&format!("x-ms-continuation-{name}")));
            let (partition, row) = (token("NextPartitionKey"), token("NextRowKey"));
            format!("/people()?$select=&$top=2&NextPartitionKey={partition}&NextRowKey={row}")
        };
        let second = send(&server, "GET", &next(&first), JSON).expect(200);
        assert_eq!(values(&second, "RowKey"), ["2", "3"]);
        let last = send(&server, "GET", &next(&second), JSON).expect(200);
        assert_eq!(values(&last, "RowKey"), ["4"]);
        assert_eq!(last.header("x-ms-continuation-NextRowKey"), None);
    }

    #[test]
    fn reads_and_writes_policies_with_an_atom_accept() {
        let server = TestServer::with_table("people");
        let accept = "application/atom+xml,application/xml";
        let response = send(&server, "GET", "/people?comp=acl&timeout=30", accept).expect(200);
        assert!(response.text().ends_with("<SignedIdentifiers />"), "{response:?}");
        let policies = "<SignedIdentifiers><SignedIdentifier><Id>p1</Id><AccessPolicy><Start></Start><Expiry></Expiry>\
                        <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        let request = bare("PUT", "/people?comp=acl&timeout=30", &[("Accept", accept)])
            .body("application/xml", policies);
        server.send(request.scheme(Scheme::SharedKeyLite)).expect(204);
        let response = send(&server, "GET", "/people?comp=acl", accept).expect(200);
        let kept = "<Id>p1</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>";
        assert!(response.text().contains(kept), "{response:?}");
        assert_eq!(response.header("Content-Type"), Some("application/xml"));
    }

    #[test]
    fn asks_for_the_last_day_with_milliseconds() {
        let server = TestServer::with_table("people");
        server.insert("people", "p", "r", "");
        let filter = percent_encode("Timestamp ge datetime'2020-01-01T00:00:00.000Z'");
        let response =
            send(&server, "GET", &format!("/people()?$filter={filter}&$top=1000"), JSON).expect(200);
        assert_eq!(values(&response, "RowKey"), ["r"]);
    }
}

/// `Azure.Data.Tables`, the current client for .NET.
mod dotnet {
    use super::*;

    const MINIMAL: &str = "application%2Fjson%3Bodata%3Dminimalmetadata";

    pub fn get(server: &TestServer, target: &str) -> Response {
        let headers = [
            ("DataServiceVersion", "3.0"),
            ("Accept", "application/json;odata=minimalmetadata"),
            ("x-ms-client-request-id", "6f25f4f9-3232-4275-b02b-effccb29cfbc"),
            ("x-ms-return-client-request-id", "true"),
            ("User-Agent", "azsdk-net-Data.Tables/12.3.0 (.NET 6.0.8; Microsoft Windows 10.0.19044)"),
        ];
        let response = server.send(bare("GET", target, &headers).scheme(Scheme::SharedKeyLite));
        assert_eq!(response.header("x-ms-client-request-id"), Some("6f25f4f9-3232-4275-b02b-effccb29cfbc"));
        response
    }

    pub fn query(server: &TestServer, table: &str, filter: &str) -> Response {
        get(server, &format!("/{table}()?$format={MINIMAL}&$filter={}", percent_encode(filter)))
    }

    #[test]
    fn health_checks_ask_for_no_table_at_all() {
        let server = TestServer::with_table("present");
        for target in [
            "/Tables?$format=application%2Fjson%3Bodata%3Dminimalmetadata&$filter=false",
            "/Tables?$filter=false",
        ] {
            let response = get(&server, target).expect(200);
            assert_eq!(values(&response, "TableName"), Vec::<String>::new());
            assert_eq!(response.header("x-ms-continuation-NextTableName"), None);
        }
        // A health check for one table queries it with a filter that matches nothing. Only a missing table is
        // unhealthy.
        server.insert("present", "p", "r", "");
        assert_eq!(values(&query(&server, "present", "false").expect(200), "RowKey"), Vec::<String>::new());
        query(&server, "absent", "false").expect_error(404, "TableNotFound");
    }

    #[test]
    fn the_functions_host_lists_its_tables_by_prefix() {
        let server = TestServer::start();
        for table in [
            "AzureFunctionsDiagnosticEvents202606",
            "AzureFunctionsDiagnosticEvents202607",
            "AzureWebJobs",
            "zebra",
        ] {
            server.create_table(table);
        }
        let check = |prefix: &str, expected: &[&str]| {
            let filter = percent_encode(&format!("TableName ge '{prefix}' and TableName le '{prefix}{{'"));
            let response = get(&server, &format!("/Tables?$format={MINIMAL}&$filter={filter}")).expect(200);
            assert_eq!(values(&response, "TableName"), expected, "{prefix}");
        };
        let events = ["AzureFunctionsDiagnosticEvents202606", "AzureFunctionsDiagnosticEvents202607"];
        check("AzureFunctionsDiagnosticEvents", &events);
        check("AzureFunctionsScaleMetrics", &[]);
        check("azurefunctionsdiagnosticevents", &events);
        check("zebra", &["zebra"]);
    }

    #[test]
    fn the_functions_host_makes_and_drops_a_table_to_see_whether_it_may() {
        let server = TestServer::start();
        let name = "AzureFunctionsDiagnosticEventsCheck";
        for _ in 0..3 {
            let headers = [
                ("DataServiceVersion", "3.0"),
                ("Accept", "application/json;odata=minimalmetadata"),
                ("Prefer", "return-no-content"),
            ];
            let create = bare("POST", &format!("/Tables?$format={MINIMAL}"), &headers);
            let create =
                create.body("application/json;odata=nometadata", format!("{{\"TableName\":\"{name}\"}}"));
            let response = server.send(create.scheme(Scheme::SharedKeyLite)).expect(204);
            assert_eq!(response.header("DataServiceId"), response.header("Location"));
            let delete = bare("DELETE", &format!("/Tables('{name}')"), &[("Accept", "application/json")]);
            let response = server.send(delete.scheme(Scheme::SharedKeyLite)).expect(204);
            assert_eq!(response.header("Content-Length"), Some("0"));
        }
    }
}

mod terraform {
    use super::*;

    fn send(server: &TestServer, method: &str, target: &str, body: Option<&str>) -> Response {
        let headers = [
            ("Accept", "application/json;odata=nometadata"),
            ("DataServiceVersion", "3.0;NetFx"),
            ("MaxDataServiceVersion", "3.0;NetFx"),
            (
                "User-Agent",
                "Go/go1.21 (amd64-linux) go-autorest/v14.2.1 tombuildsstuff/giovanni/v0.20.0 storage/2018-11-09",
            ),
            ("x-ms-version", "2018-11-09"),
        ];
        let mut request = bare(method, target, &headers).scheme(Scheme::SharedKeyLite);
        if let Some(body) = body {
            request = request.body("application/json", body);
        }
        if method == "DELETE" {
            request = request.header("If-Match", "*");
        }
        server.send(request)
    }

    #[test]
    fn entities_are_merged_with_the_verb_merge_and_a_blank_after_the_comma() {
        let server = TestServer::with_table("tftable");
        let path = "/tftable(PartitionKey='key%27%27s%20part',%20RowKey='exa%2Bmple')";
        for value in ["one", "two"] {
            let body = entity_json("key's part", "exa+mple", &format!("\"example\":\"{value}\""));
            let response = send(&server, "MERGE", path, Some(&body)).expect(204);
            assert!(response.required("ETag").starts_with("W/\"datetime'"), "{response:?}");
            assert_eq!(response.header("x-ms-version"), Some("2018-11-09"));
        }
        let read = send(&server, "GET", path, None).expect(200);
        assert_eq!(read.json()["example"], "two");
        assert_eq!(read.json().get("odata.etag"), None);
        send(&server, "DELETE", path, None).expect(204);
        send(&server, "GET", path, None).expect_error(404, "ResourceNotFound");
    }

    #[test]
    fn paths_come_percent_encoded_all_over() {
        let server = TestServer::with_table("tftable");
        let body = entity_json("p", "r", r#""example":"x""#);
        send(&server, "POST", "/tftable", Some(&body)).expect(201);
        for path in [
            "/tftable%28PartitionKey=%27p%27,%20RowKey=%27r%27%29",
            "/tftable%28PartitionKey%3D%27p%27%2C%20RowKey%3D%27r%27%29",
            "/%74ftable(PartitionKey='p', RowKey='r')".replace(", ", ",%20").as_str(),
        ] {
            let response = send(&server, "GET", path, None);
            assert_eq!((response.status, &response.json()["example"]), (200, &json!("x")), "{path}");
        }
        send(&server, "DELETE", "/Tables%28%27tftable%27%29", None).expect(204);
        send(&server, "GET", "/Tables('tftable')", None).expect_error(404, "ResourceNotFound");
    }
}

/// Older clients: `Microsoft.WindowsAzure.Storage`, `azure-storage` for Node and for PHP, and similar ones.
mod older_clients {
    use super::*;

    const NET: [(&str, &str); 5] = [
        ("Accept-Charset", "UTF-8"),
        ("MaxDataServiceVersion", "3.0;NetFx"),
        ("DataServiceVersion", "3.0;NetFx"),
        ("Accept", "application/json; odata=minimalmetadata"),
        ("User-Agent", "Azure-Cosmos-Table/1.0.8 (.NET CLR 4.0.30319.42000; Win32NT 6.2.9200.0)"),
    ];

    fn net(method: &str, target: &str) -> Request {
        bare(method, target, &NET).header("x-ms-version", "2017-07-29")
    }

    #[test]
    fn the_versions_name_a_framework_and_a_charset_is_asked_for() {
        let server = TestServer::start();
        let create = net("POST", "/Tables()").body("application/json", r#"{"TableName":"old"}"#);
        server.send(create.header("Prefer", "return-no-content")).expect(204);
        let insert = net("POST", "/old").header("Prefer", "return-no-content");
        let insert =
            insert.body("application/json", entity_json("p", "r", r#""n":"5","n@odata.type":"Edm.Int64""#));
        let etag = server.send(insert).expect(204).required("ETag").to_owned();
        let merge = net("POST", "/old(PartitionKey='p',RowKey='r')").header("X-HTTP-Method", "MERGE");
        let merge = merge.header("If-Match", &etag).body("application/json", r#"{"m":true}"#);
        server.send(merge).expect(204);
        let response = server.send(net("GET", "/old?$filter=n%20eq%205L&takeCount=1")).expect(200);
        let body = response.json();
        let row = &body["value"][0];
        assert_eq!(
            (&row["n@odata.type"], &row["n"], &row["m"]),
            (&json!("Edm.Int64"), &json!("5"), &json!(true))
        );
        assert_eq!(response.header("DataServiceVersion"), None);
    }

    #[test]
    fn node_quotes_keys_in_escapes_and_batches_with_atom_accepts() {
        let server = TestServer::with_table("old");
        let accept = "application/atom+xml,application/xml";
        let headers = [
            ("Accept", accept),
            ("Accept-Charset", "UTF-8"),
            ("DataServiceVersion", "3.0;"),
            ("MaxDataServiceVersion", "3.0;NetFx"),
        ];
        let path = "/old(PartitionKey=%27p%27,RowKey=%27r%27)";
        // The Accept header does not matter to an operation that returns no body.
        let put = bare("PUT", path, &headers).body("application/json;odata=nometadata", r#"{"x":1.0}"#);
        server.send(put).expect(204);
        let batch = "--batch_1\r\ncontent-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_1\r\n\r\n--changeset_1\r\n\
                     content-type: application/http\r\ncontent-transfer-encoding: binary\r\n\r\n\
                     PUT http://127.0.0.1:10002/devstoreaccount1/old(PartitionKey=%27p%27,RowKey=%27r%27) HTTP/1.1\r\n\
                     Accept: application/atom+xml,application/xml\r\nContent-ID: 1\r\nif-match: *\r\n\
                     Content-Type: application/json;odata=nometadata\r\n\r\n{\"x\":2.0}\r\n--changeset_1--\r\n--batch_1--";
        let request = bare("POST", "/$batch", &headers)
            .body("multipart/mixed; charset=\"utf-8\"; boundary=batch_1", batch);
        let parts = batch_parts(&server.send(request));
        assert_eq!((parts[0].status, parts[0].header("Content-ID")), (204, Some("1")));
        server.send(bare("DELETE", path, &headers).header("If-Match", "*")).expect(204);
        // An operation with a body cannot answer as Atom.
        server.send(bare("GET", "/Tables", &headers)).expect_error(415, "AtomFormatNotSupported");
    }

    #[test]
    fn doubles_come_back_with_their_point_so_that_they_stay_doubles() {
        let server = TestServer::with_table("old");
        let insert = net("POST", "/old").body("application/json", entity_json("p", "r", r#""x":1.0,"y":2"#));
        let response = server.send(insert).expect(201);
        assert!(response.text().contains(r#""x":1.0,"y":2"#), "{response:?}");
        let body: Value = server.send(net("GET", "/old(PartitionKey='p',RowKey='r')")).expect(200).json();
        assert!(body["x"].is_f64() && body["y"].is_i64(), "{body}");
    }
}
