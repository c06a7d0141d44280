//! Entities as the service's JSON: the payloads of writes, and the rows of answers. The table client does this by
//! itself; these functions are for programs that keep entities elsewhere in the same form.
//!
//! Thin: the tokens are `protocol`'s. Promises: rows borrow from the body, and no body causes a panic.
//!
//! ```
//! use lazulite_client::{DynamicEntity, Entity, json};
//!
//! let ada = DynamicEntity::new("Engineering", "0001").with("Steps", 5_000_000_000i64)?;
//! let (mut properties, mut body) = (Vec::new(), Vec::new());
//! ada.write(&mut properties)?;
//! json::write_entity(Some(&ada.keys()?), &properties, &mut body);
//! let text = r#"{"PartitionKey":"Engineering","RowKey":"0001","Steps@odata.type":"Edm.Int64","Steps":"5000000000"}"#;
//! assert_eq!(body, text.as_bytes());
//! assert_eq!(DynamicEntity::read(json::read_row(&body)?)?, ada);
//! # Ok::<(), lazulite_client::EntityError>(())
//! ```

use protocol::table::wire::json_answer::{self, AnswerEntity, AnswerError};
use protocol::table::wire::json_payload::write_payload;

use crate::field::refused;
use crate::{EntityError, Keys, Property, Row};

/// Appends the payload of an insert or an update, with the annotations that its values need.
pub fn write_entity(keys: Option<&Keys<'_>>, properties: &[Property<'_>], out: &mut Vec<u8>) {
    write_payload(keys.map(|keys| (&*keys.partition_key, &*keys.row_key)), properties, out);
}

/// Reads one entity of an answer, at any metadata level.
pub fn read_row(body: &[u8]) -> Result<Row<'_>, EntityError> {
    json_answer::read_entity(body).map(Row::from).map_err(unreadable)
}

/// Reads a page: `{"value":[...]}`.
pub fn read_page(body: &[u8]) -> Result<Vec<Row<'_>>, EntityError> {
    let mut rows = Vec::new();
    json_answer::read_page(body, |entity| rows.push(Row::from(entity))).map_err(unreadable)?;
    Ok(rows)
}

impl<'a> From<AnswerEntity<'a>> for Row<'a> {
    fn from(entity: AnswerEntity<'a>) -> Row<'a> {
        Row {
            partition_key: entity.partition_key.unwrap_or_default(),
            row_key: entity.row_key.unwrap_or_default(),
            timestamp: entity.timestamp,
            etag: entity.etag,
            properties: entity.properties,
        }
    }
}

fn unreadable(error: AnswerError) -> EntityError {
    match error {
        AnswerError::Malformed => refused("", "the answer is not the JSON of an entity"),
        AnswerError::Mistyped { property } => {
            refused(&property, "the value in the answer does not fit its type")
        }
    }
}
