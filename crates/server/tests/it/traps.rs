//! The known traps of emulators, then the items of §13, each with the tests that cover it. A test below checks that
//! every test named here exists.
//!
//! | Trap | Test |
//! |---|---|
//! | Guid, Int64, DateTime, Binary compared by value | `traps_filters::guids_are_compared_by_value_in_every_spelling`, `traps_filters::an_int64_is_compared_as_a_number_not_as_its_text`, `traps_filters::dates_are_told_apart_by_a_hundred_nanoseconds`, `traps_filters::binaries_are_compared_by_bytes_and_written_in_hex`, `filters::values_of_one_type_compare_by_value` |
//! | `not` | `traps_filters::not_turns_whole_expressions_around_also_for_rows_that_lack_the_property`, `filters::and_binds_tighter_than_or_and_not_tightest` |
//! | `eq null` | `traps_filters::null_is_refused_in_a_filter` |
//! | `false` and empty filters | `filters::true_and_false_are_filters`, `query::empty_options_are_absent_ones`, `traps_filters::constant_and_empty_filters_hold_for_tables_too` |
//! | filter on TableName | `tables::tables_can_be_filtered_by_name`, `traps_filters::a_filter_on_table_names_ignores_the_case_in_which_they_were_given` |
//! | very long filters | `traps_filters::very_long_filters_are_answered`, `filters::more_comparisons_than_the_documented_fifteen_are_answered`, `filters::deep_nesting_is_refused_and_moderate_nesting_is_not` |
//! | pages across partitions | `paging::pages_hold_a_thousand_rows_and_miss_none`, `paging::a_filter_holds_on_every_page` |
//! | pages with non-ASCII keys | `keys::any_legal_key_survives_continuation`, `traps_keys::awkward_keys_are_neither_skipped_nor_repeated_at_any_page_size` |
//! | pages while others write | `traps_keys::pages_skip_and_repeat_nothing_while_others_insert_and_delete`, `paging::rows_written_between_pages_are_seen_by_position` |
//! | tokens saved and resumed | `traps_keys::a_token_is_good_over_another_connection_and_after_every_row_of_its_page_is_gone`, `paging::the_token_of_a_deleted_row_goes_on_with_its_successor` |
//! | empty keys | `traps_keys::an_empty_key_is_a_key_like_any_other` |
//! | awkward characters in the URL | `keys::any_legal_key_works_in_every_operation`, `keys::many_spellings_name_the_same_entity` |
//! | … in a batch | `traps_keys::awkward_keys_work_in_every_verb_of_a_batch` |
//! | … in a filter | `traps_keys::awkward_keys_work_in_every_comparison_of_a_filter`, `traps_filters::quotes_in_a_filter_are_doubled_and_only_that` |
//! | … in a continuation | `keys::any_legal_key_survives_continuation` |
//! | forbidden characters | `keys::forbidden_characters_in_a_body_are_out_of_range`, `keys::slashes_in_a_url_key_are_syntax_errors`, `keys::control_characters_in_a_url_are_refused`, `traps_keys::forbidden_characters_are_refused_on_the_way_in_and_harmless_in_a_filter` |
//! | partial commit | `batch::a_failure_anywhere_undoes_everything` |
//! | rollback of replace | `traps_batch::a_failed_batch_undoes_replace_merge_delete_and_upsert` |
//! | cross-partition batch | `batch_rules::all_operations_share_a_partition`, `traps_batch::partitions_that_differ_in_case_only_are_two` |
//! | duplicate row | `batch_rules::an_entity_appears_once`, `traps_batch::a_row_that_comes_twice_is_noticed_in_every_spelling` |
//! | failing index | `traps_batch::the_index_is_that_of_the_failing_operation_for_every_kind_of_failure`, `batch::the_first_failing_operation_is_the_one_reported` |
//! | If-Match inside a batch | `traps_batch::if_match_counts_inside_a_batch_for_every_verb` |
//! | 409 against 400 | `traps_batch::what_exists_is_409_and_what_comes_twice_is_400` |
//! | host-style URLs inside a batch | `traps_batch::a_batch_to_a_host_has_urls_of_that_host`, `traps_batch::a_batch_to_a_path_may_have_urls_of_another_host`, `batch_dialects::urls_may_be_absolute_or_path_absolute_or_relative` |
//! | 64 KiB binaries, 32 Ki characters | `limits::a_binary_has_at_most_65536_bytes`, `limits::a_string_has_at_most_32768_utf16_units`, `traps_batch::a_full_batch_of_large_rows_fits_and_comes_back` |
//! | property count and names | `limits::an_entity_has_at_most_252_properties_of_its_own`, `limits::property_names_are_identifiers`, `limits::a_property_name_has_at_most_255_characters` |
//! | `1.0` comes back as `1.0` | `types::doubles_have_a_point_or_an_exponent`, `applications::older_clients::doubles_come_back_with_their_point_so_that_they_stay_doubles` |
//! | table re-creation right after deletion | `traps::a_table_made_again_at_once_knows_nothing_of_the_old_one`, `policies::a_table_made_again_has_no_policies` |
//! | case of table names | `entities::table_names_in_paths_ignore_case`, `tables::creating_a_table_again_in_any_case_is_refused` |
//! | `$top=0`, `$top=1001` | `query::top_bounds_a_page_between_0_and_1000`, `tables::top_for_tables_is_0_to_1000` |
//! | `$orderby`, `$skip`, `$count` | `query::options_the_service_lacks_are_not_implemented`, `traps::what_only_other_services_can_do_is_not_implemented_anywhere` |
//! | unknown query options | `query::unknown_options_are_ignored`, `traps::unknown_options_change_no_answer` |
//! | clock skew | `auth::a_date_is_good_for_fifteen_minutes_either_way` |
//! | writes on the secondary | `addressing::the_secondary_refuses_writes`, `traps::the_secondary_refuses_every_write_however_it_is_named` |
//!
//! §13 by number. Two items concern no Table server: 56 (the client compares JSON) and 68 (another service). The
//! protocol crate covers 61, in `a_bearer_token_may_what_its_role_may`.
//!
//! | Item | Test |
//! |---|---|
//! | 1 ETag form | `entities::insert_answers_with_the_entity_as_stored` |
//! | 2 zeros trimmed | `types::dates_are_utc_with_trailing_zeros_trimmed`, `etags::etags_compare_by_the_time_they_name` |
//! | 3 zeros kept | `errors::the_time_in_an_error_keeps_its_zeros`, `policies::times_come_back_with_seven_digits` |
//! | 4, 5 `odata.etag`, `odata.metadata` of a set | `query::a_set_names_its_table_and_gives_each_entity_its_etag` |
//! | 6 doubles | `types::doubles_have_a_point_or_an_exponent` |
//! | 7 Int64 | `types::int64_is_a_string_with_its_type` |
//! | 8 missing selected properties | `query::select_returns_exactly_what_it_names_with_null_for_what_is_missing` |
//! | 9 which "not found" | `tables::a_missing_table_is_a_missing_resource_when_asked_for_by_name`, `entities::every_entity_operation_on_a_missing_table_says_so`, `entities::a_missing_entity_is_a_missing_resource` |
//! | 10 `specifed` | `tables::table_names_have_3_to_63_letters_and_digits_and_start_with_a_letter` |
//! | 11 `InvalidDuplicateRow` | `batch_rules::an_entity_appears_once` |
//! | 12 too many operations | `batch_rules::a_batch_has_at_most_a_hundred_operations` |
//! | 13 the status of a part | `traps_batch::the_index_is_that_of_the_failing_operation_for_every_kind_of_failure` |
//! | 14 index in batches of one | `batch_rules::a_change_set_of_one_prefixes_validation_errors_only` |
//! | 15 mixed partitions | `batch_rules::all_operations_share_a_partition` |
//! | 16 `x-ms-error-code` | `traps::only_the_front_end_tells_the_code_in_a_header`, `golden::every_golden_exchange_is_repeated_with_the_account_in_the_path` |
//! | 17 `m:error` | `errors::a_front_end_error_is_prefixed_xml_when_json_is_not_asked_for` |
//! | 18 byte-order mark | `traps::xml_begins_with_a_mark_and_may_come_with_one` |
//! | 19 reason phrases | `errors::a_front_end_error_is_prefixed_xml_when_json_is_not_asked_for`, `errors::reason_phrases_of_odata_errors_are_the_standard_ones` |
//! | 20 `$top` | `query::top_bounds_a_page_between_0_and_1000` |
//! | 21 `ne` on what is missing | `filters::a_missing_property_fails_every_comparison` |
//! | 22 types that do not compare | `filters::types_that_do_not_compare_count_as_less`, `filters::a_literal_is_widened_to_the_stored_type` |
//! | 23 the constant first | `filters::blanks_may_be_many_and_the_literal_may_come_first` |
//! | 24 functions | `filters::what_cannot_be_answered_is_refused` |
//! | 25 `$orderby` | `query::options_the_service_lacks_are_not_implemented` |
//! | 26 empty options | `query::empty_options_are_absent_ones` |
//! | 27, 28 tokens | `paging::malformed_tokens_are_refused`, `keys::any_legal_key_survives_continuation` |
//! | 29 merge with null | `update::null_means_absent_so_replace_removes_and_merge_keeps` |
//! | 30 empty If-Match | `etags::an_empty_if_match_is_no_upsert` |
//! | 31 DELETE without If-Match | `entities::delete_without_if_match_is_refused` |
//! | 32 the Date line | `auth::x_ms_date_wins_over_date`, `auth::a_date_is_needed` |
//! | 33 canonicalized resource | `auth::the_published_vectors_are_accepted`, `auth::the_signature_covers_what_it_should` |
//! | 34 the last newline | `sas::each_version_of_an_account_sas_signs_its_own_string`, `sas::each_version_of_a_service_sas_signs_its_own_string` |
//! | 35 case of `tn` | `sas::a_service_sas_names_its_table_in_any_case` |
//! | 36 all letters | `sas_matrix::an_account_sas_opens_what_its_letters_open` |
//! | 37 resource types | `sas_matrix::an_account_sas_opens_only_the_resource_types_it_names` |
//! | 38, 40 AuthenticationFailed and its text | `auth::a_wrong_signature_is_refused` |
//! | 39 no AuthenticationErrorDetail | `errors::a_front_end_error_is_json_when_json_is_asked_for` |
//! | 41 `x-ms-version` | `headers::the_version_used_is_the_one_asked_for` |
//! | 42, 46 `Content-Type`, `Accept` | `negotiation::accept_chooses_the_level`, `negotiation::no_accept_means_atom_which_is_refused` |
//! | 43, 44 `Location`, `Preference-Applied` | `entities::prefer_decides_whether_insert_returns_the_entity`, `entities::insert_answers_with_the_entity_as_stored` |
//! | 45 `Prefer` on updates | `update::prefer_changes_nothing_for_updates` |
//! | 47 errors for key characters | `keys::forbidden_characters_in_a_body_are_out_of_range`, `keys::other_forbidden_characters_in_a_url_key_are_refused_on_writes_and_absent_on_reads` |
//! | 48 `+` | `keys::many_spellings_name_the_same_entity` |
//! | 49 decoding once | `keys::paths_are_decoded_once`, `keys::dots_are_keys_not_directories` |
//! | 50 case | `entities::table_names_in_paths_ignore_case`, `filters::property_names_and_strings_are_case_sensitive` |
//! | 51 `timestamp` | `update::custom_properties_named_like_system_ones_in_another_case_are_ordinary` |
//! | 52 252 properties | `limits::an_entity_has_at_most_252_properties_of_its_own` |
//! | 53 UTF-16 units | `limits::a_string_has_at_most_32768_utf16_units`, `limits::keys_have_at_most_512_utf16_units` |
//! | 54 order | `keys::rows_come_in_ordinal_order_of_utf16_units` |
//! | 55 dates before 1601 | `types::dates_before_1601_are_out_of_range` |
//! | 57 `odata.*` in requests | `types::odata_members_of_a_request_are_ignored` |
//! | 58 PATCH, MERGE, PUT | `update::merge_keeps_properties_it_does_not_mention`, `update::updates_of_a_missing_entity_with_a_condition_are_refused` |
//! | 59 the tunnel signs POST | `auth::both_schemes_sign_every_operation` |
//! | 60 deleted tables | `traps::a_table_made_again_at_once_knows_nothing_of_the_old_one` |
//! | 62 statistics | `traps::statistics_are_the_secondarys` |
//! | 63 201 or 204 in a batch | `batch::each_part_has_its_own_prefer_and_accept` |
//! | 64 lengths and blank lines in parts | `batch_dialects::python_numbers_its_parts_outside_the_request`, `batch_dialects::javascript_writes_lower_case_headers_and_more_blank_lines` |
//! | 65 `%24batch` | `batch_dialects::the_dollar_of_batch_may_be_escaped` |
//! | 66 boundaries and header case | `batch::a_successful_change_set_is_answered_byte_by_byte`, `batch::boundaries_are_used_consistently` |
//! | 67 compact errors | `errors::an_odata_error_is_compact_json_with_request_id_and_time` |

