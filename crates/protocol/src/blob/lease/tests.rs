//! Every cell of the two tables in section 11 of the specification.

use super::*;

const A: Guid = Guid([0xA; 16]);
const B: Guid = Guid([0xB; 16]);
const C: Guid = Guid([0xC; 16]);
const NEW: Guid = Guid([0xE; 16]);

fn now() -> DateTime {
    DateTime::parse("2023-01-27T22:17:27Z").unwrap()
}

/// The states in the order of the tables' columns. The lease is one of 30 seconds, of which 20 remain.
fn states() -> [Lease; 5] {
    let until = after(now(), 20);
    [
        Lease::Available,
        Lease::Leased { id: A, duration: LeaseDuration::Fixed(30), until: Some(until) },
        Lease::Breaking { id: A, until },
        Lease::Broken { id: A },
        Lease::Expired { id: A, duration: LeaseDuration::Fixed(30) },
    ]
}

fn shown(lease: Lease) -> String {
    let id = match lease.id() {
        Some(A) => "A",
        Some(B) => "B",
        Some(C) => "C",
        Some(NEW) => "new",
        Some(_) => "?",
        None => return lease.state().to_owned(),
    };
    let seconds = match lease {
        Lease::Leased { until: Some(until), .. } | Lease::Breaking { until, .. } => {
            format!(" {}", (until.ticks() - now().ticks()) / TICKS_PER_SECOND)
        }
        _ => String::new(),
    };
    format!("{}({id}){seconds}", lease.state())
}

/// One row of the first table: the action, and what it gives in each state. Codes are shortened.
#[track_caller]
fn check_row(request: LeaseRequest, expected: [&str; 5]) {
    for (state, expected) in states().into_iter().zip(expected) {
        let found = match state.act(request, Leasable::Blob, now(), NEW) {
            Ok(outcome) => {
                let time =
                    outcome.break_seconds.map(|seconds| format!(" time {seconds}")).unwrap_or_default();
                format!("{}{time}", shown(outcome.lease))
            }
            Err(error) => {
                assert_eq!(error.code.status(), 409);
                error
                    .code
                    .name()
                    .trim_start_matches("Lease")
                    .trim_end_matches("WithLeaseOperation")
                    .to_owned()
            }
        };
        assert_eq!(found, expected, "{request:?} of {}", state.state());
    }
}

#[test]
fn acquire() {
    let acquire = |proposed| LeaseRequest::Acquire { duration: LeaseDuration::Fixed(60), proposed };
    let new = "leased(new) 60";
    check_row(acquire(None), [new, "AlreadyPresent", "AlreadyPresent", new, new]);
    let a = "leased(A) 60";
    check_row(acquire(Some(A)), [a, a, "IsBreakingAndCannotBeAcquired", a, a]);
    let b = "leased(B) 60";
    check_row(acquire(Some(B)), [b, "AlreadyPresent", "AlreadyPresent", b, b]);
}

#[test]
fn renew() {
    let broken = "IsBrokenAndCannotBeRenewed";
    check_row(LeaseRequest::Renew { id: A }, ["IdMismatch", "leased(A) 30", broken, broken, "leased(A) 30"]);
    check_row(LeaseRequest::Renew { id: B }, ["IdMismatch"; 5]);
}

#[test]
fn change() {
    let change = |id, proposed| LeaseRequest::Change { id, proposed };
    let breaking = "IsBreakingAndCannotBeChanged";
    let none = "NotPresent";
    check_row(change(A, B), [none, "leased(B) 20", breaking, none, none]);
    check_row(change(B, A), [none, "leased(A) 20", breaking, none, none]);
    check_row(change(B, C), [none, "IdMismatch", "IdMismatch", none, none]);
}

#[test]
fn release() {
    let free = "available";
    check_row(LeaseRequest::Release { id: A }, ["IdMismatch", free, free, free, free]);
    check_row(LeaseRequest::Release { id: B }, ["IdMismatch"; 5]);
}

