//! The root of a service port, asked by a browser and by everybody else.

use testkit::{RawClient, Request, Response};

use crate::stage::{House, Options, start};

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nUser-Agent: Mozilla/5.0\r\n";

fn ask(house: &House, path: &str, headers: &str) -> Response {
    let text = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", house.table);
    RawClient::connect(house.table).unwrap().exchange(text.as_bytes()).unwrap()
}

#[test]
fn a_browser_is_told_what_this_is_and_where_the_explorer_is() {
    let house = start(Options::default());
    let page = ask(&house, "/", BROWSER).expect(200);
    assert_eq!(page.required("content-type"), "text/html; charset=utf-8");
    assert!(page.required("content-security-policy").starts_with("default-src 'none'"));
    assert!(page.text().contains("Table service"), "{}", page.text());
    assert!(page.text().contains(&format!("<a href=\"http://{}/\">", house.admin_addr)), "{}", page.text());
}

#[test]
fn programs_see_no_difference() {
    let house = start(Options::default());
    let refused = ask(&house, "/", "");
    assert_eq!(refused.status, 404);
    assert!(refused.text().contains("ResourceNotFound"), "{}", refused.text());
    for headers in [
        "Accept: application/json\r\n".to_owned(),
        "Accept: */*\r\n".to_owned(),
        format!("{BROWSER}x-ms-version: 2019-02-02\r\n"),
        format!("{BROWSER}x-ms-date: Wed, 01 Jan 2025 00:00:00 GMT\r\n"),
        format!("{BROWSER}Authorization: SharedKey devstoreaccount1:AAAA\r\n"),
    ] {
        let other = ask(&house, "/", &headers);
        assert_ne!(other.status, 200, "{headers}");
        assert!(!other.text().contains("<html"), "{headers}");
    }
    for path in ["/?comp=list", "/devstoreaccount1", "/devstoreaccount1/people()", "//"] {
        let other = ask(&house, path, BROWSER);
        assert!(!other.text().contains("<html"), "{path}");
    }
    house.tables(Request::get("/Tables").header("Accept", "text/html")).expect(415);
}