use serde_json::json;
use testkit::{Batch, Request, Style, TestServer, batch_parts, entity_json, entity_path};

#[test]
fn every_test_that_the_tables_name_exists() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let own = std::fs::read_to_string(format!("{folder}/traps.rs")).unwrap();
    let rows = own.lines().filter(|line| line.starts_with("//! |"));
    let names: Vec<&str> = rows.flat_map(|line| line.split('`')).filter(|name| name.contains("::")).collect();
    assert!(names.len() > 100, "{} names", names.len());
    for name in names {
        let (module, rest) = name.split_once("::").unwrap();
        let test = rest.rsplit("::").next().unwrap();
        let source = std::fs::read_to_string(format!("{folder}/{module}.rs"));
        let source = source.unwrap_or_else(|_| panic!("{name}: no such module"));
        assert!(source.contains(&format!("fn {test}()")), "{name}: no such test");
    }
    // Every item of §13 has a row, except those named in the comment above the table.
    let (_, items) = own.split_once("| Item | Test |").unwrap();
    let firsts = items.lines().filter_map(|line| line.strip_prefix("//! | ")?.split(" | ").next());
    let numbers: Vec<u32> =
        firsts.flat_map(|first| first.split([' ', ','])).filter_map(|word| word.parse().ok()).collect();
    for item in (1..=68).filter(|item| ![56, 61, 68].contains(item)) {
        assert!(numbers.contains(&item), "item {item} has no test");
    }
}

