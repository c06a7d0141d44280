//! What all lists of named things have in common: the parameters of a page, the marker that names its first item, and
//! the document around the items.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::query::{Query, number, parameter_out_of_range, text};
use super::xml_write::XmlWriter;
use super::{AccountName, Metadata};
use crate::ServiceError;

/// How many items a page may have.
const ITEM_COUNT: RangeInclusive<i64> = 1..=5_000;
/// How many items a page has when the caller does not say.
pub(crate) const PAGE_COUNT_USUAL: usize = *ITEM_COUNT.end() as usize;

pub(crate) const ROOT: &str = "EnumerationResults";

/// `maxresults`. A number above the maximum stands for the maximum; zero and less are refused.
pub(crate) fn read_count_max(query: &Query<'_>) -> Result<Option<usize>, ServiceError> {
    match number(query, "maxresults")? {
        None => Ok(None),
        Some((count, sent)) if count < *ITEM_COUNT.start() => {
            Err(parameter_out_of_range("maxresults", &sent, &ITEM_COUNT))
        }
        Some((count, _)) => Ok(Some(count.min(*ITEM_COUNT.end()) as usize)),
    }
}

/// The words of `include`: a list with commas, in one parameter or in several.
pub(crate) fn read_include<'q>(query: &Query<'q>) -> Result<Vec<Cow<'q, str>>, ServiceError> {
    let mut lists = Vec::new();
    for raw in query.parameters().filter(|(name, _)| *name == "include").map(|(_, raw)| raw) {
        let list = super::query::decode(raw);
        lists.push(list.ok_or_else(|| super::query::invalid_parameter("include", raw, ""))?);
    }
    Ok(lists)
}

/// A text that the answer repeats.
pub(crate) fn read_text(query: &Query<'_>, name: &'static str) -> Result<Option<String>, ServiceError> {
    Ok(text(query, name)?.map(Cow::into_owned))
}

/// Where a page begins: `/ACCOUNT/NAME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NameMarker {
    /// As the caller sent it.
    pub text: String,
    /// Where the page's first name begins in the text.
    name_at: usize,
}

impl NameMarker {
    /// `/ACCOUNT/NAME`, as [`NameMarker::write`] makes it, or a name alone, as in the samples of the documentation.
    pub fn read(text: String, account: &AccountName) -> Option<NameMarker> {
        let name = match text.strip_prefix('/') {
            Some(rest) => rest.strip_prefix(account.as_str()).and_then(|rest| rest.strip_prefix('/')),
            None => Some(&*text),
        };
        let name = name.filter(|name| !name.is_empty() && !name.contains('/'));
        let name_at = text.len() - name?.len();
        Some(NameMarker { text, name_at })
    }

    /// The marker of the page that begins with this name.
    pub fn write(account: &AccountName, name: &str) -> String {
        ["/", account.as_str(), "/", name].concat()
    }

    pub fn name(&self) -> &str {
        &self.text[self.name_at..]
    }
}

/// Writes those parameters that the caller sent, in the service's order.
pub(crate) fn write_head(
    prefix: Option<&str>,
    marker: Option<&str>,
    count_max: Option<usize>,
    out: &mut XmlWriter,
) {
    if let Some(prefix) = prefix {
        out.leaf("Prefix", prefix);
    }
    if let Some(marker) = marker {
        out.leaf("Marker", marker);
    }
    if let Some(count_max) = count_max {
        out.leaf("MaxResults", &count_max.to_string());
    }
}

/// The items between the head and the end of a list, with room for their bytes.
pub(crate) struct Items {
    pub out: XmlWriter,
    list: &'static str,
    is_empty: bool,
    /// Bytes that the end of the document takes at most.
    end_bytes_max: usize,
}

impl Items {
    pub fn new(out: XmlWriter, list: &'static str, end_bytes_max: usize) -> Items {
        Items { out, list, is_empty: true, end_bytes_max }
    }

    /// Adds an item, unless `admit` refuses an answer of that many bytes. Tells whether it did.
    pub fn push(&mut self, write: impl FnOnce(&mut XmlWriter), admit: impl FnOnce(usize) -> bool) -> bool {
        let before = self.out.len();
        if self.is_empty {
            self.out.start(self.list);
        }
        write(&mut self.out);
        if !admit(self.out.len() + self.end_bytes_max) {
            self.out.truncate(before);
            return false;
        }
        self.is_empty = false;
        true
    }

    /// Closes the list and the document. `next` is the marker of the next page, if there is one.
    pub fn finish(mut self, next: Option<&str>) -> Vec<u8> {
        if self.is_empty {
            self.out.empty(self.list);
        } else {
            self.out.end(self.list);
        }
        self.out.leaf("NextMarker", next.unwrap_or_default());
        self.out.end(ROOT);
        self.out.finish()
    }
}

/// The metadata of an item.
pub(crate) fn write_metadata(metadata: &Metadata, out: &mut XmlWriter) {
    if metadata.items().len() == 0 {
        return out.empty("Metadata");
    }
    out.start("Metadata");
    // Names of metadata are valid names of elements.
    for (name, value) in metadata.items() {
        out.leaf(name, value);
    }
    out.end("Metadata");
}
