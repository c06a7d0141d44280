//! The truth tables of section 10 of the specification, each against a rule written down a second time.

use super::*;

const TAG: BlobETag = BlobETag(0x8DA);

/// A header that is absent, met, or not met.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Given {
    Absent,
    Met,
    Unmet,
}
use Given::{Absent, Met, Unmet};

fn at(second: u64) -> DateTime {
    DateTime::from_ticks(DateTime::UNIX_EPOCH.ticks() + second * 10_000_000 + 9_999_999)
}

fn conditions(matching: Given, none: Given, modified: Given, unmodified: Given) -> Conditions {
    let listed = |has: bool| ETags::Listed(vec![has.then_some(TAG)]);
    let pick = |given: Given| match given {
        Absent => None,
        given => Some(given == Met),
    };
    Conditions {
        if_match: pick(matching).map(listed),
        if_none_match: pick(none).map(|met| listed(!met)),
        // The resource was modified in second 100.
        if_modified_since: pick(modified).map(|met| if met { at(99) } else { at(100) }),
        if_unmodified_since: pick(unmodified).map(|met| if met { at(100) } else { at(99) }),
        if_tags: None,
    }
}

fn every(mut look: impl FnMut([Given; 4], &Conditions)) {
    let all = [Absent, Met, Unmet];
    for matching in all {
        for none in all {
            for modified in all {
                for unmodified in all {
                    let given = [matching, none, modified, unmodified];
                    look(given, &conditions(matching, none, modified, unmodified));
                }
            }
        }
    }
}

