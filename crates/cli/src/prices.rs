//! The price table: a TOML file with what the real service takes, for what the advisor says about a month.
//!
//! Promises: what a file leaves out keeps its default, and an unknown entry or a price that is none is an error. An example
//! with the defaults is docs/prices.toml.

use std::path::Path;

use observe::Prices;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PriceFile {
    currency: Option<String>,
    date: Option<String>,
    basis: Option<String>,
    #[serde(rename = "table-transactions-10k")]
    table_transactions_10k: Option<f64>,
    #[serde(rename = "queue-transactions-10k")]
    queue_transactions_10k: Option<f64>,
    capacity_gib_month: Option<f64>,
}

pub fn read(path: &Path) -> Result<Prices, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Prices, String> {
    let file: PriceFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let prices = Prices::default();
    let price = |given: Option<f64>, default: f64| match given {
        Some(price) if !price.is_finite() || price < 0.0 => Err(format!("{price} is no price")),
        given => Ok(given.unwrap_or(default)),
    };
    Ok(Prices {
        table_transactions_10k: price(file.table_transactions_10k, prices.table_transactions_10k)?,
        queue_transactions_10k: price(file.queue_transactions_10k, prices.queue_transactions_10k)?,
        capacity_gib_month: price(file.capacity_gib_month, prices.capacity_gib_month)?,
        currency: file.currency.unwrap_or(prices.currency),
        date: file.date.unwrap_or(prices.date),
        basis: file.basis.unwrap_or(prices.basis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_has_the_defaults() {
        let example = include_str!("../../../docs/prices.toml");
        assert_eq!(parse(example), Ok(Prices::default()));
    }

    #[test]
    fn prices_may_be_changed_one_by_one() {
        let prices = parse("currency = \"EUR\"\ncapacity-gib-month = 0.5\n").unwrap();
        assert_eq!((&*prices.currency, prices.capacity_gib_month), ("EUR", 0.5));
        assert_eq!(prices.table_transactions_10k, Prices::default().table_transactions_10k);
        for text in ["capacity = 1", "capacity-gib-month = -1.0", "capacity-gib-month = nan", "currency = 7"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