#[test]
fn a_table_made_again_at_once_knows_nothing_of_the_old_one() {
    let server = TestServer::start();
    let path = entity_path("phoenix", "p", "r");
    for round in 0..20 {
        server.create_table("phoenix");
        let rows = server.send(Request::get("/phoenix()")).expect(200).json();
        assert_eq!(rows["value"], json!([]), "round {round}");
        let etag =
            server.insert("phoenix", "p", "r", &format!("\"round\":{round}")).required("ETag").to_owned();
        server.insert("phoenix", "q", "r", "");
        let token = server.send(Request::get("/phoenix()?$top=1")).expect(200);
        let token = token.required("x-ms-continuation-NextPartitionKey").to_owned();
        server.send(Request::delete("/Tables('phoenix')")).expect(204);
        server.send(Request::put(&path).json("{}")).expect_error(404, "TableNotFound");
        server.create_table("Phoenix");
        server.send(Request::get("/Tables('phoenix')")).expect(200);
        server
            .send(Request::put(&path).header("If-Match", &etag).json("{}"))
            .expect_error(404, "ResourceNotFound");
        let next = server.send(Request::get("/phoenix()").query("NextPartitionKey", &token)).expect(200);
        assert_eq!(next.json()["value"], json!([]), "a token of the old table finds nothing in the new one");
        server.send(Request::delete("/Tables('phoenix')")).expect(204);
    }
}

