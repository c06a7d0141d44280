//! Texts that cross the wire: URIs, query options, content negotiation, JSON payloads, multipart batches,
//! continuation tokens, header names.

pub mod acl;
pub mod batch;
pub mod continuation;
pub mod cors;
pub mod headers;
pub mod json_read;
mod json_text;
mod json_token;
pub mod json_write;
pub mod negotiate;
pub mod options;
pub mod service_properties;
pub mod uri;
pub mod xml;

pub use negotiate::MetadataLevel;
