//! Families: the tables of one service, told apart from those of every other by their ids alone.
//!
//! A store may hold the tables of several services. Each service has a [`Family`] number, which is the top byte of
//! the ids of its tables. [`ValueRules`] say what the values of a family mean, and an engine is built with the rules
//! of the families it knows ([`Families`]). Names live in a [`Namespace`], which is an owner and a family, so two
//! services of one owner can both have a table `abc`.
//!
//! Promises: the family of a table never changes, and finding it needs no look-up. Leaves to others: which number belongs
//! to which service.

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use crate::keys::{self, Key, KeyRange};
use crate::{CommitError, TableId};

/// Families have numbers below this one.
pub const FAMILY_COUNT_MAX: usize = 16;

/// The position of the family's number in a table id.
const FAMILY_SHIFT: u32 = 56;

/// A family of tables. Its number is on the disk, so no number is ever given to another service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Family(pub u8);

impl Family {
    /// The family of all tables that were created before there were families.
    pub const FIRST: Family = Family(0);
}

impl TableId {
    /// The id of a table in this family. `counter` is unique in the store, whatever the family. `None`: the ids are
    /// used up, or there is no such family.
    pub fn in_family(family: Family, counter: u64) -> Option<TableId> {
        let is_sound = counter >> FAMILY_SHIFT == 0 && usize::from(family.0) < FAMILY_COUNT_MAX;
        is_sound.then_some(TableId(u64::from(family.0) << FAMILY_SHIFT | counter))
    }

    /// The family of the table. The engine's own tables, below [`TableId::FIRST`], belong to none, whatever this says.
    pub fn family(self) -> Family {
        Family((self.0 >> FAMILY_SHIFT) as u8)
    }

    /// The id without its family.
    pub fn counter(self) -> u64 {
        self.0 & ((1 << FAMILY_SHIFT) - 1)
    }
}

/// Where the names of tables are unique: all tables of one family that belong to one owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Namespace<'a> {
    pub family: Family,
    /// Holds no `/`.
    pub owner: &'a str,
}

impl<'a> Namespace<'a> {
    pub const fn new(family: Family, owner: &'a str) -> Namespace<'a> {
        Namespace { family, owner }
    }

    /// The partition of the catalogue that lists this namespace. In the first family it is the owner alone, as in every
    /// store that was written before there were families.
    pub fn partition(&self) -> Cow<'a, str> {
        match self.family {
            Family::FIRST => Cow::Borrowed(self.owner),
            Family(number) => Cow::Owned(format!("{}/{number}", self.owner)),
        }
    }

    /// Every name of this namespace, as keys of [`TableId::CATALOGUE`].
    pub fn names(&self) -> KeyRange {
        KeyRange::rows(&self.partition(), Bound::Unbounded, Bound::Unbounded)
    }

    /// The encoded key of a name in the catalogue. An engine calls this first in every verb that takes a namespace.
    pub fn encode(&self, name: &str) -> Result<Vec<u8>, CommitError> {
        if self.owner.contains('/') {
            return Err(CommitError::Invalid(format!("the owner of a table holds a '/': {:?}", self.owner)));
        }
        if usize::from(self.family.0) >= FAMILY_COUNT_MAX {
            return Err(CommitError::Invalid(format!("there is no family {}", self.family.0)));
        }
        Ok(keys::encode(TableId::CATALOGUE, Key { partition: &self.partition(), row: name }))
    }
}

/// A table by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TablePath<'a> {
    pub namespace: Namespace<'a>,
    pub name: &'a str,
}

impl<'a> TablePath<'a> {
    pub const fn new(namespace: Namespace<'a>, name: &'a str) -> TablePath<'a> {
        TablePath { namespace, name }
    }

    /// The encoded catalogue keys of a renaming. A table's id holds its family, so it cannot move to another.
    pub fn encode_renaming(
        from: TablePath<'_>,
        to: TablePath<'_>,
    ) -> Result<(Vec<u8>, Vec<u8>), CommitError> {
        let (old, new) = (from.namespace.family, to.namespace.family);
        if old != new {
            return Err(CommitError::Invalid(format!(
                "a table of family {} cannot be renamed into family {}",
                old.0, new.0
            )));
        }
        Ok((from.namespace.encode(from.name)?, to.namespace.encode(to.name)?))
    }
}

/// Why the merge function would not merge; the number is its author's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeRefusal(pub u16);

/// (old value, patch) -> new value. Pure: the same inputs give the same output, on any thread, at any time.
pub type MergeFn = fn(old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, MergeRefusal>;

/// What the values of a family mean, as far as an engine must know.
#[derive(Clone, Copy, Debug)]
pub struct ValueRules {
    pub merge: MergeFn,
    /// Whether these bytes are a value of the family: what a check of the store asks.
    pub is_sound: fn(&[u8]) -> bool,
}

/// The rules of every family that an engine knows. Small and copied freely; finding a rule is one index.
#[derive(Clone, Copy, Debug)]
pub struct Families {
    rules: [Option<ValueRules>; FAMILY_COUNT_MAX],
}

impl Families {
    /// No rules at all: such an engine keeps tables of any family, and merges in none.
    pub const NONE: Families = Families { rules: [None; FAMILY_COUNT_MAX] };

    /// The same, and this family.
    pub const fn with(mut self, family: Family, rules: ValueRules) -> Families {
        self.rules[family.0 as usize] = Some(rules);
        self
    }

    /// The rules for the values of a table; `None` for the engine's own tables and for a family that it does not know.
    pub fn rules_of(&self, table: TableId) -> Option<&ValueRules> {
        if table < TableId::FIRST {
            return None;
        }
        self.rules.get(usize::from(table.family().0))?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_holds_its_family_and_old_ids_are_of_the_first() {
        assert_eq!(TableId(16).family(), Family::FIRST);
        let id = TableId::in_family(Family(3), 17).unwrap();
        assert_eq!((id.0, id.family(), id.counter()), (0x0300_0000_0000_0011, Family(3), 17));
        assert_eq!(TableId::in_family(Family::FIRST, 17), Some(TableId(17)));
        assert_eq!(TableId::in_family(Family(16), 17), None);
        assert_eq!(TableId::in_family(Family(1), 1 << 56), None);
    }

    #[test]
    fn a_namespace_of_the_first_family_is_its_owner_alone() {
        assert_eq!(Namespace::new(Family::FIRST, "o").partition(), "o");
        assert_eq!(Namespace::new(Family(2), "o").partition(), "o/2");
        assert_eq!(
            Namespace::new(Family::FIRST, "o").encode("t"),
            Ok(keys::encode(TableId::CATALOGUE, Key::new("o", "t")))
        );
        for namespace in [Namespace::new(Family::FIRST, "o/2"), Namespace::new(Family(16), "o")] {
            assert!(matches!(namespace.encode("t"), Err(CommitError::Invalid(_))), "{namespace:?}");
        }
    }

    #[test]
    fn rules_are_those_of_the_family_and_the_engines_own_tables_have_none() {
        let rules = ValueRules { merge: |_, patch| Ok(Bytes::copy_from_slice(patch)), is_sound: |_| true };
        let families = Families::NONE.with(Family::FIRST, rules);
        assert!(families.rules_of(TableId(16)).is_some());
        assert!(families.rules_of(TableId::SETTINGS).is_none());
        for id in [1 << 56 | 16, 15 << 56 | 16, 16 << 56 | 16, u64::MAX] {
            assert!(families.rules_of(TableId(id)).is_none(), "{id:x}");
        }
    }
}
