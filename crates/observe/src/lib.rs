//! What the server sees of its own requests: an [`Observation`] of each, and what is made of them.
//!
//! Promises: memory is bounded whatever strangers send, because everything that is kept by name has its name from a closed
//! set. Observing a request takes no lock and, once its operation was seen, allocates nothing.
//! Leaves to others: making observations (`server/front/handle.rs`), showing them (`server/admin`), and the time, which
//! comes in as values.

mod notes;
mod observation;
mod operation;

pub use notes::{Named, Notes};
pub use observation::{Detail, Observation, Shape};
pub use operation::{Operation, Service};
pub use protocol::table::region::PlanKind;
