//! Containers by name: create, delete, find, replace, list.
//!
//! Names are not case-sensitive in their ASCII letters. Only the caller that created a container knows the meaning of
//! the payload beside its name.

use bytes::Bytes;
use engine::{
    Budget, CommitError, Expect, Family, Flow, Key, KeyRange, Sink, TableId, TablePath, TableRecord,
    TableRows, Version,
};
use protocol::ServiceError;
use protocol::common::AccountName;

use crate::Catalogue;
use crate::error::{damaged_record, from_commit, from_read};
use crate::name_cache::Ticket;
use crate::record::{self, Container, ContainerIds};

impl Catalogue {
    /// `None` when the name is taken.
    pub async fn create(
        &self,
        account: &AccountName,
        name: &str,
        payload: Bytes,
    ) -> Result<Option<TableId>, ServiceError> {
        let key = cache_key(account, name);
        let _changing = self.names.changing(&key);
        let payload = record::of_new(self.family, payload);
        match self.engine.create_table(self.namespace(account), &name.to_ascii_lowercase(), payload).await {
            Ok(id) => Ok(Some(id)),
            Err(CommitError::Precondition { .. }) => Ok(None),
            Err(other) => Err(from_commit(other)),
        }
    }

    /// Removes the name and the container's policies. `None` when the container does not exist.
    pub async fn delete(&self, account: &AccountName, name: &str) -> Result<Option<TableId>, ServiceError> {
        let key = cache_key(account, name);
        let changing = self.names.changing(&key);
        // Policies that a clearing of the same moment leaves behind are never seen: nothing has their id any more.
        let identity = match self.family {
            Family::FIRST => None,
            _ => self.get(account, name).await?.map(|container| container.ids.identity),
        };
        let dropped = self.engine.drop_table(self.namespace(account), &name.to_ascii_lowercase()).await;
        drop(changing);
        match dropped {
            Ok(id) => {
                self.forget_policies(identity.unwrap_or(id)).await;
                Ok(Some(id))
            }
            Err(CommitError::Precondition { .. }) => Ok(None),
            Err(other) => Err(from_commit(other)),
        }
    }

    /// The container as the engine has it now, not from the cache.
    pub async fn get(&self, account: &AccountName, name: &str) -> Result<Option<Container>, ServiceError> {
        let partition = self.namespace(account).partition();
        let lower = name.to_ascii_lowercase();
        let found = self.engine.row(TableId::CATALOGUE, Key::new(&partition, &lower)).await;
        let Some(row) = found.map_err(from_read)? else { return Ok(None) };
        record::read(self.family, &row).map(Some).ok_or_else(damaged_record)
    }

    /// Gives the container another payload, and drops its content if asked to, provided that it is still as `seen`.
    /// `false` when it is not: then look again.
    pub async fn replace(
        &self,
        account: &AccountName,
        name: &str,
        seen: &Container,
        payload: Bytes,
        content: TableRows,
    ) -> Result<bool, ServiceError> {
        let key = cache_key(account, name);
        let _changing = self.names.changing(&key);
        let name = name.to_ascii_lowercase();
        let path = TablePath::new(self.namespace(account), &name);
        let payload = record::of_existing(self.family, seen.ids.identity, payload);
        match self.engine.replace_table(path, Expect::Exactly(seen.version), payload, content).await {
            Ok(_) => Ok(true),
            Err(CommitError::Precondition { .. }) => Ok(false),
            Err(other) => Err(from_commit(other)),
        }
    }

    /// The container's id, from the cache if it was looked up recently.
    pub async fn id_of(&self, account: &AccountName, name: &str) -> Result<Option<TableId>, ServiceError> {
        Ok(self.ids_of(account, name).await?.map(|ids| ids.id))
    }

    pub(crate) async fn ids_of(
        &self,
        account: &AccountName,
        name: &str,
    ) -> Result<Option<ContainerIds>, ServiceError> {
        let now = self.clock.monotonic();
        if let Some(ids) = with_cache_key(account, name, |key| self.names.find(key, now)) {
            return Ok(Some(ids));
        }
        let ticket = self.names.ticket();
        let found = self.get(account, name).await?.map(|container| container.ids);
        if let Some(ids) = found {
            self.names.remember(&cache_key(account, name), ids, now, ticket);
        }
        Ok(found)
    }

    /// Makes the next caller look the name up again: for a container that was found to be gone.
    pub fn forget(&self, account: &AccountName, name: &str) {
        self.names.forget(&cache_key(account, name));
    }

    /// Marks a moment, for [`Catalogue::is_unchanged`].
    pub fn ticket(&self) -> Ticket {
        self.names.ticket()
    }

    /// Whether the container that was read since then still exists. A dropped container loses its rows gradually, so a
    /// scan that ran meanwhile may have missed some of them.
    pub async fn is_unchanged(
        &self,
        account: &AccountName,
        name: &str,
        id: TableId,
        since: Ticket,
    ) -> Result<bool, ServiceError> {
        // A ticket counts only what happens in this process.
        if !self.is_shared && self.names.ticket() == since {
            return Ok(true);
        }
        Ok(self.ask_for_id(account, name, id).await? == Some(id))
    }

