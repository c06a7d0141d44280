//! The id of a store: a random number that every file of the store carries, so that no file is taken for one of another
//! store, and the check that a running engine's path still leads to its own store.

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use crate::directory_files::StoreFiles;
use crate::marker::{self, MARKER};
use engine::env::random;

/// Made when the store is created. A copy of the directory has the same id; a store restored from a backup has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoreId(NonZeroU64);

impl StoreId {
    pub(crate) fn new() -> StoreId {
        StoreId(NonZeroU64::new(random::unguessable()).unwrap_or(NonZeroU64::MIN))
    }

    /// 0 is no id.
    pub(crate) fn from_number(number: u64) -> Option<StoreId> {
        NonZeroU64::new(number).map(StoreId)
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }

    /// Reads what `Display` prints.
    pub(crate) fn parse(text: &str) -> Option<StoreId> {
        let number = u64::from_str_radix(text, 16).ok().and_then(StoreId::from_number)?;
        (number.to_string() == text).then_some(number)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Where a running engine has its store.
#[derive(Clone, Debug)]
pub(crate) struct StorePlace {
    pub(crate) files: Arc<dyn StoreFiles>,
    pub(crate) path: PathBuf,
    pub(crate) id: StoreId,
}

impl StorePlace {
    /// Fails, with a sentence, when the path no longer leads to this store: the directory was moved or removed, something
    /// was mounted over it, or another store was put into it. Costs a few system calls, so it is not for every commit. A
    /// question that the system cannot answer is no finding.
    pub(crate) fn check(&self) -> Result<(), String> {
        let path = self.path.display();
        if self.files.is_in_place().is_ok_and(|is_in_place| !is_in_place) {
            return Err(format!(
                "{path} no longer leads to store {}: its directory was moved or removed, or something was mounted over it",
                self.id
            ));
        }
        match marker::read(&*self.files, &self.path) {
            Ok(Some(found)) if found.id.is_some_and(|found| found != self.id) => Err(format!(
                "the file {MARKER} in {path} now names store {}, and not store {}: another store was put into the directory",
                found.id.unwrap_or(self.id),
                self.id
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_as_it_prints_and_differs_from_the_next() {
        let id = StoreId::new();
        assert_eq!(StoreId::parse(&id.to_string()), Some(id));
        assert_ne!(id, StoreId::new());
        for text in
            ["", "0000000000000000", "1", "+00000000000000a", "000000000000000G", "00000000000000000a"]
        {
            assert_eq!(StoreId::parse(text), None, "{text}");
        }
    }
}