#[test]
fn what_only_other_services_can_do_is_not_implemented_anywhere() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let message = "The requested operation is not implemented on the specified resource.";
    for option in
        ["$orderby=RowKey", "$skip=1", "$count=true", "$inlinecount=allpages", "$expand=x", "$skiptoken=x"]
    {
        for target in ["/Tables", "/mytable()", "/mytable"] {
            let response = server.send(Request::get(&format!("{target}?{option}")));
            response.expect_message(501, "NotImplemented", message);
        }
        // It is refused beside supported options, too.
        let response = server.send(Request::get(&format!("/mytable()?$top=1&$filter=true&{option}")));
        response.expect_message(501, "NotImplemented", message);
    }
    server.send(Request::get("/mytable/$count")).expect_message(501, "NotImplemented", message);
}

#[test]
fn unknown_options_change_no_answer() {
    let server = TestServer::with_table("mytable");
    for row in ["1", "2", "3"] {
        server.insert("mytable", "p", row, "");
    }
    let plain = server.send(Request::get("/mytable()?$top=2&$select=RowKey")).expect(200);
    for option in [
        "$unknown=1",
        "orderby=x",
        "$Top=1",
        "$TOP=1",
        "top=1",
        "skip=1",
        "_=1718000000000",
        "sv=x",
        "$search=a",
    ] {
        let response =
            server.send(Request::get(&format!("/mytable()?{option}&$top=2&$select=RowKey"))).expect(200);
        assert_eq!(response.text(), plain.text(), "{option}");
        assert_eq!(
            response.header("x-ms-continuation-NextRowKey"),
            plain.header("x-ms-continuation-NextRowKey")
        );
    }
    let insert = Request::post("/mytable?$unknown=1&x=y").json(&entity_json("p", "4", ""));
    assert_eq!(server.send(insert).expect(201).json()["RowKey"], "4");
}

