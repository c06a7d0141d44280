//! Query options: the parameters after the `?`, each decoded once.
//!
//! Leaves to others: parsing the filter, and which operation uses which option.

use std::borrow::Cow;

use super::continuation;
use crate::common::query::{Query, decode};
use crate::{ErrorCode, ServiceError};

/// The most entities in one page.
pub const PAGE_ENTITY_COUNT_MAX: u32 = 1000;
/// The most names in one `$select`.
const SELECT_COUNT_MAX: usize = 255;

/// The options of one request. The first value of a repeated option counts; empty `$filter` and `$format` count as
/// absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueryOptions<'a> {
    pub filter: Option<Cow<'a, str>>,
    pub select: Option<Cow<'a, str>>,
    pub top: Option<Cow<'a, str>>,
    pub format: Option<Cow<'a, str>>,
    pub comp: Option<Cow<'a, str>>,
    pub restype: Option<Cow<'a, str>>,
    pub next_partition_key: Option<Cow<'a, str>>,
    pub next_row_key: Option<Cow<'a, str>>,
    pub next_table_name: Option<Cow<'a, str>>,
    /// `$orderby`, `$skip` and other options of OData that this service does not support.
    pub has_unsupported: bool,
}

impl<'a> QueryOptions<'a> {
    pub fn read(query: &Query<'a>) -> Result<QueryOptions<'a>, ServiceError> {
        let mut options = QueryOptions::default();
        for (name, value) in query.parameters() {
            let slot = match name {
                "$filter" => &mut options.filter,
                "$select" => &mut options.select,
                "$top" => &mut options.top,
                "$format" => &mut options.format,
                // Its value is read for every service alike; here it only has to decode, as every option does.
                "timeout" => {
                    decode(value).ok_or(ErrorCode::InvalidInput)?;
                    continue;
                }
                "comp" => &mut options.comp,
                "restype" => &mut options.restype,
                "NextPartitionKey" => &mut options.next_partition_key,
                "NextRowKey" => &mut options.next_row_key,
                "NextTableName" => &mut options.next_table_name,
                "$skip" | "$orderby" | "$expand" | "$inlinecount" | "$count" | "$skiptoken" => {
                    options.has_unsupported = true;
                    continue;
                }
                _ => continue,
            };
            if slot.is_none() {
                *slot = Some(decode(value).ok_or(ErrorCode::InvalidInput)?);
            }
        }
        if query.has_unreadable_name() {
            return Err(ErrorCode::InvalidInput.into());
        }
        for emptiable in [&mut options.filter, &mut options.format] {
            if emptiable.as_deref().is_some_and(|value| value.trim().is_empty()) {
                *emptiable = None;
            }
        }
        Ok(options)
    }

    /// How many entities a page may have.
    pub fn page_count(&self) -> Result<u32, ServiceError> {
        let Some(text) = self.top.as_deref() else { return Ok(PAGE_ENTITY_COUNT_MAX) };
        let top: i64 = text.trim().parse().map_err(|_| {
            ServiceError::with_detail(
                ErrorCode::InvalidInput,
                format!("Incorrect format for $top argument '{text}'."),
            )
        })?;
        let in_range = u32::try_from(top).ok().filter(|top| *top <= PAGE_ENTITY_COUNT_MAX);
        in_range.ok_or_else(|| ErrorCode::InvalidInput.into())
    }

    pub fn selection(&self) -> Result<Option<Selection<'_>>, ServiceError> {
        match self.select.as_deref() {
            None => Ok(None),
            Some(text) => Selection::parse(text),
        }
    }

    /// The keys at which a query resumes, if it resumes.
    pub fn next_entity(&self) -> Result<Option<(String, String)>, ServiceError> {
        match (&self.next_partition_key, &self.next_row_key) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(ErrorCode::InvalidInput.into()),
            // A partition key alone means the start of that partition.
            (Some(partition), None) => Ok(Some((continuation::decode(partition)?, String::new()))),
            (Some(partition), Some(row)) => {
                Ok(Some((continuation::decode(partition)?, continuation::decode(row)?)))
            }
        }
    }

    pub fn next_table(&self) -> Result<Option<String>, ServiceError> {
        self.next_table_name.as_deref().map(continuation::decode).transpose()
    }
}

/// `$select`: the names in the requested order, and the text as sent, which `odata.metadata` repeats. Without names, it
/// selects everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection<'a> {
    pub text: &'a str,
    pub names: Vec<&'a str>,
}

impl<'a> Selection<'a> {
    fn parse(text: &'a str) -> Result<Option<Selection<'a>>, ServiceError> {
        let mut names: Vec<&str> = Vec::new();
        if text.trim().is_empty() {
            return Ok(Some(Selection { text, names }));
        }
        for name in text.split(',').map(str::trim) {
            if name.is_empty() || names.len() == SELECT_COUNT_MAX {
                return Err(ErrorCode::InvalidInput.into());
            }
            if name == "*" {
                return Ok(None);
            }
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(Some(Selection { text, names }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_decoded_once_and_the_first_counts() {
        let options =
            QueryOptions::read(&Query::split("$filter=a%20eq%20'%2B'&%24top=2&$filter=x&foo=1&$foo=2"))
                .unwrap();
        assert_eq!(options.filter.as_deref(), Some("a eq '+'"));
        assert_eq!(options.page_count().unwrap(), 2);
        assert!(!options.has_unsupported);
        assert_eq!(
            QueryOptions::read(&Query::split("$filter=a+eq+1")).unwrap().filter.as_deref(),
            Some("a eq 1")
        );
        assert_eq!(QueryOptions::read(&Query::split("$filter=&$format=")).unwrap(), QueryOptions::default());
        assert!(QueryOptions::read(&Query::split("$orderby=a")).unwrap().has_unsupported);
        assert!(QueryOptions::read(&Query::split("$filter=%f")).is_err());
    }

    #[test]
    fn top_is_zero_to_a_thousand() {
        let top = |value: &'static str| {
            QueryOptions::read(&Query::split(value)).unwrap().page_count().map_err(|e| e.message().to_owned())
        };
        assert_eq!(top(""), Ok(1000));
        assert_eq!(top("$top=0"), Ok(0));
        assert_eq!(top("$top=1000"), Ok(1000));
        assert_eq!(top("$top=1001"), Err("One of the request inputs is not valid.".into()));
        assert_eq!(top("$top=-1"), Err("One of the request inputs is not valid.".into()));
        assert_eq!(top("$top=x"), Err("Incorrect format for $top argument 'x'.".into()));
    }

    #[test]
    fn a_selection_keeps_its_text_and_order() {
        let options = QueryOptions::read(&Query::split("$select=b,%20a,b")).unwrap();
        let selection = options.selection().unwrap().unwrap();
        assert_eq!((selection.text, selection.names.as_slice()), ("b, a,b", &["b", "a"][..]));
        assert_eq!(QueryOptions::read(&Query::split("$select=*")).unwrap().selection().unwrap(), None);
        let empty = QueryOptions::read(&Query::split("$select=")).unwrap();
        assert_eq!(empty.selection().unwrap(), Some(Selection { text: "", names: Vec::new() }));
        assert!(QueryOptions::read(&Query::split("$select=a,,b")).unwrap().selection().is_err());
    }
}
