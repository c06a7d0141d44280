//! `--throttle` and `--fail-on-scan`: the server is as strict as a program should expect.

use testkit::{Request, ServerProcess, TempDir, entity_path};

use crate::{LAZULITE, refusal};

fn start(directory: &TempDir, option: &str) -> ServerProcess {
    let ports = ["--table-port", "0", "--queue-port", "0", option];
    let server = ServerProcess::start_with(LAZULITE, directory.path(), &ports, &[]);
    for table in ["people", "orders"] {
        let create = Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"));
        server.send(create).expect(201);
    }
    server
}

#[test]
fn targets_are_enforced() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, "--throttle=partition=1");
    let get = |partition: &str| server.send(Request::get(&entity_path("people", partition, "r")));
    get("p").expect_error(404, "ResourceNotFound");
    get("p").expect_error(503, "ServerBusy");
    get("q").expect_error(404, "ResourceNotFound");
}

#[test]
fn scans_are_refused() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, "--fail-on-scan=People");
    server.send(Request::get("/people()")).expect_error(400, "ScanRefused");
    server.send(Request::get("/orders()")).expect(200);
}

#[test]
fn mistakes_are_told_before_anything_is_opened() {
    for (option, part) in [
        ("--throttle=2000", "--throttle takes partition=N and account=N"),
        ("--throttle=partition=0", "at least 1"),
        ("--fail-on-scan=my-table", "'my-table' is not a table name"),
    ] {
        let said = refusal(&["--in-memory", "--table-port", "0", "--queue-port", "0", option], &[]);
        assert!(said.contains(part), "{said}");
    }
}
