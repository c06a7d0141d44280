//! Converts the model's values to the service's, and back.

use std::collections::BTreeMap;

use protocol::common::DateTime;
use protocol::table::model::{ETag, Entity, EntitySource, Property};
use tables::{Action, EntitySink, EntityView};

use super::model::{Change, Condition, Properties, Row, Verb};

pub fn service_change(change: &Change) -> tables::Change<'static> {
    let properties: Vec<Property<'static>> = change
        .properties
        .iter()
        .map(|(name, value)| Property { name: name.clone().into(), value: value.clone() })
        .collect();
    let condition = match change.condition {
        Condition::None => None,
        Condition::Any => Some(ETag::Any),
        Condition::Version(version) => Some(ETag::Exactly(DateTime::from_ticks(version))),
    };
    let (partition_key, row_key) = (change.partition.clone().into(), change.row.clone().into());
    let action = match change.verb {
        Verb::Insert => {
            let entity = Entity { partition_key: Some(partition_key), row_key: Some(row_key), properties };
            return tables::Change::insert(entity).unwrap();
        }
        Verb::Replace => Action::Replace { properties, condition },
        Verb::Merge => Action::Merge { properties, condition },
        Verb::Delete => Action::Delete { condition: condition.unwrap_or(ETag::Any) },
    };
    tables::Change { partition_key, row_key, action }
}

pub fn read(view: &EntityView<'_>) -> Row {
    let mut properties: Properties = BTreeMap::new();
    view.for_each_property(|name, value| {
        let earlier = properties.insert(name.to_owned(), value.clone().into_owned());
        assert_eq!(earlier, None, "{name} is stored twice");
    });
    Row { version: view.timestamp().ticks(), properties }
}

/// The entities of a page.
pub struct Collected(pub Vec<(String, String, Row)>);

impl EntitySink for Collected {
    fn entity(&mut self, entity: &EntityView<'_>) -> Option<usize> {
        self.0.push((entity.partition_key().to_owned(), entity.row_key().to_owned(), read(entity)));
        Some(0)
    }
}
