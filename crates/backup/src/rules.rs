//! The rules that the contents of a backup must keep. A backup is a stranger's input: it may hold only what requests
//! could have stored.
//!
//! Promises: names of accounts, tables, queues, containers and blobs, keys, properties, messages, metadata, policies and
//! service properties are judged by the same code that judges requests. No version is greater than the one that the head promises, and that one leaves the clock room
//! for centuries. Nothing appears twice. An error names the place and is short, however long the offending text is.
//! Leaves to others: framing, decoding and the order of rows (`block.rs`, `content.rs`).

use blobs::{ContentBook, ContentPiece, check_portable, check_portable_container};
use engine::Version;
use protocol::auth::ServiceKind;
use protocol::common::acl::{read_acl, write_acl};
use protocol::common::service_properties::ServiceProperties;
use protocol::common::{AccountName, Metadata};
use protocol::queue::QueueName;
use protocol::table::model::TableName;
use queues::StoredMessage;

use crate::blob_content::ContainerHead;
use crate::content::{BackupHead, StoredRow, TableHead};
use crate::queue_content::QueueHead;

/// 9000-01-01T00:00:00Z. The service's calendar ends with the year 9999; a store whose versions come near that end
/// could not give new ones.
pub const VERSION_TICKS_MAX: u64 = 2_839_809_888_000_000_000;
/// Far more than the name of any version needs.
const PROGRAM_VERSION_BYTES_MAX: usize = 64;
/// How much of a key or another text an error quotes.
const QUOTED_CHARS_MAX: usize = 80;
const CAUSE_CHARS_MAX: usize = 200;

/// What was seen so far, as far as a rule depends on it.
pub(crate) struct Rules {
    last_version: u64,
    last_properties: String,
    /// Account and name of the current table, the name in lower case.
    table: (String, String),
    last_queue_properties: String,
    /// Account and name of the current queue.
    queue: (String, String),
    last_blob_properties: String,
    /// Account and name of the current container.
    container: (String, String),
    /// The contents that its rows may name, and the length so far of the one that is being read.
    contents: ContentBook<()>,
    open_length: u64,
}

impl Rules {
    pub(crate) fn new(head: &BackupHead) -> Rules {
        Rules {
            last_version: head.last_version,
            last_properties: String::new(),
            table: (String::new(), String::new()),
            last_queue_properties: String::new(),
            queue: (String::new(), String::new()),
            last_blob_properties: String::new(),
            container: (String::new(), String::new()),
            contents: ContentBook::default(),
            open_length: 0,
        }
    }

