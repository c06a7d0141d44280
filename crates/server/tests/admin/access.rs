//! Who may use the admin port.

use crate::stage::{Options, start};

const TOKEN: &str = "a-token-that-nobody-knows";

#[test]
fn on_this_machine_everything_is_open_to_programs_and_to_its_own_page() {
    let house = start(Options::default());
    assert_eq!(house.get("/healthz").expect(200).text(), "ok\n");
    for path in ["/", "/metrics", "/api/status", "/api/live", "/api/advice"] {
        house.get(path).expect(200);
        let own = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", house.admin_addr);
        house.ask("GET", path, &own).expect(200);
        house.ask("HEAD", path, "").expect(200);
        house.ask("GET", path, "Origin: http://evil.example\r\n").expect(403);
        house.ask("GET", path, "Sec-Fetch-Site: cross-site\r\n").expect(403);
        house.ask("GET", path, "Host: evil.example\r\n").expect(403);
        house.ask("POST", path, "Content-Length: 0\r\n").expect(405);
    }
    house.get("/nothing").expect(404);
    house.get("/api/nothing").expect(404);
    house.get("/../Cargo.toml").expect(404);
}

#[test]
fn with_a_token_only_health_is_open() {
    let house = start(Options { token: Some(TOKEN.to_owned()), ..Options::default() });
    house.get("/healthz").expect(200);
    house.get("/readyz").expect(200);
    let all = [
        "/",
        "/metrics",
        "/api/status",
        "/api/live",
        "/api/advice",
        "/storage/table/devstoreaccount1/Tables",
    ];
    for path in all {
        let refused = house.get(path).expect(401);
        assert_eq!(refused.required("www-authenticate"), "Bearer");
        assert!(!refused.text().contains(TOKEN));
        house.ask("GET", path, "Authorization: Bearer wrong\r\n").expect(401);
        house.ask("GET", path, "Cookie: lazulite-admin=wrong\r\n").expect(401);
    }
    let with = format!("Authorization: Bearer {TOKEN}\r\n");
    for path in &all[..5] {
        house.ask("GET", path, &with).expect(200);
    }
    house.get("/?token=wrong").expect(401);
    house.get(&format!("/api/status?token={TOKEN}")).expect(401);
    let signed_in = house.get(&format!("/?token={TOKEN}")).expect(303);
    assert_eq!(signed_in.required("location"), "/");
    let cookie = signed_in.required("set-cookie");
    assert_eq!(cookie, format!("lazulite-admin={TOKEN}; Path=/; HttpOnly; SameSite=Strict"));
    let pair = cookie.split(';').next().unwrap();
    house.ask("GET", "/api/status", &format!("Cookie: {pair}\r\n")).expect(200);
    // The service refuses what is not signed; the admin port lets it through.
    house.ask("GET", all[5], &format!("Cookie: {pair}\r\n")).expect(404);
}

#[test]
fn the_page_comes_with_a_strict_policy() {
    let house = start(Options::default());
    let page = house.get("/").expect(200);
    assert_eq!(page.required("content-type"), "text/html; charset=utf-8");
    let policy = page.required("content-security-policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
    for path in ["/", "/metrics", "/api/status"] {
        let response = house.get(path);
        assert_eq!(response.required("x-content-type-options"), "nosniff");
        assert_eq!(response.required("referrer-policy"), "no-referrer");
    }
}

#[test]
fn the_status_tells_where_the_services_are_and_no_key() {
    let house = start(Options::default());
    let response = house.get("/api/status").expect(200);
    let status = response.json();
    assert_eq!((&status["version"], &status["ready"]), (&"1.2.3".into(), &true.into()));
    assert_eq!(status["services"][0]["address"], house.table.to_string());
    assert_eq!(status["services"][1]["url"], format!("http://{}", house.queue));
    assert_eq!(status["services"][1]["passage"], "/storage/queue");
    let string = format!(
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;TableEndpoint=http://{}/devstoreaccount1;\
         QueueEndpoint=http://{}/devstoreaccount1;",
        house.table, house.queue
    );
    assert_eq!(status["connection_strings"][0], string);
    assert!(!response.text().contains(testkit::EMULATOR_KEY));
}
