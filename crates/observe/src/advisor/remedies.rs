//! Remedies: for each case of the design guide, what to do in plain words, a sketch of the keys, and the page of the
//! pattern.
//!
//! Owns: how a filter's shape is read for the property that wants an index. Promises: every pattern that is named is
//! a page under `docs/patterns`.

use protocol::table::region::PlanKind;

/// What to do about a finding.
pub(super) struct Remedy {
    pub words: String,
    /// Keys, a line for each kind of row.
    pub sketch: String,
    /// The page that explains it.
    pub pattern: &'static str,
}

/// The pages, by the names of their files.
pub mod pattern {
    pub const COMPOUND_KEY: &str = "docs/patterns/compound_key.md";
    pub const INDEX_ENTITIES: &str = "docs/patterns/index_entities.md";
    pub const INTER_PARTITION_INDEX: &str = "docs/patterns/inter_partition_index.md";
    pub const INTRA_PARTITION_INDEX: &str = "docs/patterns/intra_partition_index.md";
    pub const LARGE_ENTITIES: &str = "docs/patterns/large_entities.md";
    pub const LOG_DATA: &str = "docs/patterns/log_data.md";
    pub const LOG_TAIL: &str = "docs/patterns/log_tail.md";
    pub const ONE_TO_MANY: &str = "docs/patterns/one_to_many.md";
    pub const PREPEND_APPEND: &str = "docs/patterns/prepend_append.md";
    pub const WIDE_ENTITIES: &str = "docs/patterns/wide_entities.md";

    pub const ALL: [&str; 10] = [
        COMPOUND_KEY,
        INDEX_ENTITIES,
        INTER_PARTITION_INDEX,
        INTRA_PARTITION_INDEX,
        LARGE_ENTITIES,
        LOG_DATA,
        LOG_TAIL,
        ONE_TO_MANY,
        PREPEND_APPEND,
        WIDE_ENTITIES,
    ];
}

/// What a filter asks for besides the keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted<'t> {
    /// Entities by the value of a property, or by a range of values.
    Property { name: &'t str, is_equality: bool },
    /// The RowKey without its PartitionKey.
    RowKey,
    /// A time.
    Timestamp,
    /// Nothing that could become a key.
    Nothing,
}

/// Reads the text of a shape (`protocol::table::filter::shape`).
pub(super) fn wanted(shape: &str) -> Wanted<'_> {
    let mut wanted = Wanted::Nothing;
    let (mut has_partition, mut has_row) = (false, false);
    for (name, operator) in terms(shape) {
        let is_equality = matches!(operator, "eq" | "");
        let found = match name {
            "PartitionKey" => {
                has_partition |= is_equality;
                continue;
            }
            "RowKey" => {
                has_row |= is_equality;
                continue;
            }
            "Timestamp" => Wanted::Timestamp,
            name => Wanted::Property { name, is_equality },
        };
        if importance(found) > importance(wanted) {
            wanted = found;
        }
    }
    if has_row && !has_partition { Wanted::RowKey } else { wanted }
}

/// An equality makes the best key.
fn importance(wanted: Wanted<'_>) -> u8 {
    match wanted {
        Wanted::Nothing | Wanted::RowKey => 0,
        Wanted::Timestamp => 1,
        Wanted::Property { is_equality: false, .. } => 2,
        Wanted::Property { is_equality: true, .. } => 3,
    }
}

/// The names of properties with the operators they are compared by; "" for a Boolean that stands alone.
fn terms(shape: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut words = shape.split([' ', '(', ')']).filter(|word| !word.is_empty()).peekable();
    std::iter::from_fn(move || {
        loop {
            let name = words.next()?;
            if matches!(name, "and" | "or" | "not" | "..") {
                continue;
            }
            let operator =
                words.next_if(|word| matches!(*word, "eq" | "ne" | "gt" | "ge" | "lt" | "le")).unwrap_or("");
            if !operator.is_empty() {
                // The type of the literal.
                words.next();
            }
            return Some((name, operator));
        }
    })
}

/// Whether the filter joins conditions on RowKey by `or`: a few seeks here, a scan on the real service.
pub(super) fn joins_keys_by_or(shape: &str) -> bool {
    shape.match_indices(" or ").any(|(at, _)| {
        let before = last_term(&shape[..at]);
        terms(before).any(|(name, _)| name == "RowKey")
    })
}