    pub(crate) fn check_head(head: &BackupHead) -> Result<(), String> {
        if head.last_version > VERSION_TICKS_MAX {
            let version = head.last_version;
            return Err(format!("the head: the last version, {version}, is a time after the year 9000"));
        }
        let version = &head.program_version;
        if version.len() > PROGRAM_VERSION_BYTES_MAX || !version.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("the head: {} is not the name of a version", quoted(version)));
        }
        Ok(())
    }

    pub(crate) fn check_properties(&mut self, account: &str, properties: &[u8]) -> Result<(), String> {
        let is_late = !self.table.0.is_empty() || self.has_queues() || self.has_blobs();
        check_properties(account, properties, &mut self.last_properties, is_late)
    }

    pub(crate) fn check_queue_properties(&mut self, account: &str, properties: &[u8]) -> Result<(), String> {
        let is_late = !self.queue.0.is_empty() || self.has_blobs();
        check_properties(account, properties, &mut self.last_queue_properties, is_late)
    }

    pub(crate) fn check_blob_properties(&mut self, account: &str, properties: &[u8]) -> Result<(), String> {
        let is_late = !self.container.0.is_empty();
        check_properties(account, properties, &mut self.last_blob_properties, is_late)
    }

    /// Whether anything of the Blob service was seen: all of it comes after the queues.
    fn has_blobs(&self) -> bool {
        !self.container.0.is_empty() || !self.last_blob_properties.is_empty()
    }

    /// Whether anything of the Queue service was seen: all of it comes after the tables.
    fn has_queues(&self) -> bool {
        !self.queue.0.is_empty() || !self.last_queue_properties.is_empty()
    }

    pub(crate) fn check_table(&mut self, table: &TableHead) -> Result<(), String> {
        let TableHead { account, name, policies } = table;
        let fail = |cause: &str| Err(format!("the table {} of {}: {cause}", quoted(name), quoted(account)));
        if AccountName::parse(account).is_none() {
            return fail("its account does not have the name of an account");
        }
        let Ok(parsed) = TableName::parse(name) else { return fail("this is not the name of a table") };
        let place = (account.clone(), parsed.to_lower());
        if self.table >= place {
            return fail("it is out of order, or there twice");
        }
        if self.has_queues() || self.has_blobs() {
            return fail("it comes after a queue or a container");
        }
        self.table = place;
        match policies.as_deref().map(|policies| normal_policies(policies, &protocol::table::KIND)) {
            Some(None) => fail("its access policies are not a document of access policies"),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_row(&self, row: StoredRow<'_>) -> Result<(), String> {
        let cause = if row.version.ticks() > self.last_version {
            format!("its version, {}, is greater than the last one of the backup", row.version.ticks())
        } else {
            match tables::check_stored(row.partition, row.row, row.record) {
                Ok(()) => return Ok(()),
                Err(cause) => plain(&cause),
            }
        };
        let ((account, table), partition, row) = (&self.table, quoted(row.partition), quoted(row.row));
        Err(format!(
            "the entity of table {table} of {account} with PartitionKey {partition} and RowKey {row}: {cause}"
        ))
    }
}

impl Rules {
    pub(crate) fn check_queue(&mut self, queue: &QueueHead) -> Result<(), String> {
        let QueueHead { account, name, policies, metadata } = queue;
        let fail = |cause: &str| Err(format!("the queue {} of {}: {cause}", quoted(name), quoted(account)));
        if AccountName::parse(account).is_none() {
            return fail("its account does not have the name of an account");
        }
        if QueueName::parse(name).is_err() {
            return fail("this is not the name of a queue");
        }
        let place = (account.clone(), name.clone());
        if self.queue >= place {
            return fail("it is out of order, or there twice");
        }
        if self.has_blobs() {
            return fail("it comes after a container");
        }
        self.queue = place;
        if read_metadata(metadata).is_none() {
            return fail("its metadata is not what a queue may have");
        }
        match policies.as_deref().map(|policies| normal_policies(policies, &protocol::queue::KIND)) {
            Some(None) => fail("its access policies are not a document of access policies"),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_message(&self, version: Version, message: &StoredMessage<'_>) -> Result<(), String> {
        let cause = if version.ticks() > self.last_version {
            format!("its version, {}, is greater than the last one of the backup", version.ticks())
        } else {
            match message.check() {
                Ok(()) => return Ok(()),
                Err(cause) => cause.to_owned(),
            }
        };
        let (account, queue) = &self.queue;
        Err(format!("the message {} of queue {queue} of {account}: {cause}", message.id))
    }
}

impl Rules {
    pub(crate) fn check_container(&mut self, container: &ContainerHead) -> Result<(), String> {
        let ContainerHead { account, name, policies, record } = container;
        let fail =
            |cause: &str| Err(format!("the container {} of {}: {cause}", quoted(name), quoted(account)));
        if AccountName::parse(account).is_none() {
            return fail("its account does not have the name of an account");
        }
        if let Err(cause) = check_portable_container(name, record) {
            return fail(cause);
        }
        let place = (account.clone(), name.clone());
        if self.container >= place {
            return fail("it is out of order, or there twice");
        }
        self.container = place;
        self.contents.clear();
        match policies.as_deref().map(|policies| normal_policies(policies, &protocol::blob::KIND)) {
            Some(None) => fail("its access policies are not a document of access policies"),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_piece(&mut self, piece: &ContentPiece<'_>) -> Result<(), String> {
        self.open_length += piece.bytes.len() as u64;
        if !piece.is_last {
            return Ok(());
        }
        let length = std::mem::take(&mut self.open_length);
        let added = self.contents.add(piece.number, piece.is_shared, length, ());
        let (account, container) = &self.container;
        added.map_err(|cause| format!("the container {container} of {account}: {cause}"))
    }

    pub(crate) fn check_blob_row(&mut self, row: StoredRow<'_>) -> Result<(), String> {
        let cause = if row.version.ticks() > self.last_version {
            format!("its version, {}, is greater than the last one of the backup", row.version.ticks())
        } else {
            match check_portable(row.partition, row.row, row.record, &mut self.contents) {
                Ok(()) => return Ok(()),
                Err(cause) => cause.to_owned(),
            }
        };
        let ((account, container), blob, row) = (&self.container, quoted(row.partition), quoted(row.row));
        Err(format!("the row {row} of blob {blob} in container {container} of {account}: {cause}"))
    }
}

fn check_properties(
    account: &str,
    properties: &[u8],
    last: &mut String,
    is_late: bool,
) -> Result<(), String> {
    let fail = |cause: &str| Err(format!("the service properties of {}: {cause}", quoted(account)));
    if AccountName::parse(account).is_none() {
        return fail("this is not the name of an account");
    }
    if last.as_str() >= account {
        return fail("they are out of order, or there twice");
    }
    if is_late {
        return fail("they come after a table, a queue or a container");
    }
    account.clone_into(last);
    match normal_properties(properties) {
        Some(_) => Ok(()),
        None => fail("they are not a document of service properties"),
    }
}

/// `None` if it breaks a rule.
pub(crate) fn read_metadata(items: &[(String, String)]) -> Option<Metadata> {
    Metadata::read(items.iter().map(|(name, value)| (name.as_str(), value.as_str()))).ok()
}

/// The document as we would store it; `None` if it is not one.
pub(crate) fn normal_properties(document: &[u8]) -> Option<Vec<u8>> {
    ServiceProperties::from_stored(document).map(|properties| properties.to_stored())
}

/// The document as we would store it; `None` if it is not one.
pub(crate) fn normal_policies(document: &[u8], kind: &ServiceKind) -> Option<Vec<u8>> {
    read_acl(document, kind.policy_letters).ok().map(|policies| write_acl(&policies))
}

/// A cause may quote a key, whatever its length and its characters.
fn plain(cause: &str) -> String {
    let start = cause.chars().take(CAUSE_CHARS_MAX);
    start.map(|character| if character.is_control() { '?' } else { character }).collect()
}

/// The text in quotation marks, without control characters, and cut if it is long.
fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let rest = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::common::DateTime;

    #[test]
    fn versions_end_long_before_the_calendar_does() {
        let last = DateTime::parse("9000-01-01T00:00:00Z").expect("a date");
        assert_eq!(last.ticks(), VERSION_TICKS_MAX);
        assert!(VERSION_TICKS_MAX < DateTime::MAX.ticks());
    }
}
