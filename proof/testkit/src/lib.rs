//! What tests share: a server on a free port, an independent signer, a raw HTTP client, golden exchanges.
//!
//! For tests only. Promises: nothing here uses the wire code of the crates under test. Signing, multipart and HTTP are
//! written again from the published protocol, so that a mistake there cannot hide behind the same mistake here.

mod batch;
mod blob;
mod client;
#[cfg(target_os = "linux")]
pub mod cluster;
mod front_end;
pub mod golden;
mod mask;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod postgres_versions;
mod process;
mod queue;
mod request;
mod response;
mod round_robin;
mod sas;
mod server;
mod sign;
mod sign_full;
mod time;

pub use batch::{Batch, Part, batch_parts};
pub use blob::{BlobPart, Blobs};
pub use client::RawClient;
pub use mask::mask;
#[cfg(unix)]
pub use postgres::{Postgres, programs as postgres_programs};
#[cfg(unix)]
pub use postgres_versions::{PostgresVersion, install_postgres_versions};
pub use process::{ServerProcess, run_to_exit};
pub use queue::{Message, Queues, message_path, message_xml, messages};
pub use request::{Request, Style, percent_encode};
pub use response::Response;
pub use round_robin::RoundRobin;
pub use sas::{FAR_EXPIRY, Sas};
pub use server::{Options, TestServer, entity_json, entity_path};
pub use sign::{Credentials, EMULATOR_ACCOUNT, EMULATOR_KEY, Scheme, signature, string_to_sign};
pub use tempfile::TempDir;
pub use time::{Stopwatch, http_date, system_now};