#[test]
fn break_off() {
    let broken = "broken(A) time 0";
    let row = |period, leased, breaking| {
        check_row(LeaseRequest::Break { period }, ["NotPresent", leased, breaking, broken, broken]);
    };
    let remaining = "breaking(A) 20 time 20";
    row(None, remaining, remaining);
    row(Some(0), broken, broken);
    row(Some(5), "breaking(A) 5 time 5", "breaking(A) 5 time 5");
    row(Some(60), remaining, remaining);

    let infinite = Lease::Leased { id: A, duration: LeaseDuration::Infinite, until: None };
    for (period, expected, seconds) in
        [(None, "broken(A)", 0), (Some(0), "broken(A)", 0), (Some(7), "breaking(A) 7", 7)]
    {
        let request = LeaseRequest::Break { period };
        let outcome = infinite.act(request, Leasable::Blob, now(), NEW).unwrap();
        assert_eq!((&*shown(outcome.lease), outcome.break_seconds), (expected, Some(seconds)));
        assert_eq!((outcome.status, outcome.id), (202, None));
    }
}

#[test]
fn answers_have_the_id_and_the_status_of_their_action() {
    let leased = states()[1];
    let act = |request| leased.act(request, Leasable::Blob, now(), NEW).unwrap();
    let acquire = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: Some(A) };
    assert_eq!(
        (act(acquire).status, act(acquire).id, act(acquire).lease.duration()),
        (201, Some(A), Some("infinite"))
    );
    assert_eq!(
        (act(LeaseRequest::Renew { id: A }).status, act(LeaseRequest::Renew { id: A }).id),
        (200, Some(A))
    );
    let change = act(LeaseRequest::Change { id: A, proposed: B });
    assert_eq!((change.status, change.id), (200, Some(B)));
    let release = act(LeaseRequest::Release { id: A });
    assert_eq!((release.status, release.id), (200, None));
}

#[test]
fn time_passes_by_itself() {
    let [_, leased, breaking, broken, expired] = states();
    let (before, end) = (after(now(), 19), after(now(), 20));
    assert_eq!((leased.at(before), leased.at(end)), (leased, expired));
    assert_eq!((breaking.at(before), breaking.at(end)), (breaking, broken));
    let infinite = Lease::Leased { id: A, duration: LeaseDuration::Infinite, until: None };
    assert_eq!(infinite.at(DateTime::MAX), infinite);
    // A part of a second still counts as one.
    let soon = DateTime::from_ticks(now().ticks() + 1);
    let outcome = leased.act(LeaseRequest::Break { period: None }, Leasable::Blob, soon, NEW).unwrap();
    assert_eq!(outcome.break_seconds, Some(20));
    assert_eq!(
        states().map(|state| (state.state(), state.status(), state.duration())),
        [
            ("available", "unlocked", None),
            ("leased", "locked", Some("fixed")),
            ("breaking", "locked", None),
            ("broken", "unlocked", None),
            ("expired", "unlocked", None),
        ]
    );
}

/// One row of the second table, for blobs and for containers.
#[track_caller]
fn check_use(lease_use: LeaseUse, id: Option<Guid>, expected: [&str; 5]) {
    for leasable in [Leasable::Blob, Leasable::Container] {
        for (state, expected) in states().into_iter().zip(expected) {
            let found = match state.check_use(lease_use, id, leasable) {
                Ok(after) if after == state => "ok".to_owned(),
                Ok(after) => format!("ok, {}", after.state()),
                Err(error) => {
                    assert_eq!(error.code.status(), 412);
                    let (operation, noun) = match leasable {
                        Leasable::Blob => ("WithBlobOperation", "blob"),
                        Leasable::Container => ("WithContainerOperation", "container"),
                    };
                    assert!(error.message().contains(noun), "{error}");
                    error.code.name().trim_start_matches("Lease").trim_end_matches(operation).to_owned()
                }
            };
            assert_eq!(found, expected, "{lease_use:?} {id:?} of {}", state.state());
        }
    }
}

#[test]
fn writes_need_the_id() {
    check_use(LeaseUse::Write, Some(A), ["NotPresent", "ok", "ok", "Lost", "Lost"]);
    check_use(LeaseUse::Write, Some(B), ["NotPresent", "IdMismatch", "IdMismatch", "Lost", "Lost"]);
    check_use(LeaseUse::Write, None, ["ok", "IdMissing", "IdMissing", "ok, available", "ok, available"]);
}

#[test]
fn reads_need_no_id_but_refuse_a_wrong_one() {
    check_use(LeaseUse::Read, Some(A), ["NotPresent", "ok", "ok", "Lost", "Lost"]);
    check_use(LeaseUse::Read, Some(B), ["NotPresent", "IdMismatch", "IdMismatch", "Lost", "Lost"]);
    check_use(LeaseUse::Read, None, ["ok"; 5]);
}

