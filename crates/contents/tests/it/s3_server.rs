//! A real S3 server: the Versity gateway over a directory, which Go's module registry offers.
//!
//!     go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
//!
//! It is looked for under the name in `LAZULITE_VERSITYGW`, then in the search path, then where Go installs programs. Without it,
//! each test says that it is skipped.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use contents::{ObjectContents, ObjectPlace};
use tempfile::TempDir;

const ACCESS: &str = "lazulite-access";
const SECRET: &str = "lazulite-secret";

pub struct S3Server {
    child: Child,
    port: u16,
    _directory: TempDir,
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LAZULITE_VERSITYGW") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let places = std::env::split_paths(&path).chain(home);
    places.map(|place| place.join("versitygw")).find(|program| program.is_file())
}

impl S3Server {
    /// `None`, and a line that says so, if the program is not installed.
    pub fn start(test: &str) -> Option<S3Server> {
        let Some(program) = program() else {
            eprintln!("SKIPPED {test} on a real S3 server: versitygw is not installed");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        // A bucket is a directory.
        std::fs::create_dir(directory.path().join("bucket")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(&program)
            .args(["--access", ACCESS, "--secret", SECRET, "--port", &format!("127.0.0.1:{port}"), "posix"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let server = S3Server { child, port, _directory: directory };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("versitygw does not listen");
    }

    pub async fn contents(&self) -> Arc<ObjectContents> {
        let environment = [("AWS_ACCESS_KEY_ID", ACCESS), ("AWS_SECRET_ACCESS_KEY", SECRET)];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let place = format!("s3://bucket/some/prefix?endpoint=http://127.0.0.1:{}", self.port);
        crate::objects::on(ObjectPlace::parse(&place).unwrap().connect(&environment).unwrap()).await
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
