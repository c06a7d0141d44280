//! What a server measures survives a restart, and stands apart from the account's data.

use std::path::Path;

use testkit::{Request, ServerProcess, TempDir, entity_json};

use crate::LAZULITE;
use crate::running::run;

const HOURLY: &str = "/$MetricsHourPrimaryTransactionsTable()";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn backups_and_checks_do_not_see_what_the_server_measures() {
    let directory = TempDir::new().unwrap();
    let [data, elsewhere, file] = ["data", "elsewhere", "b.lzb"].map(|name| directory.path().join(name));
    let server = ServerProcess::start(LAZULITE, &data);
    server.send(Request::post("/Tables").json(r#"{"TableName":"people"}"#)).expect(201);
    server.send(Request::post("/people").json(&entity_json("p", "r", ""))).expect(201);
    assert_eq!(server.stop(), Some(0));

    let server = ServerProcess::start(LAZULITE, &data);
    let rows = server.send(Request::get(HOURLY)).expect(200).json();
    let rows = rows["value"].as_array().cloned().unwrap();
    let inserts: Vec<_> = rows.iter().filter(|row| row["RowKey"] == "user;InsertEntity").collect();
    assert_eq!(inserts.len(), 1, "{rows:?}");
    assert_eq!((&inserts[0]["TotalRequests"], &inserts[0]["Success"]), (&"1".into(), &"1".into()));
    let listed = server.send(Request::get("/Tables")).expect(200).json();
    assert_eq!(listed["value"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.stop(), Some(0));

    let (said, _) = run(&["check", "-l", text(&data)], &[]);
    assert!(said.contains("1 tables, 1 entities") && said.contains("sound"), "{said}");
    let (said, _) = run(&["backup", text(&file), "-l", text(&data)], &[]);
    assert!(said.contains("1 tables, 1 entities"), "{said}");
    run(&["restore", text(&file), "-l", text(&elsewhere)], &[]);
    let server = ServerProcess::start(LAZULITE, &elsewhere);
    server.send(Request::get(HOURLY)).expect_error(404, "TableNotFound");
    server.send(Request::get("/people()")).expect(200);
}
