//! Columns: a property of an entity, as filters name it.
//!
//! Owns: the comparisons. Promises: a column of one entity makes only filters of that entity, and a value of another
//! type than the column's does not compile.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use protocol::table::filter::{CompareOp, FilterProperty};
use protocol::table::model::check_property_name;

use crate::filter::FilterError;
use crate::literal::{ComparesWith, ToLiteral};
use crate::{Field, Filter};

/// Words that a filter reads as something else than a property, so that a property of that name cannot be compared.
const FILTER_WORDS: [&str; 6] = ["true", "false", "null", "not", "NaN", "INF"];

/// A property of the entity `E`, with values of type `T`. It is compared with values of [`Field::Compared`]: a column
/// of an `Option<i32>` with an `i32`, one of a `Box<str>` with any text.
///
/// `#[derive(Entity)]` makes a function for each property:
///
/// ```
/// use lazulite_client::Entity;
///
/// #[derive(Entity)]
/// #[entity(rename_all = "PascalCase")]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     id: String,
///     age: i32,
///     email: Option<String>,
/// }
///
/// let young_or_ann = Employee::age().lt(30) | Employee::email().eq("ann.o'neill@example.com");
/// let filter = Employee::department().eq("Sales") & young_or_ann;
/// let text = "PartitionKey eq 'Sales' and (Age lt 30 or Email eq 'ann.o''neill@example.com')";
/// assert_eq!(filter.to_string(), text);
/// ```
pub struct Column<E, T> {
    name: Cow<'static, str>,
    of: PhantomData<fn() -> (E, T)>,
}

impl<E, T> Column<E, T> {
    /// For the derive, which has checked the name.
    #[doc(hidden)]
    pub const fn named(name: &'static str) -> Column<E, T> {
        Column { name: Cow::Borrowed(name), of: PhantomData }
    }

    /// A column by its name, checked to be one that a filter can name.
    pub(crate) fn checked(name: &str) -> Result<Column<E, T>, FilterError> {
        if check_property_name(name).is_err() || FILTER_WORDS.contains(&name) {
            return Err(FilterError::new(format!("a filter cannot name the property {name:?}")));
        }
        Ok(Column { name: Cow::Owned(name.to_owned()), of: PhantomData })
    }

    /// The property's name in the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn property(self) -> FilterProperty {
        match &*self.name {
            "PartitionKey" => FilterProperty::PartitionKey,
            "RowKey" => FilterProperty::RowKey,
            "Timestamp" => FilterProperty::Timestamp,
            name => FilterProperty::Custom(name.into()),
        }
    }

    fn compare(self, op: CompareOp, value: &(impl ToLiteral + ?Sized)) -> Filter<E> {
        let literal = value.to_literal();
        let op = literal.fit.adjust(op);
        Filter::compare(self.property(), op, literal.value.into_owned())
    }
}

impl<E, T: Field> Column<E, T> {
    /// `eq`: the property exists and has this value.
    pub fn eq(self, value: impl ComparesWith<T::Compared>) -> Filter<E> {
        self.compare(CompareOp::Eq, &value)
    }

    /// `ne`: the property exists and has another value. Entities without the property match `!column.eq(value)`, but
    /// not this.
    pub fn ne(self, value: impl ComparesWith<T::Compared>) -> Filter<E> {
        self.compare(CompareOp::Ne, &value)
    }

    /// `lt`: less than. Text is ordered by UTF-16 code unit.
    pub fn lt(self, value: impl ComparesWith<T::Compared>) -> Filter<E> {
        self.compare(CompareOp::Lt, &value)
    }

    /// `le`: less than or equal.
    pub fn le(self, value: impl ComparesWith<T::Compared>) -> Filter<E> {
        self.compare(CompareOp::Le, &value)
    }

    /// `gt`: greater than.
    pub fn gt(self, value: impl ComparesWith<T::Compared>) -> Filter<E> {
        self.compare(CompareOp::Gt, &value)
    }

    /// `ge`: greater than or equal.
    pub fn ge(self, value: impl ComparesWith<T::Compared>) -> Filter<E> {
        self.compare(CompareOp::Ge, &value)
    }

    /// From `low` up to, but not including, `high`.
    ///
    /// ```
    /// # use lazulite_client::DynamicEntity;
    /// let filter = DynamicEntity::row_key().between("2024", "2025");
    /// assert_eq!(filter.to_string(), "RowKey ge '2024' and RowKey lt '2025'");
    /// ```
    pub fn between(
        self,
        low: impl ComparesWith<T::Compared>,
        high: impl ComparesWith<T::Compared>,
    ) -> Filter<E> {
        self.clone().ge(low) & self.lt(high)
    }

