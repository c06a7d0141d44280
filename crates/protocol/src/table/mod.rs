//! The Table service on the wire: its operations and their permissions, entities and property values, the filter
//! language and the keys that a filter can match, its service SAS, and the texts of requests and answers.

pub mod filter;
pub mod limits;
pub mod model;
pub mod operation;
mod permission;
pub mod region;
mod sas;
pub mod wire;

pub use permission::{CONTRIBUTOR, READER};
pub use sas::TableScope;

use crate::auth::{ServiceKind, SharedKeyForm};
use crate::common::version::VersionOrder;

pub const KIND: ServiceKind = ServiceKind {
    name: "Table",
    label: "table",
    site_label: None,
    letter: "t",
    port: 10002,
    server_header: "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0",
    version_default: "2019-02-02",
    version_order: VersionOrder::ParameterFirst,
    ignores_parameter_case: false,
    shared_key: SharedKeyForm::Short,
    policy_letters: "raud",
    roles: &[
        ("Storage Table Data Reader", "76199698-9eea-4c19-bc75-cec21354c6b6", READER),
        ("Storage Table Data Contributor", "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3", CONTRIBUTOR),
    ],
    role_of_basic_tokens: CONTRIBUTOR,
    read_service_scope: sas::read_scope,
};