fn with_state<T>(look: impl FnOnce(&ConditionState<'_>) -> T) -> T {
    let tags = Tags::read([("status", "done")]).unwrap();
    // The fraction of the second does not count.
    let last_modified = DateTime::from_ticks(DateTime::UNIX_EPOCH.ticks() + 100 * 10_000_000 + 1);
    look(&ConditionState { etag: TAG, last_modified, tags: &tags })
}

/// Section 10.1.
fn read_rule([matching, none, modified, unmodified]: [Given; 4]) -> Option<bool> {
    if matching == Unmet || unmodified == Unmet {
        return Some(true);
    }
    if (none == Unmet && modified != Met) || (modified == Unmet && none != Met) {
        return Some(false);
    }
    None
}

#[test]
fn reads_are_refused_with_412_or_304() {
    with_state(|state| {
        every(|given, conditions| {
            let expected = |failed, not_modified| match read_rule(given) {
                None => Ok(()),
                Some(true) => Err(failed),
                Some(false) => Err(not_modified),
            };
            let check = |purpose| conditions.check(purpose, Some(state));
            let (failed, same) = (ErrorCode::ConditionNotMet, ErrorCode::ConditionNotModified);
            assert_eq!(check(ConditionPurpose::Read), expected(failed, same), "{given:?}");
            let failed = ErrorCode::SourceConditionNotMet;
            assert_eq!(check(ConditionPurpose::CopySource), expected(failed, failed), "{given:?}");
            let same = ErrorCode::CopySourceNotModified;
            assert_eq!(check(ConditionPurpose::UrlSource), expected(failed, same), "{given:?}");
        });
    });
    assert_eq!(
        (ErrorCode::ConditionNotModified.status(), ErrorCode::ConditionNotModified.name()),
        (304, "ConditionNotMet")
    );
    assert_eq!(ErrorCode::ConditionNotMet.status(), 412);
    assert_eq!(
        (ErrorCode::CopySourceNotModified.status(), ErrorCode::CopySourceNotModified.name()),
        (304, "CannotVerifyCopySource")
    );
}

/// Section 10.2.
#[test]
fn writes_take_one_header_or_one_of_two_pairs() {
    with_state(|state| {
        every(|given, conditions| {
            let [matching, none, modified, unmodified] = given;
            let count = given.iter().filter(|given| **given != Absent).count();
            let is_pair = count == 2
                && ((none != Absent && modified != Absent) || (matching != Absent && unmodified != Absent));
            let expected = if count > 1 && !is_pair {
                Err(ErrorCode::MultipleConditionHeadersNotSupported)
            } else {
                // Of a pair, the ETag decides.
                let decisive =
                    [matching, none, modified, unmodified].into_iter().find(|given| *given != Absent);
                if decisive == Some(Unmet) { Err(ErrorCode::ConditionNotMet) } else { Ok(()) }
            };
            for purpose in [ConditionPurpose::Change, ConditionPurpose::Create { has_lease: false }] {
                assert_eq!(conditions.check(purpose, Some(state)), expected, "{given:?}");
            }
            // Of a blob that is not there, everything is true but that it matches.
            let expected = match expected {
                Err(ErrorCode::MultipleConditionHeadersNotSupported) => expected,
                _ if matching != Absent => Err(ErrorCode::ConditionNotMet),
                _ => Ok(()),
            };
            assert_eq!(
                conditions.check(ConditionPurpose::Create { has_lease: false }, None),
                expected,
                "{given:?}"
            );
        });
    });
}

fn read(headers: &[(&'static str, &'static str)]) -> Conditions {
    Conditions::read(&headers.iter().copied().collect()).unwrap()
}

#[test]
fn wildcards_mean_that_the_blob_is_there() {
    let none = read(&[("If-None-Match", "*")]);
    let any = read(&[("If-Match", "*")]);
    with_state(|state| {
        assert_eq!(none.check(ConditionPurpose::Read, Some(state)), Err(ErrorCode::UnsatisfiableCondition));
        let create = ConditionPurpose::Create { has_lease: false };
        assert_eq!(none.check(create, Some(state)), Err(ErrorCode::BlobAlreadyExists));
        assert_eq!(none.check(create, None), Ok(()));
        assert_eq!(none.check(ConditionPurpose::Create { has_lease: true }, Some(state)), Ok(()));
        assert_eq!(none.check(ConditionPurpose::Change, Some(state)), Ok(()));
        for purpose in [ConditionPurpose::Read, ConditionPurpose::Change, create] {
            assert_eq!(any.check(purpose, Some(state)), Ok(()));
        }
        assert_eq!(any.check(create, None), Err(ErrorCode::ConditionNotMet));
    });
}

#[test]
fn several_tags_are_for_reads() {
    let listed = read(&[("if-match", "\"0x1\", \"0x8DA\"")]);
    let excluded = read(&[("if-none-match", "0x1,0x8DA")]);
    with_state(|state| {
        assert_eq!(listed.check(ConditionPurpose::Read, Some(state)), Ok(()));
        assert_eq!(excluded.check(ConditionPurpose::Read, Some(state)), Err(ErrorCode::ConditionNotModified));
        for conditions in [&listed, &excluded] {
            let refused = Err(ErrorCode::MultipleConditionHeadersNotSupported);
            assert_eq!(conditions.check(ConditionPurpose::Change, Some(state)), refused);
        }
    });
    let many = "0x1,".repeat(100);
    let headers: Headers<'_> = [("if-match", &*many)].into_iter().collect();
    assert_eq!(Conditions::read(&headers).unwrap_err().code, ErrorCode::InvalidHeaderValue);
}

#[test]
fn dates_that_cannot_be_read_are_ignored() {
    let ignored = read(&[("If-Unmodified-Since", ""), ("If-Modified-Since", "soon"), ("If-Match", " ")]);
    assert_eq!(ignored, Conditions::default());
    let date = read(&[("If-Modified-Since", "Fri, 27 Jan 2023 22:17:27 GMT")]);
    assert_eq!(date.if_modified_since, DateTime::parse("2023-01-27T22:17:27Z"));
    let source: Headers<'_> = [("x-ms-source-if-match", "0x8DA")].into_iter().collect();
    assert!(Conditions::read_source(&source).unwrap().if_match.is_some());
    assert_eq!(Conditions::read(&source).unwrap(), Conditions::default());
}

#[test]
fn tags_are_a_condition_too() {
    let done = read(&[("x-ms-if-tags", "\"status\" = 'done'")]);
    let open = read(&[("x-ms-if-tags", "\"status\" = 'open'"), ("if-match", "*")]);
    with_state(|state| {
        for purpose in
            [ConditionPurpose::Read, ConditionPurpose::Change, ConditionPurpose::Create { has_lease: false }]
        {
            assert_eq!(done.check(purpose, Some(state)), Ok(()));
            assert_eq!(open.check(purpose, Some(state)), Err(ErrorCode::ConditionNotMet));
        }
        assert_eq!(open.tags_only().if_match, None);
    });
    let bad: Headers<'_> = [("x-ms-if-tags", "status is done")].into_iter().collect();
    let error = Conditions::read(&bad).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
    assert_eq!(error.elements().next(), Some(("HeaderName", "x-ms-if-tags")));
}

#[test]
fn containers_take_dates_and_no_tags() {
    let date = ("If-Modified-Since", "Fri, 27 Jan 2023 22:17:27 GMT");
    let other = ("If-Unmodified-Since", "Fri, 27 Jan 2023 22:17:27 GMT");
    let read = |headers: &[(&'static str, &'static str)], action| {
        let conditions = Conditions::read_container(&headers.iter().copied().collect(), action);
        let conditions = conditions.map_err(|error| error.code)?;
        Ok((conditions.if_modified_since.is_some(), conditions.if_unmodified_since.is_some()))
    };
    assert_eq!(read(&[date], ContainerAction::Delete), Ok((true, false)));
    assert_eq!(read(&[other], ContainerAction::SetAcl), Ok((false, true)));
    assert_eq!(read(&[date, other], ContainerAction::SetMetadata), Ok((true, false)));
    assert_eq!(read(&[date, other], ContainerAction::GetProperties), Ok((false, false)));
    let refused = Err(ErrorCode::ConditionHeadersNotSupported);
    assert_eq!(read(&[("If-Match", "*")], ContainerAction::Delete), refused);
}

#[test]
fn appends_pages_and_tiers_have_conditions_of_their_own() {
    let headers: Headers<'_> = [
        ("x-ms-blob-condition-appendpos", "4096"),
        ("x-ms-blob-condition-maxsize", "5000"),
        ("x-ms-if-sequence-number-le", "7"),
        ("x-ms-if-sequence-number-lt", "7"),
        ("x-ms-access-tier-if-modified-since", "Fri, 27 Jan 2023 22:17:27 GMT"),
    ]
    .into_iter()
    .collect();
    let append = AppendConditions::read(&headers).unwrap();
    assert_eq!(append.check(4096, 904), Ok(()));
    assert_eq!(append.check(4096, 905), Err(ErrorCode::MaxBlobSizeConditionNotMet));
    assert_eq!(append.check(6000, 0), Err(ErrorCode::MaxBlobSizeConditionNotMet));
    assert_eq!(append.check(0, 1), Err(ErrorCode::AppendPositionConditionNotMet));
    let sequence = SequenceConditions::read(&headers).unwrap();
    assert_eq!(sequence.check(6), Ok(()));
    assert_eq!(sequence.check(7), Err(ErrorCode::SequenceNumberConditionNotMet));
    assert_eq!(SequenceConditions { equal: Some(3), ..SequenceConditions::default() }.check(3), Ok(()));
    let tier = TierConditions::read(&headers);
    assert_eq!(tier.check(DateTime::parse("2023-01-27T22:17:28Z").unwrap()), Ok(()));
    let same = tier.check(DateTime::parse("2023-01-27T22:17:27.9Z").unwrap());
    assert_eq!(same, Err(ErrorCode::ConditionNotMet));
}
