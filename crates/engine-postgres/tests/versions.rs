//! The conformance suite on versions of PostgreSQL that are not installed.
//!
//! Runs if `LAZULITE_TEST_POSTGRES_VERSIONS` is set, because it downloads them. All tests of this crate run on one of them
//! with `LAZULITE_TEST_POSTGRES_BIN=/directory/of/its/programs`.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use engine::Engine;
use engine::conformance::run_all;
use engine_postgres::PostgresEngine;
use testkit::{Postgres, TempDir, install_postgres_versions};

use support::Database;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn other_versions_keep_the_contract() {
    if std::env::var_os("LAZULITE_TEST_POSTGRES_VERSIONS").is_none() {
        println!("SKIPPED other_versions_keep_the_contract: LAZULITE_TEST_POSTGRES_VERSIONS is not set");
        return;
    }
    let directory = TempDir::new().unwrap();
    // An unprivileged user runs what is in it.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for version in install_postgres_versions(directory.path()).unwrap() {
        let server = Postgres::start_in(TempDir::new().unwrap(), &version.programs, &[]).unwrap();
        run_all(async |families, clock| {
            let database = Database::fresh(&server);
            let engine = PostgresEngine::connect(database.options(families, clock)).await.unwrap();
            Arc::new(engine) as Arc<dyn Engine>
        })
        .await;
        println!("{} keeps the contract", version.name);
    }
}
