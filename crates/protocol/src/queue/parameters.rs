//! The parameters of the operations on queues and messages: their defaults, their ranges, and how a wrong one is refused.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::common::AccountName;
use crate::common::list::{NameMarker, PAGE_COUNT_USUAL, read_count_max, read_include, read_text};
use crate::common::percent::percent_decode;
use crate::common::query::{Query, invalid_parameter, missing_parameter, number, number_in};
use crate::{ErrorCode, ServiceError};

use super::PopReceipt;
use super::versions;

const MESSAGE_COUNT: RangeInclusive<i64> = 1..=32;
/// Seven days.
const VISIBILITY_SECONDS_MAX: i64 = 604_800;
/// Two hours.
const OLD_VISIBILITY_SECONDS_MAX: i64 = 7_200;
const VISIBILITY_SECONDS_USUAL: i64 = 30;
const LIFE_SECONDS_USUAL: i64 = 604_800;
const OLD_LIFE_SECONDS: RangeInclusive<i64> = 1..=604_800;

const VISIBILITY: &str = "visibilitytimeout";
const TIME_TO_LIVE: &str = "messagettl";
const COUNT: &str = "numofmessages";
const RECEIPT: &str = "popreceipt";

/// The parameters of Put Message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutParameters {
    pub visibility: Duration,
    /// `None`: for ever.
    pub time_to_live: Option<Duration>,
}

/// The parameters of Get Messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GetParameters {
    pub count_max: usize,
    pub visibility: Duration,
}

/// The parameters of Update Message. A receipt of `None` is well-formed and matches no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpdateParameters {
    pub receipt: Option<PopReceipt>,
    pub visibility: Duration,
}

/// The parameters of List Queues. Those that were sent are repeated in the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListParameters {
    pub prefix: Option<String>,
    pub(super) marker: Option<NameMarker>,
    pub(super) count_max: Option<usize>,
    pub include_metadata: bool,
}

impl PutParameters {
    pub fn read(query: &Query<'_>, version: &str) -> Result<PutParameters, ServiceError> {
        // Messages could not be put hidden before, so the parameter is one of those that are ignored.
        let visibility = match version < versions::LONG_MESSAGES {
            true => 0,
            false => number_in(query, VISIBILITY, 0..=VISIBILITY_SECONDS_MAX)?.unwrap_or(0),
        };
        let time_to_live = read_time_to_live(query, version)?;
        if time_to_live.is_some_and(|seconds| visibility >= seconds) {
            let reason = "messagettl must be greater than visibilitytimeout";
            return Err(invalid_parameter(VISIBILITY, &visibility.to_string(), reason));
        }
        Ok(PutParameters { visibility: duration(visibility), time_to_live: time_to_live.map(duration) })
    }
}

/// In seconds; `None`: for ever.
fn read_time_to_live(query: &Query<'_>, version: &str) -> Result<Option<i64>, ServiceError> {
    if version < versions::LONG_LIFE {
        let seconds = number_in(query, TIME_TO_LIVE, OLD_LIFE_SECONDS)?;
        return Ok(Some(seconds.unwrap_or(LIFE_SECONDS_USUAL)));
    }
    match number(query, TIME_TO_LIVE)? {
        None => Ok(Some(LIFE_SECONDS_USUAL)),
        Some((-1, _)) => Ok(None),
        Some((seconds, _)) if seconds >= 1 => Ok(Some(seconds)),
        Some((_, sent)) => {
            let reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.";
            Err(invalid_parameter(TIME_TO_LIVE, &sent, reason))
        }
    }
}

impl GetParameters {
    pub fn read(query: &Query<'_>, version: &str) -> Result<GetParameters, ServiceError> {
        let count_max = read_message_count(query)?;
        let seconds_max = match version < versions::LONG_MESSAGES {
            true => OLD_VISIBILITY_SECONDS_MAX,
            false => VISIBILITY_SECONDS_MAX,
        };
        let seconds = number_in(query, VISIBILITY, 1..=seconds_max)?.unwrap_or(VISIBILITY_SECONDS_USUAL);
        Ok(GetParameters { count_max, visibility: duration(seconds) })
    }
}

/// How many messages Get Messages and Peek Messages return at most.
pub fn read_message_count(query: &Query<'_>) -> Result<usize, ServiceError> {
    Ok(number_in(query, COUNT, MESSAGE_COUNT)?.unwrap_or(1) as usize)
}

impl UpdateParameters {
    pub fn read(query: &Query<'_>) -> Result<UpdateParameters, ServiceError> {
        let receipt = read_receipt(query)?;
        // The live service refuses a request without it, but not as one with a missing parameter.
        let seconds = number_in(query, VISIBILITY, 0..=VISIBILITY_SECONDS_MAX)?;
        let seconds = seconds.ok_or_else(|| invalid_parameter(VISIBILITY, "", ""))?;
        Ok(UpdateParameters { receipt, visibility: duration(seconds) })
    }
}