    /// One of these values. Of no values, nothing.
    ///
    /// ```
    /// # use lazulite_client::DynamicEntity;
    /// let filter = DynamicEntity::row_key().is_in(["a", "b"]);
    /// assert_eq!(filter.to_string(), "RowKey eq 'a' or RowKey eq 'b'");
    /// ```
    pub fn is_in<V: ComparesWith<T::Compared>>(self, values: impl IntoIterator<Item = V>) -> Filter<E> {
        values.into_iter().fold(Filter::none(), |filter, value| filter | self.clone().eq(value))
    }
}

impl<E, T: Field<Compared = String>> Column<E, T> {
    /// Begins with `prefix`: from the prefix up to the first text that comes after all texts with it.
    ///
    /// ```
    /// # use lazulite_client::DynamicEntity;
    /// let filter = DynamicEntity::row_key().starts_with("empid_");
    /// assert_eq!(filter.to_string(), "RowKey ge 'empid_' and RowKey lt 'empid`'");
    /// ```
    pub fn starts_with(self, prefix: &str) -> Filter<E> {
        match after_prefix(prefix) {
            Some(end) => self.between(prefix, end),
            None => self.ge(prefix),
        }
    }
}

impl<E, T: Field<Compared = bool>> Column<E, T> {
    /// `eq true`.
    pub fn is_true(self) -> Filter<E> {
        self.eq(true)
    }

    /// `eq false`. Entities without the property match `!column.is_true()`, but not this.
    pub fn is_false(self) -> Filter<E> {
        self.eq(false)
    }
}

/// The least text above all that begin with the prefix, in the order of UTF-16 code units; `None` when there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = next_in_utf16_order(last) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

/// The character that follows in the order of UTF-16, where surrogate pairs lie between U+D7FF and U+E000. No text has
/// a lone surrogate, so that nothing lies between these neighbours.
fn next_in_utf16_order(character: char) -> Option<char> {
    match character {
        '\u{D7FF}' => Some('\u{10000}'),
        '\u{10FFFF}' => Some('\u{E000}'),
        '\u{FFFF}' => None,
        other => char::from_u32(other as u32 + 1),
    }
}

impl<E, T> Clone for Column<E, T> {
    fn clone(&self) -> Self {
        Column { name: self.name.clone(), of: PhantomData }
    }
}

impl<E, T> fmt::Debug for Column<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::common::ordinal::compare_ordinal;

    #[test]
    fn the_end_of_a_prefix_is_the_least_text_above_it() {
        let check = |prefix: &str, expected: Option<&str>| {
            assert_eq!(after_prefix(prefix).as_deref(), expected, "{prefix:?}");
        };
        check("", None);
        check("a", Some("b"));
        check("az", Some("a{"));
        check("a\u{D7FF}", Some("a\u{10000}"));
        check("a\u{1F600}", Some("a\u{1F601}"));
        // The last character with this high surrogate.
        check("a\u{103FF}", Some("a\u{10400}"));
        check("a\u{10FFFF}", Some("a\u{E000}"));
        check("a\u{FFFE}", Some("a\u{FFFF}"));
        check("a\u{FFFF}", Some("b"));
        check("a\u{FFFF}\u{FFFF}", Some("b"));
        check("\u{D7FF}\u{FFFF}", Some("\u{10000}"));
        check("\u{FFFF}", None);
    }

    #[test]
    fn a_prefix_holds_exactly_the_texts_that_begin_with_it() {
        let characters = [
            '\0',
            'a',
            'b',
            '\u{D7FE}',
            '\u{D7FF}',
            '\u{10000}',
            '\u{103FF}',
            '\u{10400}',
            '\u{10FFFF}',
            '\u{E000}',
            '\u{FFFE}',
            '\u{FFFF}',
        ];
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200_000 {
            let mut text = |len_max| -> String {
                (0..random.usize(..=len_max)).map(|_| characters[random.usize(..characters.len())]).collect()
            };
            let (prefix, text) = (text(3), text(4));
            let below_end = after_prefix(&prefix).is_none_or(|end| compare_ordinal(&text, &end).is_lt());
            let is_inside = compare_ordinal(&text, &prefix).is_ge() && below_end;
            assert_eq!(is_inside, text.starts_with(&prefix), "{text:?} and {prefix:?}");
        }
    }
}
