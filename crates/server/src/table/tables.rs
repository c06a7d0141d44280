//! Operations on tables: turns a payload into values, makes one call into the service, and turns the result into an
//! answer.

use protocol::table::filter::{self, Schema};
use protocol::table::model::TableName;
use protocol::table::operation::TableOperation;
use protocol::table::wire::json_read::read_table_name;
use protocol::table::wire::json_write::{self, TableWriter};
use protocol::table::wire::{MetadataLevel, continuation, negotiate};
use protocol::{ErrorCode, ServiceError};
use tables::{TableQuery, TableService};

use super::TableHttp;
use super::answer::{Continuation, TableAnswer};
use super::request::Asked;
use super::write::repeat_preference;
use crate::front::refusal::Refusal;
use crate::front::service::Session;

pub async fn run(
    http: &TableHttp,
    session: &Session<'_>,
    operation: &TableOperation,
    asked: &Asked<'_>,
    payload: &[u8],
) -> Result<TableAnswer, Refusal> {
    let service = &http.service;
    match operation {
        TableOperation::Query => query(service, session, asked).await,
        TableOperation::Create => {
            repeat_preference(create(service, session, asked, payload).await, asked.preference)
        }
        TableOperation::Get(name) => {
            let service = http.service_of(name).map_err(|_| ErrorCode::ResourceNotFound)?;
            let name = service.get_table(session.account, name).await?;
            let mut json = Vec::new();
            table_writer(session, asked.level).write_single(&name, &mut json);
            Ok(TableAnswer::json(200, asked.level, json))
        }
        TableOperation::Delete(name) => {
            service.delete_table(session.account, name).await?;
            Ok(TableAnswer::no_content())
        }
    }
}

async fn create(
    service: &TableService,
    session: &Session<'_>,
    asked: &Asked<'_>,
    payload: &[u8],
) -> Result<TableAnswer, Refusal> {
    let name = TableName::parse(&read_table_name(payload)?).map_err(ServiceError::from)?;
    service.create_table(session.account, &name).await?;
    let location = Some(format!("{}/Tables('{}')", session.base, name.as_str()));
    if !asked.returns_content() {
        return Ok(TableAnswer { location, ..TableAnswer::no_content() });
    }
    let mut json = Vec::new();
    table_writer(session, asked.level).write_single(name.as_str(), &mut json);
    Ok(TableAnswer { location, ..TableAnswer::json(201, asked.level, json) })
}

async fn query(
    service: &TableService,
    session: &Session<'_>,
    asked: &Asked<'_>,
) -> Result<TableAnswer, Refusal> {
    let options = &asked.options;
    let query = TableQuery {
        filter: filter::parse(options.filter.as_deref().unwrap_or_default(), Schema::Tables)?,
        resume: options.next_table()?,
        table_count_max: options.page_count()?,
        share: session.share(),
    };
    let page = service.query_tables(session.account, query).await?;
    let writer = table_writer(session, asked.level);
    let mut json = Vec::with_capacity(256 + 64 * page.names.len());
    writer.begin_set(&mut json);
    for name in &page.names {
        writer.write_element(name, &mut json);
    }
    json_write::end_set(&mut json);
    let next = page.next.map(|name| Continuation::Table(continuation::encode(&name)));
    Ok(TableAnswer { next, ..TableAnswer::json(200, asked.level, json) })
}

/// The refusal of a POST to something below a table. The service reads such a request as an insert without keys.
pub(crate) async fn refuse_post_below(
    service: &TableService,
    session: &Session<'_>,
    table: &TableName,
    asked: &Asked<'_>,
) -> Refusal {
    match service.catalogue().id_of(session.account, table.as_str()).await {
        Err(error) => error.into(),
        Ok(None) => ErrorCode::TableNotFound.into(),
        Ok(Some(_)) => match negotiate::check_content_type(asked.content_type) {
            Err(error) => error.into(),
            Ok(()) => ErrorCode::PropertiesNeedValue.into(),
        },
    }
}

fn table_writer<'a>(session: &Session<'a>, level: MetadataLevel) -> TableWriter<'a> {
    TableWriter { base: session.base, account: session.account.as_str(), level }
}