/// The receipt that Update Message and Delete Message need. `None` if it is well-formed and matches no message.
pub fn read_receipt(query: &Query<'_>) -> Result<Option<PopReceipt>, ServiceError> {
    let raw = query.raw(RECEIPT).ok_or_else(|| missing_parameter(RECEIPT))?;
    // Receipts have no spaces, so an unescaped `+` can only mean itself.
    let sent = percent_decode(raw);
    let receipt = sent.as_deref().and_then(PopReceipt::parse);
    receipt.ok_or_else(|| {
        invalid_parameter(RECEIPT, sent.as_deref().unwrap_or(raw), "Invalid pop receipt format")
    })
}

impl ListParameters {
    pub fn read(query: &Query<'_>, account: &AccountName) -> Result<ListParameters, ServiceError> {
        let count_max = read_count_max(query)?;
        let mut include_metadata = false;
        for include in read_include(query)?.into_iter().take(1) {
            for item in include.split(',').filter(|item| !item.is_empty()) {
                if !item.eq_ignore_ascii_case("metadata") {
                    return Err(invalid_parameter("include", &include, ""));
                }
                include_metadata = true;
            }
        }
        let marker = read_text(query, "marker")?.filter(|marker| !marker.is_empty());
        let marker = marker
            .map(|marker| NameMarker::read(marker, account).ok_or(ErrorCode::InvalidMarker))
            .transpose()?;
        Ok(ListParameters { prefix: read_text(query, "prefix")?, marker, count_max, include_metadata })
    }

    /// The page begins with this name, or with the next one that there is.
    pub fn first_name(&self) -> Option<&str> {
        self.marker.as_ref().map(NameMarker::name)
    }

    /// How many queues a page has at most.
    pub fn page_count(&self) -> usize {
        self.count_max.unwrap_or(PAGE_COUNT_USUAL)
    }
}

