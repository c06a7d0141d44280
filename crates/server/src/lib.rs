//! The HTTP door: listeners, the road from a request to an answer, and a room for each service.
//!
//! socket -> `http` -> `front` (address, authenticate, authorize) -> a service's room -> `front` (respond). Each step
//! takes a value and returns a value.
//! Owns: addressing, authentication, and the bounds on what a client may cost.
//! Leaves to others: every rule about data (`tables`, `queues`, `blobs`), every text of the protocol (`protocol`).

mod admin;
mod analytics;
mod blob;
pub mod front;
pub mod http;
mod queue;
mod table;

use engine::Families;

pub use admin::passage::{Road, ServedService};
pub use admin::{Admin, AdminConfig, AdminDoor, AdminServer, bind_admin};
pub use analytics::Analytics;
pub use blob::{BlobHttp, CopySources};
pub use front::accounts::{Accounts, EMULATOR_ACCOUNT, EMULATOR_KEY};
pub use front::current::Current;
pub use front::handle::{Binding, BoundService, bind};
pub use front::service::Service;
pub use front::watch::{ACCESS_TARGET, LogRules, SLOW_TARGET, Watch};
pub use front::{Front, FrontConfig};
pub use http::limits::Limits;
pub use http::listener::{Handler, Incoming, Server};
pub use queue::QueueHttp;
pub use table::{ScanRule, TableHttp};

/// The families of an engine that holds everything the services keep.
pub const FAMILIES: Families = Families::NONE
    .with(tables::FAMILY, tables::VALUE_RULES)
    .with(tables::SYSTEM_FAMILY, tables::VALUE_RULES)
    .with(queues::FAMILY, queues::VALUE_RULES)
    .with(blobs::FAMILY, blobs::VALUE_RULES);
