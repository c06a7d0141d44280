//! Durable Task: instances with empty row keys, ordinal key ranges, and histories in full batches guarded by an ETag.

use testkit::{Request, Scheme, TestServer, batch_parts, entity_json};

use super::dotnet::query;
use super::{bare, values};

fn instances() -> TestServer {
    let server = TestServer::with_table("HubInstances");
    let member = |time: &str, status: &str| {
        format!(
            "\"CreatedTime\":\"{time}\",\"CreatedTime@odata.type\":\"Edm.DateTime\",\"RuntimeStatus\":\"{status}\""
        )
    };
    server.insert("HubInstances", "7bb0", "", &member("2020-01-01T00:00:00.1234567Z", "Running"));
    server.insert("HubInstances", "@counter@mine", "", &member("2020-01-01T00:00:00.1234568Z", "Running"));
    server.insert("HubInstances", "Abc", "", &member("2020-01-02T00:00:00Z", "Completed"));
    server.insert("HubInstances", "abc", "", &member("2020-01-03T00:00:00Z", "Failed"));
    server
}

#[track_caller]
fn check(server: &TestServer, filter: &str, expected: &[&str]) {
    let response = query(server, "HubInstances", filter).expect(200);
    assert_eq!(values(&response, "PartitionKey"), expected, "{filter}");
}

#[test]
fn instances_have_an_empty_row_key() {
    let server = instances();
    check(&server, "PartitionKey eq 'Abc' and RowKey eq ''", &["Abc"]);
    check(&server, "(PartitionKey eq 'abc') and (RowKey eq '')", &["abc"]);
    check(&server, "RowKey eq ''", &["7bb0", "@counter@mine", "Abc", "abc"]);
    check(&server, "RowKey ne ''", &[]);
    check(&server, "PartitionKey eq 'nobody' and RowKey eq ''", &[]);
}

#[test]
fn entities_are_left_out_by_an_ordinal_range() {
    let server = instances();
    check(&server, "(PartitionKey lt '@' or PartitionKey ge 'A')", &["7bb0", "Abc", "abc"]);
    check(&server, "(PartitionKey lt '@') or (PartitionKey ge 'A')", &["7bb0", "Abc", "abc"]);
    check(&server, "(PartitionKey ge '@') and (PartitionKey lt 'A')", &["@counter@mine"]);
    check(&server, "(PartitionKey ge '@counter') and (PartitionKey lt '@countes')", &["@counter@mine"]);
    check(
        &server,
        "((PartitionKey lt '@') or (PartitionKey ge 'A')) and (RuntimeStatus eq 'Running' or RuntimeStatus eq 'Failed')",
        &["7bb0", "abc"],
    );
}

#[test]
fn creation_times_have_seven_digits() {
    let server = instances();
    check(&server, "CreatedTime ge datetime'2020-01-01T00:00:00.1234568Z'", &["@counter@mine", "Abc", "abc"]);
    check(&server, "CreatedTime gt datetime'2020-01-01T00:00:00.1234567Z'", &["@counter@mine", "Abc", "abc"]);
    check(&server, "CreatedTime le datetime'2020-01-01T00:00:00.1234567Z'", &["7bb0"]);
    check(
        &server,
        "(CreatedTime ge datetime'2020-01-01T00:00:00.0000000Z') and (CreatedTime le datetime'2020-01-02T00:00:00.0000000Z')",
        &["7bb0", "@counter@mine", "Abc"],
    );
}

/// A batch of 99 history rows and the sentinel. The sentinel's ETag guards the next batch.
fn history(first: usize, sentinel_if_match: Option<&str>) -> Request {
    let base = "http://127.0.0.1:10002/devstoreaccount1/HubHistory";
    let mut body = "--batch_d1\r\nContent-Type: multipart/mixed; boundary=changeset_d1\r\n\r\n".to_owned();
    for number in first..first + 99 {
        body.push_str(&format!(
            "--changeset_d1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             PUT {base}(PartitionKey='instance',RowKey='{number:016X}')?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n\
             Host: 127.0.0.1\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\n\r\n{}\r\n",
            entity_json("instance", &format!("{number:016X}"), &format!("\"EventId\":{number}"))
        ));
    }
    let condition = sentinel_if_match.map(|etag| format!("If-Match: {etag}\r\n")).unwrap_or_default();
    body.push_str(&format!(
        "--changeset_d1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         PATCH {base}(PartitionKey='instance',RowKey='sentinel') HTTP/1.1\r\nHost: 127.0.0.1\r\n{condition}\
         Accept: application/json\r\nContent-Type: application/json\r\n\r\n{{\"ExecutionId\":\"e{first}\"}}\r\n\
         --changeset_d1--\r\n\r\n--batch_d1--\r\n"
    ));
    Request::post("/$batch").body("multipart/mixed; boundary=batch_d1", body).scheme(Scheme::SharedKeyLite)
}

#[test]
fn a_history_of_a_hundred_rows_is_one_batch_guarded_by_its_sentinel() {
    let server = TestServer::with_table("HubHistory");
    let parts = batch_parts(&server.send(history(0, None)));
    assert_eq!(parts.iter().filter(|part| part.status == 204).count(), 100);
    let first = parts[99].required("ETag").to_owned();
    let parts = batch_parts(&server.send(history(100, Some(&first))));
    assert_eq!(parts.len(), 100);
    // A second owner of the instance still has the first ETag.
    let parts = batch_parts(&server.send(history(200, Some(&first))));
    assert_eq!(parts.len(), 1);
    let message = "99:The update condition specified in the request was not satisfied.";
    parts[0].clone().expect_message(412, "UpdateConditionNotSatisfied", message);
    assert_eq!(server.get("HubHistory", "instance", "sentinel").json()["ExecutionId"], "e100");
    server.get("HubHistory", "instance", &format!("{:016X}", 200)).expect(404);
    let rows = query(&server, "HubHistory", "PartitionKey eq 'instance'").expect(200);
    assert_eq!(values(&rows, "RowKey").len(), 199);
}

#[test]
fn an_instance_is_updated_only_with_its_etag() {
    let server = instances();
    let path = "/HubInstances(PartitionKey='Abc',RowKey='')";
    let etag = server.get("HubInstances", "Abc", "").required("ETag").to_owned();
    let patch = |etag: &str| {
        let headers = [("If-Match", etag), ("Accept", "application/json"), ("DataServiceVersion", "3.0")];
        let request =
            bare("PATCH", path, &headers).body("application/json", r#"{"RuntimeStatus":"Terminated"}"#);
        server.send(request.scheme(Scheme::SharedKeyLite))
    };
    let next = patch(&etag).expect(204).required("ETag").to_owned();
    patch(&etag).expect_error(412, "UpdateConditionNotSatisfied");
    patch(&next).expect(204);
}
