//! One table: reading and writing single entities, and the way to queries, transactions and bulk loads.
//!
//! Owns: [`TableClient`], the reads of one row, and how an entity becomes a request's body and a row becomes an
//! entity again. Promises: an encrypted property never leaves in the clear. Leaves to others: the writes (`write`),
//! queries (`query`), transactions (`transaction`, `bulk`), read-modify-write (`update`), and the road to the server
//! (`pipeline`).

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use protocol::table::model::TableName;

use crate::account::table_name;
use crate::bulk::{Bulk, BulkMode};
use crate::encryption::{KeyRing, with_metadata_columns};
use crate::limits;
use crate::path::entity_path;
use crate::pipeline::{Answer, Call, Pipeline, Repeat};
use crate::query::Query;
use crate::retry::Budget;
use crate::sealing::{Marks, Sealing};
use crate::transaction::Transaction;
use crate::{ClientBuilder, Entity, Error, Keys, Property, TableServiceClient, json};

pub(crate) const JSON: &str = "application/json";

/// One table of an account. Cheap to clone; all clones share their connections.
///
/// Made by [`TableServiceClient::table`](crate::TableServiceClient::table). No request is sent before the first
/// operation, so the table need not exist yet.
///
/// ```no_run
/// use lazulite_client::{Entity, Error, IfMatch, TableClient};
///
/// #[derive(Entity)]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     id: String,
///     age: i32,
/// }
///
/// async fn hire(employees: &TableClient) -> Result<(), Error> {
///     let jonas = Employee { department: "Sales".into(), id: "00001".into(), age: 34 };
///     employees.insert(&jonas).await?;
///     let read: Employee = employees.get("Sales", "00001").await?;
///     assert_eq!(read.age, 34);
///     employees.delete("Sales", "00001", IfMatch::Any).await
/// }
/// ```
///
/// # Which properties are fetched
///
/// [`TableClient::get`] and [`TableClient::query`] ask for exactly the properties of the struct
/// ([`Entity::COLUMNS`]), so a smaller struct is a projection without another word. A struct that keeps everything
/// (`#[entity(rest)]`, or [`DynamicEntity`](crate::DynamicEntity)) asks for everything. Reading whole rows into a
/// struct that then drops half of them would give the same values and cost their bytes. A property that a row lacks
/// is absent for the struct too: the service answers `null` for it.
///
/// # Lost answers
///
/// A connection can break after the service did what it was asked, but before its answer arrived. This client then
/// finds out what happened before it reports a failure or sends again:
///
/// - an insert reads the row back. If the row is what was sent, this counts as success; if there is none, it is sent
///   again; if it is another one, the error is the usual conflict (409).
/// - a replace or merge with an ETag is sent again. If the service then says that the ETag is not current (412), and
///   the row is what was sent, this counts as success: the row is as the caller wants it, whoever wrote it.
/// - what [`TableClient::update`] writes is sent again, too. But the content of a row cannot tell who wrote it (two
///   clients that count to three at the same time write the same row), so if the service then refuses, the error says
///   that the outcome is unknown ([`Error::is_outcome_unknown`]).
/// - a delete is sent again. If the service then says that there is no such row (404), the first attempt succeeded.
/// - the other writes end in the same way however often they happen; they are sent again.
#[derive(Clone)]
pub struct TableClient {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) name: TableName,
    /// `http://host/account/table`, which operations of a transaction are addressed with.
    pub(crate) address: Box<str>,
    pub(crate) sealing: Sealing,
}

