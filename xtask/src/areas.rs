//! The areas of the conformance document: a title for the subject of each test file or module, and their order.

/// Each title with its files or modules, in the order of the document.
const AREAS: [(&str, &[&str]); 26] = [
    ("Tables", &["tables"]),
    ("Entities", &["entities", "update"]),
    ("Property types", &["types"]),
    ("Keys", &["keys", "traps_keys"]),
    // The second one is a class of tests of the older Python client.
    ("ETags", &["etags", "testconditions"]),
    ("Queries and filters", &["queries", "query", "filters", "traps_filters"]),
    ("Paging", &["paging"]),
    ("Transactions", &["transactions", "batch", "batch_dialects", "batch_rules", "traps_batch"]),
    ("Limits", &["limits"]),
    ("Shared Key", &["auth"]),
    ("Shared access signatures", &["sas", "sas_matrix", "sas_range", "sas_scope"]),
    ("Access policies", &["policies"]),
    ("Service properties and stats", &["properties", "service_properties"]),
    ("CORS", &["cors"]),
    ("Addresses and URLs", &["addressing"]),
    ("Headers, formats, versions", &["headers", "negotiation"]),
    ("Errors", &["errors", "error_table"]),
    ("HTTP and hostile input", &["http", "hostile", "framing"]),
    ("Retries", &["retries"]),
    ("Parallel use", &["parallel"]),
    ("Well-known applications", &["applications"]),
    ("Known traps of emulators", &["traps"]),
    ("Golden exchanges", &["golden"]),
    ("Where the reference is silent", &["readings"]),
    ("Rulings of the reference", &["rulings"]),
    ("Memory under load", &["memory"]),
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
    fn every_module_of_the_raw_http_suite_has_a_title() {
        let folder = crate::process::root().join("crates/server/tests/it");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let module = path.file_stem().unwrap().to_string_lossy().into_owned();
            let is_known = AREAS.iter().any(|(_, modules)| modules.contains(&module.as_str()));
            assert!(is_known || module == "main", "{module} has no title");
        }
    }

    #[test]
    fn titles_stand_in_the_order_of_the_document() {
        let titles = ["zebra", "Errors", "Tables", "Errors"].map(str::to_owned).into_iter();
        assert_eq!(in_order(titles), ["Tables", "Errors", "zebra"]);
    }
}
