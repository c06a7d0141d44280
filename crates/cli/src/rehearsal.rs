//! The options that make a server as strict as a program should expect the live service to be: scalability targets, and
//! no scans.

use observe::Targets;
use protocol::table::model::TableName;
use server::ScanRule;

/// Reads `partition=N,account=N`; what is left out is as the live services publish it.
pub fn read_targets(text: &str) -> Result<Targets, String> {
    let mut targets = Targets::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, number) = part.split_once('=').unwrap_or((part, ""));
        let target = match name.trim() {
            "partition" => &mut targets.partition_rows_per_second,
            "account" => &mut targets.account_operations_per_second,
            _ => return Err(format!("--throttle takes partition=N and account=N, and not '{part}'")),
        };
        let number = number.trim().parse::<u32>().ok().filter(|number| *number > 0);
        *target =
            number.ok_or_else(|| format!("--throttle takes a number a second, at least 1: '{part}'"))?;
    }
    Ok(targets)
}

/// Reads a list of tables; all of them when it is empty.
pub fn read_scan_rule(text: &str) -> Result<ScanRule, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let tables: Result<Vec<TableName>, String> = names
        .map(|name| {
            TableName::parse_addressed(name)
                .map_err(|_| format!("--fail-on-scan: '{name}' is not a table name"))
        })
        .collect();
    Ok(match tables? {
        tables if tables.is_empty() => ScanRule::for_all(),
        tables => ScanRule::for_tables(&tables),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_published_ones_unless_they_are_given() {
        let check = |text: &str, partition: u32, account: u32| {
            let expected =
                Targets { partition_rows_per_second: partition, account_operations_per_second: account };
            assert_eq!(read_targets(text), Ok(expected), "{text}");
        };
        check("", 2_000, 20_000);
        check("partition=50", 50, 20_000);
        check("account=7, partition=3", 3, 7);
        for wrong in ["50", "partition", "partition=0", "account=-1", "account=x", "table=5"] {
            assert!(read_targets(wrong).unwrap_err().contains("--throttle takes"), "{wrong}");
        }
    }

    #[test]
    fn scans_are_refused_of_all_tables_or_of_some() {
        assert_eq!(read_scan_rule(""), Ok(ScanRule::for_all()));
        let people = TableName::parse_addressed("People").unwrap();
        let orders = TableName::parse_addressed("orders").unwrap();
        assert_eq!(read_scan_rule("People, orders"), Ok(ScanRule::for_tables(&[people, orders])));
        assert!(read_scan_rule("a-b").unwrap_err().contains("'a-b' is not a table name"));
    }
}