impl fmt::Debug for TableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableClient").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl TableClient {
    pub(crate) fn new(pipeline: Arc<Pipeline>, name: TableName) -> TableClient {
        let address = format!("{}/{}", pipeline.root(), name.as_str()).into();
        TableClient { inner: Arc::new(Inner { pipeline, name, address, sealing: Sealing::default() }) }
    }

    /// The URL of one table with a shared access signature as its query. The name may also stand in the signature alone.
    ///
    /// ```
    /// use lazulite_client::TableClient;
    ///
    /// let url = "https://shop.table.core.windows.net/people?sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=c2lnbg";
    /// assert_eq!(TableClient::from_sas_url(url)?.name(), "people");
    /// # Ok::<(), lazulite_client::Error>(())
    /// ```
    pub fn from_sas_url(url: &str) -> Result<TableClient, Error> {
        let (builder, name) = ClientBuilder::from_resource_sas_url(url)?;
        let tables = builder.tables()?;
        let name = name.or_else(|| tables.credential().table().map(str::to_owned));
        tables.table(&name.ok_or_else(|| Error::Configuration("the URL names no table".to_owned()))?)
    }

    /// The same table, for structs with encrypted properties (`#[entity(encrypt)]`): they are sealed under keys that
    /// this ring wraps. Without a ring such structs are neither written nor read.
    ///
    /// ```no_run
    /// # use lazulite_client::TableClient;
    /// use lazulite_client::encryption::{EncryptionError, InMemoryKeyRing};
    ///
    /// # fn f(staff: TableClient) -> Result<TableClient, EncryptionError> {
    /// let staff = staff.with_key_ring(InMemoryKeyRing::generate("2026-01")?);
    /// # Ok(staff) }
    /// ```
    pub fn with_key_ring(&self, ring: impl KeyRing + 'static) -> TableClient {
        let Inner { pipeline, name, address, .. } = &*self.inner;
        TableClient {
            inner: Arc::new(Inner {
                pipeline: pipeline.clone(),
                name: name.clone(),
                address: address.clone(),
                sealing: Sealing { ring: Some(Arc::new(ring)) },
            }),
        }
    }

    /// The table's name, as it was given.
    pub fn name(&self) -> &str {
        self.inner.name.as_str()
    }

    /// Reads one entity. A row that does not exist is an error ([`Error::is_not_found`]).
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(people: &TableClient) -> Result<(), Error> {
    /// let ada: DynamicEntity = people.get("math", "ada").await?;
    /// # Ok(()) }
    /// ```
    pub async fn get<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<E, Error> {
        let keys = keys(partition_key, row_key)?;
        let body = self.fetch(&keys, self.columns::<E>()?).await?;
        self.read_entity(&body).await
    }

    /// Reads one entity, or `None` when there is no such row. A missing table is an error.
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(people: &TableClient) -> Result<(), Error> {
    /// if let Some(ada) = people.try_get::<DynamicEntity>("math", "ada").await? {
    ///     println!("{ada:?}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn try_get<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<Option<E>, Error> {
        let keys = keys(partition_key, row_key)?;
        match present(self.fetch(&keys, self.columns::<E>()?).await)? {
            Some(body) => self.read_entity(&body).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether there is such a row. Fetches its RowKey only. A missing table is an error.
    ///
    /// ```no_run
    /// # use lazulite_client::{Error, TableClient};
    /// # async fn f(people: &TableClient) -> Result<(), Error> {
    /// if !people.exists("math", "ada").await? {
    ///     println!("not here");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn exists(&self, partition_key: &str, row_key: &str) -> Result<bool, Error> {
        let keys = keys(partition_key, row_key)?;
        Ok(present(self.fetch(&keys, Some("RowKey".to_owned())).await)?.is_some())
    }

    /// A query whose rows are read as `E`. See [`Query`] for filters, projections, pages and plans.
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(people: &TableClient) -> Result<(), Error> {
    /// let mathematicians = people.query::<DynamicEntity>().partition("math").all().await?;
    /// # Ok(()) }
    /// ```
    pub fn query<E: Entity>(&self) -> Query<E> {
        Query::new(self.clone())
    }

    /// Several writes to one partition that happen together or not at all. See [`Transaction`].
    pub fn transaction(&self, partition_key: impl Into<String>) -> Transaction {
        Transaction::new(self.clone(), partition_key.into())
    }

    /// Writes many entities of any partitions in as few requests as possible. See [`Bulk`].
    pub fn bulk<'a, E: Entity + Sync>(&self, entities: &'a [E], mode: BulkMode) -> Bulk<'a, E> {
        Bulk::new(self.clone(), entities, mode)
    }

    /// The body of one row's answer.
    async fn fetch(&self, keys: &Keys<'_>, select: Option<String>) -> Result<Bytes, Error> {
        let query = select.map(|columns| ("$select", columns)).into_iter().collect();
        let path = entity_path(self.name(), keys);
        let call = Call { query, ..Call::new(Method::GET, path, Repeat::Freely) };
        self.call(call, Some(keys)).await.map(|answer| answer.body)
    }

    /// The same of the whole row as it is now, for a decision to write: never from the replica.
    pub(crate) async fn fetch_fresh(&self, keys: &Keys<'_>, budget: &mut Budget) -> Result<Bytes, Error> {
        let path = entity_path(self.name(), keys);
        let call = Call { is_fresh: true, ..Call::new(Method::GET, path, Repeat::Freely) };
        self.call_within(call, Some(keys), budget).await.map(|answer| answer.body)
    }

    /// Sends, and names the row in a refusal.
    pub(crate) async fn call(&self, call: Call, keys: Option<&Keys<'_>>) -> Result<Answer, Error> {
        self.call_within(call, keys, &mut Budget::new()).await
    }

    /// The same for a call that is part of an operation of several.
    pub(crate) async fn call_within(
        &self,
        call: Call,
        keys: Option<&Keys<'_>>,
        budget: &mut Budget,
    ) -> Result<Answer, Error> {
        let mut outcome = self.inner.pipeline.call_within(call, budget).await;
        if let (Err(Error::Service(failure)), Some(keys)) = (&mut outcome, keys) {
            failure.keys = Some(keys.clone().into_owned());
        }
        outcome
    }

    /// The list of properties to fetch for an `E`; `None` means all of them.
    pub(crate) fn columns<E: Entity>(&self) -> Result<Option<String>, Error> {
        if E::ENCRYPTED.is_empty() {
            return Ok(E::COLUMNS.map(|columns| columns.join(",")));
        }
        self.inner.sealing.ring(E::ENCRYPTED)?;
        Ok(with_metadata_columns::<E>().map(|columns| columns.join(",")))
    }

    /// Reads an answer's row as an entity.
    pub(crate) async fn read_entity<E: Entity>(&self, body: &[u8]) -> Result<E, Error> {
        let mut row = json::read_row(body)?;
        if !E::ENCRYPTED.is_empty() {
            self.inner.sealing.unseal(Marks::of::<E>(), &mut row, self.name()).await?;
        }
        Ok(E::read(row)?)
    }

    /// Appends the entity as JSON and returns its keys. The encrypted properties, which are at least those of `E`, are
    /// sealed. `others` are properties of the row that the entity did not know when it was read; it may know some of them
    /// by now, if it is an enum that has become another kind.
    pub(crate) async fn write_entity<'a, E: Entity>(
        &self,
        entity: &'a E,
        encrypted: &[&str],
        others: &[Property<'static>],
        out: &mut Vec<u8>,
    ) -> Result<Keys<'a>, Error> {
        let keys = entity.keys()?;
        limits::check_keys(&keys)?;
        let mut properties = properties_of(entity)?;
        for other in others {
            if !entity.knows(&other.name) && !properties.iter().any(|own| own.name == other.name) {
                properties.push(other.clone());
            }
        }
        if !encrypted.is_empty() {
            self.inner.sealing.seal(encrypted, &mut properties, self.name(), &keys).await?;
        }
        json::write_entity(Some(&keys), &properties, out);
        Ok(keys)
    }
}

