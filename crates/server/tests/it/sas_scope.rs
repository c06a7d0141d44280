//! The scope of a shared access signature (§8.3, §8.4): services, resource types, permission letters, key ranges, and
//! each of these for every operation of a batch.

use testkit::{Batch, Request, Sas, TestServer, batch_parts, entity_json, entity_path};

use crate::sas::{VERSION, accepted, not_authenticated, not_authorized, read, send, world};

#[test]
fn an_account_sas_names_services_types_and_letters() {
    let server = world();
    for services in ["t", "bqtf", "tb"] {
        accepted(&server, &Sas::account(VERSION).set("ss", services));
    }
    for services in ["b", "bqf", "T", "x"] {
        let response = send(&server, &Sas::account(VERSION).set("ss", services), read());
        not_authorized(response, "AuthorizationServiceMismatch", " using this service");
    }
    for types in ["o", "sco", "os"] {
        accepted(&server, &Sas::account(VERSION).set("srt", types));
    }
    for types in ["s", "c", "sc", "O", "x"] {
        let response = send(&server, &Sas::account(VERSION).set("srt", types), read());
        not_authorized(response, "AuthorizationResourceTypeMismatch", " using this resource type");
    }
    for letters in ["r", "ur", "xyzr", "rwdlacupiytf"] {
        accepted(&server, &Sas::account(VERSION).set("sp", letters));
    }
    for letters in ["w", "l", "R", "wdlacu", "xyz"] {
        let response = send(&server, &Sas::account(VERSION).set("sp", letters), read());
        not_authorized(response, "AuthorizationPermissionMismatch", " using this permission");
    }
}

#[test]
fn every_operation_of_a_batch_is_asked_about() {
    let server = world();
    server.create_table("other");
    let insert = |table: &str, row: &str| Batch::new().insert(table, &entity_json("p", row, ""));
    let check = |sas: &Sas, batch: Batch, expected: &str| {
        let part = batch_parts(&send(&server, sas, batch.request())).remove(0);
        assert_eq!(part.error_code(), expected, "{part:?}");
        assert_eq!(part.status, if expected.is_empty() { 204 } else { 403 });
    };
    let table = Sas::table(VERSION, "mytable");
    check(&table, insert("mytable", "1"), "");
    check(&table, insert("other", "1"), "AuthorizationFailure");
    let second = insert("mytable", "2").insert("other", &entity_json("p", "2", ""));
    check(&table, second, "AuthorizationFailure");
    check(&table.clone().set("sp", "rud"), insert("mytable", "3"), "AuthorizationPermissionMismatch");
    let mixed = insert("mytable", "3").operation(
        "DELETE",
        "/mytable(PartitionKey='p',RowKey='r')",
        &[("If-Match", "*")],
        None,
    );
    check(&table.set("sp", "a"), mixed, "AuthorizationPermissionMismatch");
    let account = Sas::account(VERSION);
    check(&account, insert("other", "1"), "");
    check(&account.clone().set("ss", "b"), insert("other", "2"), "AuthorizationServiceMismatch");
    check(&account.clone().set("srt", "sc"), insert("other", "2"), "AuthorizationResourceTypeMismatch");
    check(&account.set("sp", "rwdlcu"), insert("other", "2"), "AuthorizationPermissionMismatch");
    server.get("mytable", "p", "r").expect(200);
    for row in ["2", "3"] {
        server.get("mytable", "p", row).expect(404);
    }
}

#[test]
fn a_range_has_both_ends_in_it() {
    let server = TestServer::with_table("mytable");
    let keys = [("a", "1"), ("b", "1"), ("b", "2"), ("b", "3"), ("c", "1"), ("c", "2"), ("d", "")];
    keys.iter().for_each(|(partition, row)| drop(server.insert("mytable", partition, row, "")));
    let check = |fields: &[(&str, &str)], expected: &str| {
        let sas =
            fields.iter().fold(Sas::table(VERSION, "mytable"), |sas, (name, value)| sas.set(name, value));
        let mut inside = String::new();
        for (partition, row) in keys {
            let response = send(&server, &sas, Request::get(&entity_path("mytable", partition, row)));
            match response.status {
                200 => inside.push_str(&format!("{partition}{row} ")),
                // Recorded: what is outside does not exist for a reader.
                _ => drop(response.expect_error(404, "ResourceNotFound")),
            }
        }
        assert_eq!(inside.trim_end(), expected, "points: {fields:?}");
        let listed = send(&server, &sas, Request::get("/mytable()")).expect(200).json();
        let listed: Vec<String> = listed["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                format!("{}{}", row["PartitionKey"].as_str().unwrap(), row["RowKey"].as_str().unwrap())
            })
            .collect();
        assert_eq!(listed.join(" "), expected, "query: {fields:?}");
    };
    check(&[], "a1 b1 b2 b3 c1 c2 d");
    check(&[("spk", "b")], "b1 b2 b3 c1 c2 d");
    check(&[("spk", "b"), ("srk", "2")], "b2 b3 c1 c2 d");
    check(&[("epk", "b")], "a1 b1 b2 b3");
    check(&[("epk", "c"), ("erk", "1")], "a1 b1 b2 b3 c1");
    check(&[("spk", "b"), ("epk", "b")], "b1 b2 b3");
    check(&[("spk", "b"), ("srk", "2"), ("epk", "c"), ("erk", "1")], "b2 b3 c1");
    check(&[("spk", "b"), ("srk", "2"), ("epk", "b"), ("erk", "2")], "b2");
    check(&[("spk", "c"), ("epk", "b")], "");
    check(&[("spk", "B"), ("epk", "Z")], "");
    for lone in ["srk", "erk"] {
        not_authenticated(send(
            &server,
            &Sas::table(VERSION, "mytable").set(lone, "1"),
            Request::get("/mytable()"),
        ));
    }
}

#[test]
fn an_upsert_needs_add_and_update_even_where_the_entity_exists() {
    let server = world();
    let path = entity_path("mytable", "p", "r");
    for request in [Request::put(&path), Request::merge(&path)] {
        let send = |letters: &str| {
            let sas = Sas::table(VERSION, "mytable").set("sp", letters);
            send(&server, &sas, request.clone().json("{}"))
        };
        for letters in ["u", "a", "rud"] {
            not_authorized(send(letters), "AuthorizationPermissionMismatch", " using this permission");
        }
        send("au").expect(204);
    }
}

#[test]
fn the_first_of_two_signatures_counts() {
    let server = world();
    let token = Sas::table(VERSION, "mytable").sign(server.credentials());
    let send = |query: &str| {
        server.send(Request::get(&format!("{}?{query}", entity_path("mytable", "p", "r"))).unsigned())
    };
    send(&format!("{token}&sig=AAAA")).expect(200);
    send(&format!("{token}&{token}")).expect(200);
    not_authenticated(send(&format!("sig=AAAA&{token}")));
}
