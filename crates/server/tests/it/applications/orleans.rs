//! Orleans: two rows in one batch with the ETags of both, ranges of a hash ring, and filters that name hundreds of
//! rows.

use testkit::{Batch, Request, TestServer, batch_parts, entity_json};

use super::dotnet::query;
use super::values;

/// A silo's row in the membership table, which has one row per silo and one row for the version of the whole.
fn silo(row: &str, status: &str) -> String {
    entity_json("cluster", row, &format!("\"Status\":\"{status}\",\"Generation\":\"1\""))
}

fn version(number: u32) -> String {
    entity_json("cluster", "VersionRow", &format!("\"MembershipVersion\":\"{number}\""))
}

fn replace(batch: Batch, row: &str, etag: &str, json: &str) -> Batch {
    let target = format!("/OrleansSiloInstances(PartitionKey='cluster',RowKey='{row}')");
    batch.operation("PUT", &target, &[("If-Match", etag)], Some(json))
}

#[test]
fn a_silo_joins_with_the_version_row_in_one_batch() {
    let server = TestServer::with_table("OrleansSiloInstances");
    let old = server.send(Request::post("/OrleansSiloInstances").json(&version(0))).expect(201);
    let old = old.required("ETag").to_owned();
    let join = |row: &str, etag: &str, number: u32| {
        let batch = Batch::new().insert("OrleansSiloInstances", &silo(row, "Joining"));
        server.send(replace(batch, "VersionRow", etag, &version(number)).request())
    };
    let parts = batch_parts(&join("10.0.0.1-11111-1", &old, 1));
    assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [204, 204]);
    let new = parts[1].required("ETag").to_owned();
    // Another silo that read the old version is refused and leaves no row.
    let parts = batch_parts(&join("10.0.0.2-11111-1", &old, 1));
    let message = "1:The update condition specified in the request was not satisfied.";
    parts[0].clone().expect_message(412, "UpdateConditionNotSatisfied", message);
    server.get("OrleansSiloInstances", "cluster", "10.0.0.2-11111-1").expect(404);
    // A silo that has joined cannot join again, even with the current version.
    let parts = batch_parts(&join("10.0.0.1-11111-1", &new, 2));
    parts[0].clone().expect_message(409, "EntityAlreadyExists", "0:The specified entity already exists.");
    assert_eq!(server.get("OrleansSiloInstances", "cluster", "VersionRow").json()["MembershipVersion"], "1");
}

#[test]
fn two_rows_are_replaced_with_both_their_etags_or_not_at_all() {
    let server = TestServer::with_table("OrleansSiloInstances");
    let mut batch = Batch::new();
    for json in [silo("s1", "Active"), version(1)] {
        batch = batch.insert("OrleansSiloInstances", &json);
    }
    let parts = batch_parts(&server.send(batch.request()));
    let etags: Vec<String> = parts.iter().map(|part| part.required("ETag").to_owned()).collect();
    let write = |silo_etag: &str, version_etag: &str| {
        let batch = replace(Batch::new(), "s1", silo_etag, &silo("s1", "Dead"));
        batch_parts(&server.send(replace(batch, "VersionRow", version_etag, &version(2)).request()))
    };
    let parts = write(&etags[0], &etags[1]);
    assert_eq!(parts.len(), 2);
    for (silo_etag, version_etag, index) in [
        (&etags[0], parts[1].required("ETag"), '0'),
        (&parts[0].required("ETag").to_owned(), etags[1].as_str(), '1'),
    ] {
        let failed = write(silo_etag, version_etag);
        assert_eq!((failed.len(), failed[0].status), (1, 412));
        assert!(failed[0].error_message().starts_with(index), "{:?}", failed[0]);
    }
    assert_eq!(server.get("OrleansSiloInstances", "cluster", "s1").json()["Status"], "Dead");
}

#[test]
fn rows_are_read_between_boundaries_and_the_boundaries_are_in() {
    let server = TestServer::with_table("OrleansReminders");
    for row in ["00000000", "00000001", "7FFFFFFF", "80000000", "FFFFFFFF"] {
        let members = format!("\"GrainReference\":\"g{row}\"");
        server.insert("OrleansReminders", &format!("service_{row}"), "reminder", &members);
    }
    let check = |filter: &str, expected: &[&str]| {
        let response = query(&server, "OrleansReminders", filter).expect(200);
        let expected: Vec<String> = expected.iter().map(|row| format!("service_{row}")).collect();
        assert_eq!(values(&response, "PartitionKey"), expected, "{filter}");
    };
    let range = |from: &str, to: &str| {
        format!("(PartitionKey gt 'service_{from}') and (PartitionKey le 'service_{to}')")
    };
    check(&range("00000000", "7FFFFFFF"), &["00000001", "7FFFFFFF"]);
    check(&range("7FFFFFFF", "FFFFFFFF"), &["80000000", "FFFFFFFF"]);
    // A range that wraps around the ring is written as two, inside a range that selects the service's own rows.
    check(
        "((PartitionKey gt 'service_') and (PartitionKey le 'service`')) and \
         ((PartitionKey gt 'service_80000000') or (PartitionKey le 'service_00000001'))",
        &["00000000", "00000001", "FFFFFFFF"],
    );
}

#[test]
fn a_grain_directory_asks_for_hundreds_of_rows_at_once() {
    let server = TestServer::with_table("GrainDirectory");
    for row in 0..3 {
        server.insert("GrainDirectory", "cluster", &format!("grain/{row}").replace('/', "_"), "");
    }
    let wanted: Vec<String> = (0..500).map(|row| format!("(RowKey eq 'grain_{row}')")).collect();
    let filter = format!("(PartitionKey eq 'cluster') and ({})", wanted.join(" or "));
    let response = query(&server, "GrainDirectory", &filter).expect(200);
    assert_eq!(values(&response, "RowKey"), ["grain_0", "grain_1", "grain_2"]);
}