/// The term at the end of a text: a comparison, or everything in parentheses.
fn last_term(text: &str) -> &str {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth <= 1 => return &text[at + 1..],
            b'(' => depth -= 1,
            b' ' if depth == 0 && (text[at..].starts_with(" or ") || text[at..].starts_with(" and ")) => {
                return &text[at..];
            }
            _ => {}
        }
    }
    text
}

/// For queries that examine far more than they return.
pub(super) fn for_scan(plan: PlanKind, table: &str, shape: &str, returned_per_request: f64) -> Remedy {
    let wanted = wanted(shape);
    let is_within_partition = matches!(plan, PlanKind::PartitionScan | PlanKind::RowRange | PlanKind::Point);
    // Asking for a value that one entity has differs from asking for one that many share.
    let is_unique = returned_per_request <= 1.5;
    match wanted {
        Wanted::Property { name, is_equality } if is_within_partition => {
            if is_equality && !is_unique {
                shared_value(table, name, true)
            } else {
                index_within(table, name)
            }
        }
        Wanted::Property { name, is_equality } => {
            if is_equality && !is_unique {
                shared_value(table, name, false)
            } else {
                index_across(table, name)
            }
        }
        Wanted::RowKey => Remedy {
            words: "These queries know the RowKey and not the PartitionKey. Make the PartitionKey something \
                    that the program can compute from the RowKey, such as a hash of it or its first part; or \
                    keep an index table whose PartitionKey is the RowKey. Either makes the query a point."
                .to_owned(),
            sketch: format!(
                "{table}           PartitionKey = hash of the RowKey, 2 digits   RowKey as today\n\
                 or  {table}ByRow  PartitionKey = RowKey                          Partition: where the entity is\n\
                 query  PartitionKey eq hash and RowKey eq value                  a point"
            ),
            pattern: pattern::INTER_PARTITION_INDEX,
        },
        Wanted::Timestamp if is_within_partition => Remedy {
            words: "Timestamp is in no index. Put the time that is asked for into the RowKey, with the newest \
                    first if that is what is read: then a span of time is a range of rows."
                .to_owned(),
            sketch: format!(
                "{table}  PartitionKey as today  RowKey = inverted ticks of the time\n\
                 query  PartitionKey eq 'p' and RowKey lt ticks     a range; $top=10 for the newest ten"
            ),
            pattern: pattern::LOG_TAIL,
        },
        Wanted::Timestamp => Remedy {
            words: "Timestamp is in no index. Put the time into the keys: an hour or a day and a bucket as \
                    PartitionKey, the exact time as RowKey. Then a span of time is one range of rows for each \
                    bucket, and inserts still spread."
                .to_owned(),
            sketch: format!(
                "{table}  PartitionKey = 2026-01-31T15!bucket  RowKey = time!id     8 buckets\n\
                 query  PartitionKey eq '2026-01-31T15!3' and RowKey ge time       a range, for each bucket"
            ),
            pattern: pattern::LOG_DATA,
        },
        Wanted::Nothing => Remedy {
            words: "Name the PartitionKey, and if possible the RowKey or the beginning of it. If the program \
                    does not know them, keep a copy of the entities under keys that it knows."
                .to_owned(),
            sketch: format!(
                "{table}  PartitionKey = what is always known  RowKey = kind!id\n\
                 query  PartitionKey eq 'known' and RowKey ge 'kind!' and RowKey lt 'kind\"'     a range"
            ),
            pattern: if is_within_partition { pattern::COMPOUND_KEY } else { pattern::INTER_PARTITION_INDEX },
        },
    }
}

fn index_within(table: &str, property: &str) -> Remedy {
    Remedy {
        words: format!(
            "Store a second copy of each entity in the same partition, under a RowKey that begins with \
             {property}. One transaction writes both, so they never differ, and the query becomes a point or a \
             range of rows."
        ),
        sketch: format!(
            "{table}  PartitionKey as today  RowKey = id!KEY                the entity\n\
             {table}  PartitionKey as today  RowKey = {property}!VALUE!KEY  its copy, written in the same transaction\n\
             query  PartitionKey eq 'p' and RowKey ge '{property}!VALUE!' and RowKey lt '{property}!VALUE\"'"
        ),
        pattern: pattern::INTRA_PARTITION_INDEX,
    }
}

