//! Sources: which keys they ask for, and what they take from the answers before.

use std::collections::HashSet;

use super::*;

fn text(requests: &mut dyn Requests, connection: usize) -> String {
    let mut out = Vec::new();
    requests.next(connection, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn key(request: &str) -> &str {
    request.split_once(r#""RowKey":""#).unwrap().1.split('"').next().unwrap()
}

#[test]
fn inserts_never_repeat_a_key_nor_meet_a_loaded_one() {
    let signer = Signer::new().unwrap();
    for loaded in [0, 100, 10_000_000] {
        let mut inserts = Inserts::new(signer.insert("t"), loaded, &Counter::new(1.into()));
        let mut seen = HashSet::new();
        for _ in 0..10_000 {
            let request = text(&mut *inserts, 0);
            let key = key(&request).to_owned();
            assert!(loaded == 0 || !key.ends_with("00000000"), "{key}");
            assert!(seen.insert(key));
        }
    }
}

#[test]
fn loading_covers_a_shape_and_stops() {
    let shape = TableShape { entities: 1000, partitions: 5 };
    let mut batches = Batches::loading(&Signer::new().unwrap(), "t", shape);
    let mut out = Vec::new();
    let mut last = String::new();
    let mut count = 0;
    while batches.next(0, &mut out).is_some() {
        count += 1;
        last = String::from_utf8(out.clone()).unwrap();
    }
    assert_eq!((count, batches.sent()), (10, 1000));
    assert!(last.contains(r#""PartitionKey":"p004","RowKey":"0000099900000000""#), "{last}");
    assert!(!last.contains("p003"));
}

#[test]
fn a_conditional_merge_sends_the_etag_of_the_last_one() {
    let rows = (0..128).map(|row| (format!("{row} If-Match: ").into_bytes(), b"\r\n".to_vec())).collect();
    let mut merges = Merges::new(rows, true);
    assert_eq!(text(&mut *merges, 3), "3 If-Match: *\r\n");
    merges.answered(3, b"HTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\n\r\n");
    assert_eq!(text(&mut *merges, 3), "67 If-Match: *\r\n");
    assert_eq!(text(&mut *merges, 3), "3 If-Match: W/\"1\"\r\n");
    assert_eq!(text(&mut *merges, 4), "4 If-Match: *\r\n");
}

#[test]
fn connections_never_share_a_conditional_row() {
    let rows = (0..512).map(|row| (format!("{row} ").into_bytes(), Vec::new())).collect();
    let mut merges = Merges::new(rows, true);
    let mut owners = std::collections::HashMap::new();
    for _ in 0..50 {
        for connection in 0..64 {
            let owner = *owners.entry(text(&mut *merges, connection)).or_insert(connection);
            assert_eq!(owner, connection);
        }
    }
}

#[test]
fn a_scan_follows_its_continuation_and_begins_again() {
    let mut scan = Scan::new([b"GET /t()?$top=1000 HTTP/1.1\r\n\r\n".to_vec()], false);
    assert_eq!(text(&mut *scan, 0), "GET /t()?$top=1000 HTTP/1.1\r\n\r\n");
    let is_done = scan.answered(
        0,
        b"HTTP/1.1 200 OK\r\nx-ms-continuation-NextPartitionKey: 1!4!cA=\r\nX-MS-Continuation-NextRowKey: b\r\n\r\nx-ms: y",
    );
    assert!(!is_done, "the query has more pages");
    assert_eq!(
        text(&mut *scan, 0),
        "GET /t()?$top=1000&NextPartitionKey=1!4!cA%3D&NextRowKey=b HTTP/1.1\r\n\r\n"
    );
    // Another connection is at a page of its own.
    assert_eq!(text(&mut *scan, 1), "GET /t()?$top=1000 HTTP/1.1\r\n\r\n");
    assert!(scan.answered(0, b"HTTP/1.1 200 OK\r\n\r\n"));
    assert_eq!(text(&mut *scan, 0), "GET /t()?$top=1000 HTTP/1.1\r\n\r\n");
}

#[test]
fn nine_of_ten_requests_of_a_mix_read() {
    let signer = Signer::new().unwrap();
    let inserts = Inserts::new(signer.insert("t"), 0, &Counter::new(1.into()));
    let mut mix = Mix::new(vec![b"GET".to_vec()], vec![b"PUT".to_vec()], inserts);
    let texts: Vec<String> = (0..1000).map(|_| text(&mut *mix, 0)).collect();
    let count = |verb: &str| texts.iter().filter(|text| text.starts_with(verb)).count();
    assert_eq!([count("GET"), count("PUT"), count("POST")], [900, 50, 50]);
}