/// What the entity stores, beside its keys.
pub(crate) fn properties_of<E: Entity>(entity: &E) -> Result<Vec<Property<'_>>, Error> {
    const PROPERTY_COUNT_USUAL: usize = 16;
    let mut properties = Vec::with_capacity(PROPERTY_COUNT_USUAL);
    entity.write(&mut properties)?;
    Ok(properties)
}

impl TableServiceClient {
    /// A client of one table, which need not exist yet. An error if no table can have this name.
    ///
    /// ```
    /// use lazulite_client::TableServiceClient;
    ///
    /// let tables = TableServiceClient::from_connection_string("UseDevelopmentStorage=true")?;
    /// assert_eq!(tables.table("people")?.name(), "people");
    /// assert!(tables.table("1 or 2").is_err());
    /// # Ok::<(), lazulite_client::Error>(())
    /// ```
    pub fn table(&self, name: &str) -> Result<TableClient, Error> {
        Ok(TableClient::new(self.pipeline().clone(), table_name(name)?))
    }
}

/// What was fetched; `None` when there is no such row.
pub(crate) fn present<T>(fetched: Result<T, Error>) -> Result<Option<T>, Error> {
    match fetched {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_row_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A 404 that means the row, and not its table. The service says `ResourceNotFound`, its documentation `EntityNotFound`,
/// and emulators either. One without a code may be a proxy's or a wrong address, and tells nothing about the row.
pub(crate) fn is_row_missing(error: &Error) -> bool {
    error.is_not_found() && matches!(error.code(), Some("ResourceNotFound" | "EntityNotFound"))
}

/// Keys of a request, checked.
pub(crate) fn keys<'a>(partition_key: &'a str, row_key: &'a str) -> Result<Keys<'a>, Error> {
    let keys = Keys { partition_key: partition_key.into(), row_key: row_key.into() };
    limits::check_keys(&keys)?;
    Ok(keys)
}