fn index_across(table: &str, property: &str) -> Remedy {
    Remedy {
        words: format!(
            "Keep a second table whose PartitionKey is {property}, with a copy of each entity or its keys. A \
             worker keeps it up to date through a queue, or the outbox writes the message in the same step. \
             The query becomes a point or a range of one partition."
        ),
        sketch: format!(
            "{table}  PartitionKey, RowKey as today                                    the entity\n\
             {table}By{property}  PartitionKey = VALUE  RowKey = PARTITION!ROW  its copy, or its keys\n\
             query  PartitionKey eq 'VALUE'  of {table}By{property}"
        ),
        pattern: pattern::INTER_PARTITION_INDEX,
    }
}

fn shared_value(table: &str, property: &str, is_within_partition: bool) -> Remedy {
    let (place, sketch) = if is_within_partition {
        (
            "in the same partition, written in the same transaction",
            format!(
                "{table}  PartitionKey as today  RowKey = id!KEY            the entity\n\
                 {table}  PartitionKey as today  RowKey = {property}!VALUE  Keys: KEY, KEY, ...\n\
                 query  PartitionKey eq 'p' and RowKey eq '{property}!VALUE', then the entities on the list"
            ),
        )
    } else {
        (
            "in a table of its own, kept up to date by a worker",
            format!(
                "{table}  PartitionKey, RowKey as today                          the entity\n\
                 {table}By{property}  PartitionKey = VALUE  RowKey = list  Keys: PARTITION!ROW, ...\n\
                 query  PartitionKey eq 'VALUE' of {table}By{property}, then the entities on the list"
            ),
        )
    };
    Remedy {
        words: format!(
            "Many entities share a value of {property}. Keep an entity for each value that lists their keys, \
             {place}. The query becomes a point, and then points for the entities. If a value has very many \
             entities, give each a row of its own under {property}!VALUE!KEY instead of a list."
        ),
        sketch,
        pattern: pattern::INDEX_ENTITIES,
    }
}

pub(super) fn for_or_of_keys(table: &str) -> Remedy {
    Remedy {
        words:
            "Ask for each entity by a request of its own, several at a time: the client's pieces for joins \
                do so. Or, if they are always read together, give them RowKeys with a common beginning: then \
                one range reads them."
                .to_owned(),
        sketch: format!(
            "{table}  PartitionKey as today  RowKey = OWNER!1, OWNER!2, ...\n\
             query  PartitionKey eq 'p' and RowKey ge 'OWNER!' and RowKey lt 'OWNER\"'     a range\n\
             or  one point read for each RowKey, in parallel"
        ),
        pattern: pattern::COMPOUND_KEY,
    }
}

pub(super) fn for_hot_partition(table: &str) -> Remedy {
    Remedy {
        words:
            "Spread it over several PartitionKeys: add a bucket to the key, made from a hash of the RowKey. \
                A reader that knows the RowKey knows the bucket; one that wants everything asks each bucket. \
                If a single entity is hot, keep a copy of it in the program for a few seconds, or split its \
                counters."
                .to_owned(),
        sketch: format!(
            "{table}  PartitionKey = KEY!bucket  RowKey as today     bucket = hash of the RowKey, modulo 16\n\
             point  PartitionKey eq 'KEY!07' and RowKey eq 'r'      one bucket\n\
             list   PartitionKey eq 'KEY!00', ... 'KEY!15'          one range each"
        ),
        pattern: pattern::LOG_DATA,
    }
}

pub(super) fn for_hot_account() -> Remedy {
    Remedy {
        words: "Spread the tables over several accounts, read entities that change seldom from a cache, and \
                write several entities of a partition in one transaction, which counts once."
            .to_owned(),
        sketch: "account1  tables of one half of the tenants\naccount2  tables of the other half".to_owned(),
        pattern: pattern::ONE_TO_MANY,
    }
}

