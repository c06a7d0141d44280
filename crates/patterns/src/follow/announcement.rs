//! The message that announces a change, as JSON.

use std::collections::BTreeSet;

use lazulite_client::Error;
use serde::{Deserialize, Serialize};

/// What a worker must look at.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(super) struct Announcement {
    pub partition_key: String,
    pub row_key: String,
    /// Where the entity was before the change and where it is after it.
    pub places: BTreeSet<String>,
    /// The RowKey of the claim, if the change carries one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub claim: Option<String>,
}

impl Announcement {
    pub fn to_text(&self) -> Result<String, Error> {
        serde_json::to_string(self)
            .map_err(|error| Error::Refused(format!("the announcement is no JSON: {error}")))
    }

    /// `None` if the message is not of this module.
    pub fn read(text: &str) -> Option<Announcement> {
        serde_json::from_str(text).ok()
    }
}
