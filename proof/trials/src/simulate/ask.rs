//! The requests of a simulated client to the service, and the answers.
//!
//! Leaves to others: what the answers must be (`world/judge.rs`).

use std::pin::Pin;
use std::sync::Arc;

use engine::Share;
use fastrand::Rng;
use protocol::common::AccountName;
use protocol::table::filter::{self, Schema};
use protocol::table::model::TableName;
use protocol::{ErrorCode, ServiceError};
use tables::{EntityQuery, EntityView, TableQuery, TableService, Transaction};

use super::condition::Condition as Filter;
use super::convert::{Collected, read, service_change};
use super::model::{Change, Model, Row};
use super::random::{self, TABLES, pick};

/// PartitionKey and RowKey of an entity.
pub type Place = (String, String);

#[derive(Debug)]
pub enum Ask {
    Commit {
        table: &'static str,
        changes: Vec<Change>,
    },
    Get {
        table: &'static str,
        place: Place,
    },
    /// One page of a query.
    Query {
        table: &'static str,
        filter: Option<Filter>,
        resume: Option<Place>,
        entity_count_max: u32,
    },
    Create {
        table: &'static str,
    },
    Delete {
        table: &'static str,
    },
    List {
        table_count_max: u32,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    Refused(ErrorCode, Option<usize>),
    Version(u64),
    Done,
    Row(Option<Row>),
    Page(Vec<(String, String, Row)>, Option<Place>),
    Names(Vec<String>, bool),
}

pub type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Ask {
    /// A random request.
    pub fn any(random: &mut Rng, model: &Model) -> Ask {
        let table = pick(random, &TABLES);
        match random.u32(..1000) {
            0..20 => Ask::Create { table },
            20..23 => Ask::Delete { table },
            23..30 => Ask::List { table_count_max: random.u32(1..4) },
            30..420 => {
                let (partition, _) = random::key(random);
                Ask::Commit { table, changes: vec![random::change(random, model, table, partition)] }
            }
            420..560 => Ask::Commit { table, changes: random::batch(random, model, table) },
            560..820 => {
                let (partition, row) = random::key(random);
                Ask::Get { table, place: (partition.to_owned(), row.to_owned()) }
            }
            _ => Ask::Query {
                table,
                filter: (random.u8(..10) > 0).then(|| random::filter(random)),
                resume: (random.u8(..3) == 0).then(|| {
                    let (partition, row) = random::key(random);
                    (partition.to_owned(), row.to_owned())
                }),
                entity_count_max: pick(random, &[1, 2, 3, 7, 1000]),
            },
        }
    }

    /// The table's name in lower case, which identifies it.
    pub fn table(&self) -> Option<String> {
        match self {
            Ask::Commit { table, .. }
            | Ask::Get { table, .. }
            | Ask::Query { table, .. }
            | Ask::Create { table }
            | Ask::Delete { table } => Some(table.to_ascii_lowercase()),
            Ask::List { .. } => None,
        }
    }

    /// The call, not yet started; or the answer, if the request is refused beforehand.
    pub fn begin(&self, service: &Arc<TableService>, account: &AccountName) -> Result<Answering, Answer> {
        let (service, account) = (service.clone(), account.clone());
        let name = |table: &str| TableName::parse(table).expect("the names are valid");
        Ok(match self {
            Ask::Commit { table, changes } => {
                let mut transaction = Transaction::new();
                for (index, change) in changes.iter().enumerate() {
                    let pushed = transaction.push(service_change(change));
                    pushed.map_err(|error| Answer::Refused(error.code, Some(index)))?;
                }
                let table = name(table);
                Box::pin(async move {
                    match service.commit(&account, &table, transaction).await {
                        Ok(version) => Answer::Version(version.ticks()),
                        Err(error) => refused(&error),
                    }
                })
            }
            Ask::Get { table, place } => {
                let (table, (partition, row)) = (name(table), place.clone());
                Box::pin(async move {
                    match service.get_entity(&account, &table, &partition, &row).await {
                        Ok(found) => Answer::Row(found.map(|stored| {
                            let view = EntityView::open(&partition, &row, stored.version, &stored.value);
                            read(&view.expect("what is stored decodes"))
                        })),
                        Err(error) => refused(&error),
                    }
                })
            }
            Ask::Query { table, filter, resume, entity_count_max } => {
                let text = filter.as_ref().map(Filter::text).unwrap_or_default();
                let filter = filter::parse(&text, Schema::Entities).map_err(|error| refused(&error))?;
                let (resume, entity_count_max) = (resume.clone(), *entity_count_max);
                let query =
                    EntityQuery { filter, within: None, resume, entity_count_max, share: Share::COMMON };
                let table = name(table);
                Box::pin(async move {
                    let mut page = Collected(Vec::new());
                    match service.query_entities(&account, &table, query, &mut page).await {
                        Ok(end) => {
                            let next = end.next.map(|key| (key.partition.into(), key.row.into()));
                            Answer::Page(page.0, next)
                        }
                        Err(error) => refused(&error),
                    }
                })
            }
            Ask::Create { table } => {
                let table = name(table);
                Box::pin(async move { done(service.create_table(&account, &table).await) })
            }
            Ask::Delete { table } => {
                let table = name(table);
                Box::pin(async move { done(service.delete_table(&account, &table).await) })
            }
            Ask::List { table_count_max } => {
                let query = TableQuery {
                    filter: None,
                    resume: None,
                    table_count_max: *table_count_max,
                    share: Share::COMMON,
                };
                Box::pin(async move {
                    match service.query_tables(&account, query).await {
                        Ok(page) => Answer::Names(page.names, page.next.is_some()),
                        Err(error) => refused(&error),
                    }
                })
            }
        })
    }
}

fn refused(error: &ServiceError) -> Answer {
    Answer::Refused(error.code, error.operation)
}

fn done(answer: Result<(), ServiceError>) -> Answer {
    match answer {
        Ok(()) => Answer::Done,
        Err(error) => refused(&error),
    }
}
