//! The areas of the conformance document: a title for the subject of each test file or module, and their order.

/// Each title with its files or modules, in the order of the document.
const AREAS: [(&str, &[&str]); 70] = [
    ("Tables", &["tables"]),
    ("Entities", &["entities", "update"]),
    ("Property types", &["types"]),
    ("Keys", &["keys", "traps_keys"]),
    // The second one is a class of tests of the older Python client.
    ("ETags", &["etags", "testconditions", "test_conditions"]),
    ("Queries and filters", &["queries", "query", "filters", "traps_filters"]),
    ("Paging", &["paging"]),
    ("Transactions", &["transactions", "batch", "batch_dialects", "batch_rules", "traps_batch"]),
    ("The outbox", &["outbox"]),
    ("Limits", &["limits"]),
    ("Shared Key", &["auth"]),
    ("Shared access signatures", &["sas", "sas_matrix", "sas_range", "sas_scope"]),
    ("Access policies", &["policies"]),
    ("Service properties and stats", &["properties", "service_properties"]),
    ("Storage Analytics", &["analytics", "analytics_schema"]),
    ("Metrics", &["metrics"]),
    (
        "The explorer",
        &[
            "explorer",
            "explorer_access",
            "explorer_containers",
            "explorer_many",
            "explorer_rules",
            "explorer_safety",
            "explorer_values",
        ],
    ),
    ("CORS", &["cors"]),
    ("Addresses and URLs", &["addressing"]),
    ("Headers, formats, versions", &["headers", "negotiation"]),
    ("Errors", &["errors", "error_table"]),
    ("HTTP and hostile input", &["http", "hostile", "framing"]),
    ("Retries", &["retries"]),
    ("Scalability targets", &["throttle", "queue_throttle"]),
    ("Refused scans", &["scans"]),
    ("Parallel use", &["parallel"]),
    ("Well-known applications", &["applications"]),
    ("Known traps of emulators", &["traps"]),
    ("Golden exchanges", &["golden"]),
    ("Where the reference is silent", &["readings"]),
    ("Rulings of the reference", &["rulings"]),
    ("Memory under load", &["memory"]),
    ("Queues", &["queues", "queue_queues", "queue_list", "queue_metadata"]),
    (
        "Messages",
        &[
            "messages",
            "queue_put",
            "queue_get",
            "queue_peek",
            "queue_update",
            "queue_delete",
            "queue_clear",
            "queue_receipts",
            "queue_expiry",
        ],
    ),
    ("Queues: parameters, headers, versions", &["queue_parameters", "queue_headers", "queue_versions"]),
    ("Queues: Shared Key and bearer tokens", &["queue_shared_key", "queue_bearer"]),
    ("Queues: shared access signatures", &["queue_sas", "queue_sas_matrix"]),
    ("Queues: access policies", &["queue_policies", "queue_acl"]),
    ("Queues: service properties and stats", &["queue_properties", "queue_service_properties"]),
    ("Queues: CORS", &["queue_cors"]),
    ("Queues: errors", &["queue_errors"]),
    ("Queues: hostile input", &["queue_hostile"]),
    ("Queues: parallel use", &["queue_parallel"]),
    ("Queues: known traps", &["queue_traps"]),
    ("Queues: golden exchanges", &["queue_golden"]),
    ("Containers", &["containers", "blob_containers"]),
    ("Blobs", &["blobs", "blob_header_text", "blob_put", "blob_properties_of_blobs", "blob_streaming"]),
    ("Blobs: blocks", &["blob_blocks"]),
    ("Blobs: appended blocks", &["blob_append"]),
    ("Blobs: pages", &["blob_pages"]),
    ("Blobs: lists", &["blob_lists", "blob_list"]),
    ("Blobs: ranges", &["blob_ranges"]),
    ("Blobs: conditions", &["blob_conditions"]),
    ("Blobs: leases", &["blob_leases"]),
    ("Blobs: copies", &["blob_copy"]),
    ("Blobs: snapshots and soft delete", &["blob_snapshots"]),
    ("Blobs: tags, tiers", &["blob_tags"]),
    ("Blobs: batches", &["blob_batch"]),
    ("Blobs: encryption", &["blob_encryption"]),
    ("Blobs: shared access signatures", &["blob_sas", "blob_sas_matrix"]),
    ("Blobs: bearer tokens and user delegation", &["blob_delegation"]),
    ("Blobs: public access, access policies", &["blob_policies", "blob_access"]),
    ("Blobs: service properties and stats", &["blob_properties", "blob_service_properties"]),
    ("Blobs: the static website", &["blob_website", "website"]),
    ("Blobs: CORS", &["blob_cors"]),
    ("Blobs: errors", &["blob_errors"]),
    ("Blobs: parallel use", &["blob_parallel"]),
    ("Blobs: the design guide's patterns", &["blob_patterns"]),
    ("Blobs: known traps", &["blob_traps"]),
    ("Blobs: golden exchanges", &["blob_golden"]),
];

/// The title of a file or module; its own name when it has none.
pub fn title(module: &str) -> String {
    let found = AREAS.iter().find(|(_, modules)| modules.contains(&module));
    found.map_or_else(|| module.replace('_', " "), |(title, _)| (*title).to_owned())
}

/// The titles without repetitions, in the order of the document. Unknown ones come last.
pub fn in_order(titles: impl Iterator<Item = String>) -> Vec<String> {
    let place = |title: &str| AREAS.iter().position(|(known, _)| *known == title).unwrap_or(AREAS.len());
    let mut found: Vec<String> = titles.collect();
    found.sort_by(|a, b| (place(a), a).cmp(&(place(b), b)));
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_titles() {
        assert_eq!([title("sas_range"), title("new_thing")], ["Shared access signatures", "new thing"]);
    }

    #[test]
    fn every_module_of_the_raw_http_suites_has_a_title() {
        for (suite, prefix) in crate::raw_http::SUITES {
            let folder = crate::process::root().join("crates/server/tests").join(suite);
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let module = path.file_stem().unwrap().to_string_lossy().into_owned();
                let area = format!("{prefix}{module}");
                let is_known = AREAS.iter().any(|(_, modules)| modules.contains(&area.as_str()));
                assert!(is_known || module == "main", "{area} has no title");
            }
        }
    }

    #[test]
    fn titles_stand_in_the_order_of_the_document() {
        let titles = ["zebra", "Errors", "Tables", "Errors"].map(str::to_owned).into_iter();
        assert_eq!(in_order(titles), ["Tables", "Errors", "zebra"]);
    }
}
