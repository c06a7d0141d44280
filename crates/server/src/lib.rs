//! The HTTP door: listeners, the road from a request to an answer, and a room for each service.
//!
//! socket -> `http` -> `front` (address, authenticate, authorize) -> a service's room -> `front` (respond). Each step
//! takes a value and returns a value.
//! Owns: addressing, authentication, and the bounds on what a client may cost.
//! Leaves to others: every rule about data (`tables`), every text of the protocol (`protocol`).

pub mod front;
pub mod http;
mod table;

pub use front::accounts::{Accounts, EMULATOR_ACCOUNT, EMULATOR_KEY};
pub use front::current::Current;
pub use front::handle::{Binding, bind};
pub use front::{Front, FrontConfig};
pub use http::limits::Limits;
pub use http::listener::prepare_thread;
pub use table::TableHttp;
