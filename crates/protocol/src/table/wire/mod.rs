//! Texts that cross the wire: URIs, query options, content negotiation, JSON payloads, multipart batches, continuation
//! tokens, header names.

pub mod batch;
pub mod continuation;
pub mod headers;
pub mod json_answer;
pub mod json_payload;
pub mod json_read;
mod json_text;
mod json_token;
pub mod json_write;
pub mod negotiate;
pub mod options;
pub mod uri;

pub use negotiate::MetadataLevel;