fn duration(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "2025-11-05";

    /// The code and the elements of a refusal, on one line.
    fn refusal(error: &ServiceError) -> String {
        let elements: Vec<String> = error.elements().map(|(_, value)| value.to_owned()).collect();
        format!("{} {}", error.code.name(), elements.join("|"))
    }

    #[track_caller]
    fn check_put(version: &str, query: &str, expected: Result<(u64, Option<u64>), &str>) {
        let read = PutParameters::read(&Query::split(query), version);
        let found = read.map(|put| (put.visibility.as_secs(), put.time_to_live.map(|time| time.as_secs())));
        let found = found.map_err(|error| refusal(&error));
        assert_eq!(found, expected.map_err(str::to_owned), "{query}");
    }

    #[test]
    fn a_message_is_hidden_for_less_than_its_life() {
        check_put(NEW, "", Ok((0, Some(604_800))));
        check_put(NEW, "visibilitytimeout=0&messagettl=-1", Ok((0, None)));
        check_put(NEW, "visibilitytimeout=604800&messagettl=-1", Ok((604_800, None)));
        check_put(NEW, "visibilitytimeout=4&messagettl=5", Ok((4, Some(5))));
        check_put(NEW, "messagettl=9007199254740991", Ok((0, Some(9_007_199_254_740_991))));
        check_put(NEW, "messagettl=99999999999999999999", Ok((0, Some(i64::MAX as u64))));
        let reason = "messagettl must be greater than visibilitytimeout";
        for (query, visibility) in
            [("visibilitytimeout=5&messagettl=5", 5), ("visibilitytimeout=604800", 604_800)]
        {
            let expected = format!("InvalidQueryParameterValue visibilitytimeout|{visibility}|{reason}");
            check_put(NEW, query, Err(&expected));
        }
        for bad in ["-1", "604801", "99999999999999999999"] {
            let expected = format!("OutOfRangeQueryParameterValue visibilitytimeout|{bad}|0|604800");
            check_put(NEW, &format!("visibilitytimeout={bad}"), Err(&expected));
        }
        for bad in ["0", "-2"] {
            let reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.";
            let expected = format!("InvalidQueryParameterValue messagettl|{bad}|{reason}");
            check_put(NEW, &format!("messagettl={bad}"), Err(&expected));
        }
        for bad in ["x", "", "1.5", "-", "1e3"] {
            let expected = format!("InvalidQueryParameterValue messagettl|{bad}|");
            check_put(NEW, &format!("messagettl={bad}"), Err(&expected));
        }
        check_put(NEW, "messagettl=%zz", Err("InvalidQueryParameterValue messagettl|%zz|"));
    }

    #[test]
    fn old_messages_lived_for_seven_days_and_were_not_put_hidden() {
        let old = "2016-05-31";
        check_put(old, "messagettl=604800", Ok((0, Some(604_800))));
        for bad in ["604801", "-1", "0"] {
            let expected = format!("OutOfRangeQueryParameterValue messagettl|{bad}|1|604800");
            check_put(old, &format!("messagettl={bad}"), Err(&expected));
        }
        check_put("2009-09-19", "visibilitytimeout=9&messagettl=5", Ok((0, Some(5))));
    }

    #[track_caller]
    fn check_get(version: &str, query: &str, expected: Result<(usize, u64), &str>) {
        let read = GetParameters::read(&Query::split(query), version);
        let found = read.map(|get| (get.count_max, get.visibility.as_secs()));
        assert_eq!(found.map_err(|error| refusal(&error)), expected.map_err(str::to_owned), "{query}");
    }

    #[test]
    fn messages_are_taken_for_at_least_a_second() {
        check_get(NEW, "", Ok((1, 30)));
        check_get(NEW, "numofmessages=32&visibilitytimeout=604800", Ok((32, 604_800)));
        check_get(NEW, "numofmessages=100", Err("OutOfRangeQueryParameterValue numofmessages|100|1|32"));
        check_get(NEW, "numofmessages=0", Err("OutOfRangeQueryParameterValue numofmessages|0|1|32"));
        check_get(NEW, "numofmessages=x", Err("InvalidQueryParameterValue numofmessages|x|"));
        check_get(
            NEW,
            "visibilitytimeout=0",
            Err("OutOfRangeQueryParameterValue visibilitytimeout|0|1|604800"),
        );
        check_get("2009-09-19", "visibilitytimeout=7200", Ok((1, 7_200)));
        check_get(
            "2009-09-19",
            "visibilitytimeout=7201",
            Err("OutOfRangeQueryParameterValue visibilitytimeout|7201|1|7200"),
        );
    }

    #[test]
    fn an_update_needs_a_receipt_and_a_time() {
        let check = |query: &str, expected: Result<(bool, u64), &str>| {
            let read = UpdateParameters::read(&Query::split(query));
            let found = read.map(|update| (update.receipt.is_some(), update.visibility.as_secs()));
            assert_eq!(found.map_err(|error| refusal(&error)), expected.map_err(str::to_owned), "{query}");
        };
        let ours = PopReceipt { visible_ticks: 1, version_ticks: 2 };
        check(&format!("popreceipt={ours}&visibilitytimeout=0"), Ok((true, 0)));
        check("popreceipt=AgAAAAMAAAAAAAAAHFrsOFDq2AE%3D&visibilitytimeout=9", Ok((false, 9)));
        check("popreceipt=ab+/&visibilitytimeout=9", Ok((false, 9)));
        check("visibilitytimeout=9", Err("MissingRequiredQueryParameter popreceipt"));
        check(
            "popreceipt=invalid&visibilitytimeout=9",
            Err("InvalidQueryParameterValue popreceipt|invalid|Invalid pop receipt format"),
        );
        check(&format!("popreceipt={ours}"), Err("InvalidQueryParameterValue visibilitytimeout||"));
        check(
            &format!("popreceipt={ours}&visibilitytimeout=-1"),
            Err("OutOfRangeQueryParameterValue visibilitytimeout|-1|0|604800"),
        );
    }

    #[test]
    fn a_list_has_a_prefix_a_marker_and_a_bound() {
        let account = AccountName::parse("storagename").unwrap();
        let read = |query: &str| {
            ListParameters::read(&Query::split(query), &account).map_err(|error| refusal(&error))
        };
        let plain = read("").unwrap();
        assert_eq!((plain.page_count(), plain.include_metadata, plain.prefix), (5_000, false, None));
        let full = read("prefix=a%62&marker=%2Fstoragename%2Fabc&maxresults=3&include=metadata").unwrap();
        assert_eq!((full.prefix.as_deref(), full.page_count(), full.include_metadata), (Some("ab"), 3, true));
        let marker = full.marker.unwrap();
        assert_eq!((&*marker.text, marker.name()), ("/storagename/abc", "abc"));
        assert_eq!(NameMarker::write(&account, "abc"), marker.text);
        assert_eq!(read("marker=abc").unwrap().marker.unwrap().name(), "abc");
        assert_eq!(read("marker=&include=").unwrap().marker, None);
        assert_eq!(read("maxresults=5001").unwrap().count_max, Some(5_000));
        for bad in ["%2F", "%2Fother%2Fabc", "%2Fstoragename%2F", "%2Fstoragename", "a%2Fb"] {
            assert_eq!(read(&format!("marker={bad}")), Err("InvalidMarker ".to_owned()), "{bad}");
        }
        let check = |query: &str, expected: &str| assert_eq!(read(query), Err(expected.to_owned()));
        check("maxresults=0", "OutOfRangeQueryParameterValue maxresults|0|1|5000");
        check("maxresults=x", "InvalidQueryParameterValue maxresults|x|");
        check("include=acl", "InvalidQueryParameterValue include|acl|");
    }
}