    /// The id of the container now, for a caller that has found nothing under `id`, which may come from the cache: another
    /// process may have dropped that container, and created another one of its name. `None`: there is no such container. A
    /// caller that did find something need not ask, because an engine shows nothing of a container that is gone.
    pub async fn current_id(
        &self,
        account: &AccountName,
        name: &str,
        id: TableId,
    ) -> Result<Option<TableId>, ServiceError> {
        match self.is_shared {
            true => self.ask_for_id(account, name, id).await,
            false => Ok(Some(id)),
        }
    }

    /// Asks the engine, and forgets what the cache says if it is not `id`.
    async fn ask_for_id(
        &self,
        account: &AccountName,
        name: &str,
        id: TableId,
    ) -> Result<Option<TableId>, ServiceError> {
        let now = self.get(account, name).await?.map(|container| container.ids.id);
        if now != Some(id) {
            self.forget(account, name);
        }
        Ok(now)
    }

    /// The ids from the cache, unless another process may have made a new container of that name: what an old one allowed
    /// must not be allowed on the new one.
    pub(crate) async fn certain_ids_of(
        &self,
        account: &AccountName,
        name: &str,
    ) -> Result<Option<ContainerIds>, ServiceError> {
        match self.is_shared {
            true => Ok(self.get(account, name).await?.map(|container| container.ids)),
            false => self.ids_of(account, name).await,
        }
    }

    /// The ids of all containers of this service, of all accounts.
    pub async fn all_ids(&self) -> Result<Vec<TableId>, ServiceError> {
        let mut sink = IdSink { family: self.family, ids: Vec::new(), is_damaged: false };
        let everything = [KeyRange::all()];
        self.engine
            .scan(TableId::CATALOGUE, &everything, Budget::UNBOUNDED, &mut sink)
            .await
            .map_err(from_read)?;
        if sink.is_damaged { Err(damaged_record()) } else { Ok(sink.ids) }
    }

    /// Visits the account's names and their payloads in order, from `resume` on, until `visit` stops or the budget is
    /// used up. Returns the first name that was not taken; `None` at the end.
    pub async fn list(
        &self,
        account: &AccountName,
        resume: Option<&str>,
        budget: Budget,
        visit: &mut (dyn FnMut(&str, &[u8]) -> Flow + Send),
    ) -> Result<Option<String>, ServiceError> {
        let namespace = self.namespace(account);
        let mut range = Some(namespace.names());
        if let Some(name) = resume {
            let rest = KeyRange::from_key(&namespace.partition(), name);
            range = range.and_then(|range| range.intersect(&rest));
        }
        let mut sink = NameSink { family: self.family, visit, is_damaged: false };
        let ranges: Vec<KeyRange> = range.into_iter().collect();
        let next =
            self.engine.scan(TableId::CATALOGUE, &ranges, budget, &mut sink).await.map_err(from_read)?;
        if sink.is_damaged { Err(damaged_record()) } else { Ok(next.map(|key| key.row.into())) }
    }
}

/// The ids of all containers of a service, whosever they are.
struct IdSink {
    family: Family,
    ids: Vec<TableId>,
    is_damaged: bool,
}

impl Sink for IdSink {
    fn row(&mut self, _: Key<'_>, _: Version, value: &[u8]) -> Flow {
        match TableRecord::read(value) {
            Some(record) if record.id.family() == self.family => self.ids.push(record.id),
            Some(_) => {}
            None => {
                self.is_damaged = true;
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}

struct NameSink<'a> {
    family: Family,
    visit: &'a mut (dyn FnMut(&str, &[u8]) -> Flow + Send),
    is_damaged: bool,
}

impl Sink for NameSink<'_> {
    fn row(&mut self, key: Key<'_>, _version: Version, value: &[u8]) -> Flow {
        match record::read_value(self.family, value) {
            Some((_, payload)) => (self.visit)(key.row, payload),
            None => {
                self.is_damaged = true;
                Flow::Stop
            }
        }
    }
}

/// Enough for an account name, a slash and a container name. Longer keys are built on the heap.
const CACHE_KEY_BYTES_USUAL: usize = 96;

/// Calls `look` with the cache key of a name, which is built on the stack because every request needs one.
fn with_cache_key<T>(account: &AccountName, name: &str, look: impl FnOnce(&[u8]) -> T) -> T {
    let account_bytes = account.as_str().as_bytes();
    let mut bytes = [0; CACHE_KEY_BYTES_USUAL];
    let Some(key) = bytes.get_mut(..account_bytes.len() + 1 + name.len()) else {
        return look(cache_key(account, name).as_bytes());
    };
    let (front, back) = key.split_at_mut(account_bytes.len());
    front.copy_from_slice(account_bytes);
    back[0] = b'/';
    back[1..].copy_from_slice(name.as_bytes());
    back.make_ascii_lowercase();
    look(key)
}

/// `account/name`, the name in lower case.
fn cache_key(account: &AccountName, name: &str) -> String {
    let mut key = String::with_capacity(account.as_str().len() + 1 + name.len());
    key.push_str(account.as_str());
    key.push('/');
    key.extend(name.chars().map(|character| character.to_ascii_lowercase()));
    key
}
