//! One file per format: the function to fuzz, the words of the grammar, the initial inputs.

pub mod acl;
pub mod authorization;
pub mod backup;
pub mod batch;
pub mod bearer;
pub mod continuation;
pub mod entity;
pub mod filter;
pub mod key;
pub mod log;
pub mod options;
pub mod properties;
pub mod queue_message;
pub mod queue_request;
pub mod queue_row;
pub mod record;
pub mod request;
pub mod row;
pub mod sas;
mod stored;