#[test]
fn a_write_after_the_end_keeps_the_old_holder_from_renewing() {
    let expired = states()[4];
    let renew = LeaseRequest::Renew { id: A };
    assert!(expired.act(renew, Leasable::Blob, now(), NEW).is_ok());
    let written = expired.check_use(LeaseUse::Write, None, Leasable::Blob).unwrap();
    let error = written.act(renew, Leasable::Blob, now(), NEW).unwrap_err();
    assert_eq!(error.code, ErrorCode::LeaseIdMismatchWithLeaseOperation);
}

#[test]
fn refusals_name_the_resource() {
    let leased = states()[1];
    let message =
        |leasable| leased.check_use(LeaseUse::Write, None, leasable).unwrap_err().message().to_owned();
    assert_eq!(
        message(Leasable::Blob),
        "There is currently a lease on the blob and no lease ID was specified in the request."
    );
    assert_eq!(
        message(Leasable::Container),
        "There is currently a lease on the container and no lease ID was specified in the request."
    );
    let error =
        Lease::Available.act(LeaseRequest::Release { id: A }, Leasable::Container, now(), NEW).unwrap_err();
    assert_eq!(error.message(), "The lease ID specified did not match the lease ID for the container.");
    assert_eq!(leased.check_copy_destination(), Err(ErrorCode::InfiniteLeaseDurationRequired));
    assert_eq!(Lease::Available.check_copy_destination(), Ok(()));
}

#[test]
fn requests_are_read_from_headers() {
    let read = |action, headers: &[(&'static str, &'static str)]| {
        LeaseRequest::read(action, &headers.iter().copied().collect()).map_err(|error| {
            let elements: Vec<&str> = error.elements().map(|(_, value)| value).collect();
            format!("{} {}", error.code.name(), elements.join("|"))
        })
    };
    let proposed = (PROPOSED_ID, "ca761232ed4211cebacd00aa0057b223");
    let Ok(LeaseRequest::Acquire { duration, proposed: Some(id) }) =
        read(LeaseAction::Acquire, &[(LEASE_DURATION, "15"), proposed])
    else {
        panic!("it is a request to acquire")
    };
    assert_eq!(
        (duration, &*id.to_string()),
        (LeaseDuration::Fixed(15), "ca761232-ed42-11ce-bacd-00aa0057b223")
    );
    let infinite = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: None };
    assert_eq!(read(LeaseAction::Acquire, &[(LEASE_DURATION, "-1")]), Ok(infinite));
    for bad in ["14", "61", "0", "-2", "x", "99999999999999999999"] {
        let expected = format!("InvalidHeaderValue x-ms-lease-duration|{bad}");
        assert_eq!(read(LeaseAction::Acquire, &[(LEASE_DURATION, bad)]), Err(expected));
    }
    let missing = |name: &str| Err(format!("MissingRequiredHeader {name}"));
    assert_eq!(read(LeaseAction::Acquire, &[]), missing("x-ms-lease-duration"));
    assert_eq!(read(LeaseAction::Renew, &[]), missing("x-ms-lease-id"));
    assert_eq!(read(LeaseAction::Release, &[]), missing("x-ms-lease-id"));
    let id = (LEASE_ID, "{dbff6226-33d5-49c8-8cef-e8a83b0686a8}");
    assert_eq!(read(LeaseAction::Change, &[id]), missing("x-ms-proposed-lease-id"));
    assert!(read(LeaseAction::Change, &[id, proposed]).is_ok());
    let bad = Err("InvalidHeaderValue x-ms-lease-id|mine".to_owned());
    assert_eq!(read(LeaseAction::Renew, &[(LEASE_ID, "mine")]), bad);
    assert_eq!(read(LeaseAction::Break, &[]), Ok(LeaseRequest::Break { period: None }));
    assert_eq!(
        read(LeaseAction::Break, &[(BREAK_PERIOD, "60")]),
        Ok(LeaseRequest::Break { period: Some(60) })
    );
    let bad = Err("InvalidHeaderValue x-ms-lease-break-period|61".to_owned());
    assert_eq!(read(LeaseAction::Break, &[(BREAK_PERIOD, "61")]), bad);
}
