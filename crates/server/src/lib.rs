//! The HTTP door: a listener, and the road from a request to an answer.
//!
//! socket -> [`listener`] -> address -> authenticate -> operation -> tables -> [`respond`]. Each step takes a value
//! and returns a value. Owns: addressing, authentication, bounds on what a stranger may cost.
//! Leaves to others: every rule about data (`tables`), every text of the protocol (`protocol`).

mod accounts;
mod address;
mod answer;
mod audit;
mod authenticate;
mod batch;
mod cors;
mod current;
mod deadline;
mod handle;
mod head_timer;
mod header_names;
mod heavy;
mod limits;
mod listener;
mod request_id;
mod respond;
mod room;
mod settings;
mod stall;
mod tables;
mod whole_body;
mod write;

pub use accounts::{Accounts, EMULATOR_ACCOUNT, EMULATOR_KEY};
pub use current::Current;
pub use limits::Limits;
pub use listener::{Config, Server, bind};