#[test]
fn the_secondary_refuses_every_write_however_it_is_named() {
    let server = TestServer::with_table("mytable");
    let etag = server.insert("mytable", "p", "r", r#""x":1"#).required("ETag").to_owned();
    let path = entity_path("mytable", "p", "r");
    let writes = [
        Request::post("/Tables").json(r#"{"TableName":"abc"}"#),
        Request::delete("/Tables('mytable')"),
        Request::post("/mytable").json(&entity_json("p", "r2", "")),
        Request::put(&path).json("{}"),
        Request::patch(&path).json("{}").header("If-Match", &etag),
        Request::post(&path).json("{}").header("X-HTTP-Method", "MERGE"),
        Request::delete(&path).header("If-Match", "*"),
        Batch::new().insert("mytable", &entity_json("p", "r3", "")).request(),
        Request::put("/mytable?comp=acl").body("application/xml", "<SignedIdentifiers />"),
        Request::put("/?restype=service&comp=properties")
            .body("application/xml", "<StorageServiceProperties><Cors /></StorageServiceProperties>"),
    ];
    let host = Style::Host("devstoreaccount1-secondary.table.core.windows.net".to_owned());
    for write in writes {
        for request in
            [write.clone().path_account("devstoreaccount1-secondary"), write.clone().style(host.clone())]
        {
            let response = server.send(request);
            let message = "Write operations are not allowed.";
            response.expect_message(403, "InsufficientAccountPermissions", message);
        }
    }
    assert_eq!(server.get("mytable", "p", "r").required("ETag"), etag);
    assert_eq!(server.send(Request::get("/mytable()")).json()["value"].as_array().unwrap().len(), 1);
    assert_eq!(server.send(Request::get("/Tables")).json()["value"].as_array().unwrap().len(), 1);
}

#[test]
fn statistics_are_the_secondarys() {
    let server = TestServer::start();
    let request = Request::get("/?restype=service&comp=stats").header("Accept", "application/xml");
    let response = server.send(request.clone().path_account("devstoreaccount1-secondary")).expect(200);
    assert!(response.text().contains("<GeoReplication><Status>live</Status><LastSyncTime>"), "{response:?}");
    server.send(request).expect_error(400, "InvalidQueryParameterValue");
}

#[test]
fn only_the_front_end_tells_the_code_in_a_header() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    for request in [
        Request::get("/Tables('absent')"),
        Request::get("/absent()"),
        Request::post("/mytable").json(&entity_json("p", "r", "")),
        Request::get("/mytable()?$filter=a%20b"),
        Request::get("/mytable()?$top=1001"),
        Request::delete(&entity_path("mytable", "p", "r")),
    ] {
        let response = server.send(request);
        assert!(response.status >= 400, "{response:?}");
        assert_eq!(response.header("x-ms-error-code"), None, "{response:?}");
    }
    let taken = Batch::new().insert("mytable", &entity_json("p", "r", ""));
    let part = batch_parts(&server.send(taken.request())).remove(0);
    assert_eq!((part.status, part.header("x-ms-error-code")), (409, None));
    for (request, code) in [
        (
            Request::get("/Tables").header("Authorization", "SharedKey devstoreaccount1:AAAA"),
            "AuthenticationFailed",
        ),
        (Request::put("/mytable?comp=acl").body("application/xml", "<x"), "InvalidXmlDocument"),
        (Request::get("/absent?comp=acl"), "TableNotFound"),
    ] {
        assert_eq!(server.send(request).header("x-ms-error-code"), Some(code));
    }
}

#[test]
fn xml_begins_with_a_mark_and_may_come_with_one() {
    let server = TestServer::with_table("mytable");
    let acl = "<SignedIdentifiers><SignedIdentifier><Id>x</Id></SignedIdentifier></SignedIdentifiers>";
    let properties = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    for mark in ["", "\u{FEFF}", "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n"] {
        let request = Request::put("/mytable?comp=acl").body("application/xml", format!("{mark}{acl}"));
        server.send(request).expect(204);
        let request = Request::put("/?restype=service&comp=properties")
            .body("application/xml", format!("{mark}{properties}"));
        server.send(request).expect(202);
    }
    for target in ["/mytable?comp=acl", "/?restype=service&comp=properties"] {
        let response = server.send(Request::get(target).header("Accept", "application/xml")).expect(200);
        assert!(
            response.body.starts_with(b"\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?><S"),
            "{response:?}"
        );
    }
}