pub(super) fn for_growth(table: &str, is_append: bool) -> Remedy {
    let key = if is_append { "time" } else { "inverted time" };
    Remedy {
        words: format!(
            "Begin the PartitionKey with something that differs between inserts that happen at the same time, \
             such as the id of the user or device, and put the {key} into the RowKey. If everything of an hour \
             must be read at once, put a bucket behind the hour instead."
        ),
        sketch: format!(
            "{table}  PartitionKey = {key}        RowKey = id      today: every insert goes to one end\n\
             {table}  PartitionKey = id          RowKey = {key}   inserts spread over all ids\n\
             {table}  PartitionKey = hour!bucket RowKey = {key}   for reading by time: one range for each bucket"
        ),
        pattern: pattern::PREPEND_APPEND,
    }
}

pub(super) fn for_giant_partition(table: &str) -> Remedy {
    Remedy {
        words: "Divide it: take a part of the RowKey, such as the month or the owner, into the PartitionKey. A \
                partition is served by one machine of the real service and cannot be split, so what it can do \
                does not grow with it. Keep together only what one transaction writes or one query reads."
            .to_owned(),
        sketch: format!(
            "{table}  PartitionKey = ALL           RowKey = OWNER!id   today\n\
             {table}  PartitionKey = ALL!OWNER     RowKey = id         a partition for each owner\n\
             {table}  PartitionKey = ALL!2026-01   RowKey = OWNER!id   or for each month"
        ),
        pattern: pattern::ONE_TO_MANY,
    }
}

pub(super) fn for_wide_entity(table: &str) -> Remedy {
    Remedy {
        words:
            "Split it over several rows of the same partition, which one transaction writes and one query \
                reads. A list that grows without a bound should have a row for each item."
                .to_owned(),
        sketch: format!(
            "{table}  PartitionKey as today  RowKey = KEY!wide!000  properties 1 to 250\n\
             {table}  PartitionKey as today  RowKey = KEY!wide!001  properties 251 and on"
        ),
        pattern: pattern::WIDE_ENTITIES,
    }
}

pub(super) fn for_large_entity(table: &str) -> Remedy {
    Remedy {
        words:
            "Move the large value out: into a blob, with its address in the entity; or into chunks, rows of \
                the same partition, with the head written last."
                .to_owned(),
        sketch: format!(
            "{table}  PartitionKey as today  RowKey = KEY                         head: Generation, Length, Chunks\n\
             {table}  PartitionKey as today  RowKey = KEY!chunk!GENERATION!000000  the first 960 KiB"
        ),
        pattern: pattern::LARGE_ENTITIES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_property_that_wants_an_index_is_found() {
        let property = |name, is_equality| Wanted::Property { name, is_equality };
        for (shape, expected) in [
            ("", Wanted::Nothing),
            ("PartitionKey gt String", Wanted::Nothing),
            ("Email eq String", property("Email", true)),
            ("PartitionKey eq String and Age gt Int32", property("Age", false)),
            ("Age gt Int32 and (Kind eq String or ..)", property("Kind", true)),
            ("PartitionKey eq String and not Done", property("Done", true)),
            ("RowKey eq String", Wanted::RowKey),
            ("PartitionKey eq String and RowKey eq String", Wanted::Nothing),
            ("PartitionKey eq String and RowKey ge String and Age gt Int32", property("Age", false)),
            ("PartitionKey eq String and (RowKey eq String or Name eq String)", property("Name", true)),
            ("Timestamp gt DateTime", Wanted::Timestamp),
        ] {
            assert_eq!(wanted(shape), expected, "{shape}");
        }
    }

    #[test]
    fn keys_joined_by_or_are_told_from_other_conditions() {
        for (shape, expected) in [
            ("PartitionKey eq String and (RowKey eq String or ..)", true),
            ("(PartitionKey eq String and RowKey eq String) or ..", true),
            ("PartitionKey eq String and (RowKey lt String or RowKey gt String)", true),
            ("PartitionKey eq String and ((RowKey eq String and A eq Int32) or ..)", true),
            ("PartitionKey eq String and RowKey eq String and (A eq Int32 or ..)", false),
            ("PartitionKey eq String and RowKey eq String and (A eq Int32 or B)", false),
            ("PartitionKey eq String or ..", false),
            ("MyRowKey eq String or ..", false),
            ("", false),
        ] {
            assert_eq!(joins_keys_by_or(shape), expected, "{shape}");
        }
    }

    #[test]
    fn every_pattern_has_its_page() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for page in pattern::ALL {
            assert!(std::path::Path::new(root).join(page).is_file(), "{page}");
        }
    }
}
