//! What a month would cost on the real service, if it went on like this.
//!
//! Owns: the default prices, with their date. Prices change and differ by region and redundancy, so whoever runs the
//! server may give others: the program reads them from a file (docs/advisor.md). Leaves out what does not depend on
//! the design of tables: data transfer, and discounts.

use std::time::Duration;

/// As bills count it: 730 hours.
const MONTH_SECONDS: f64 = 730.0 * 3600.0;
const GIB: f64 = (1u64 << 30) as f64;

/// Prices of the real service.
#[derive(Clone, PartialEq, Debug)]
pub struct Prices {
    pub currency: String,
    /// When these prices were published.
    pub date: String,
    /// Which of the published prices these are.
    pub basis: String,
    /// For 10,000 requests to the Table service. A batch is one request, and so is each page of a query.
    pub table_transactions_10k: f64,
    /// For 10,000 requests to the Queue service.
    pub queue_transactions_10k: f64,
    /// For one GiB that is stored for a month.
    pub capacity_gib_month: f64,
}

impl Default for Prices {
    fn default() -> Prices {
        Prices {
            currency: "USD".to_owned(),
            date: "2025".to_owned(),
            basis: "general-purpose v2, locally redundant, East US".to_owned(),
            table_transactions_10k: 0.00036,
            queue_transactions_10k: 0.004,
            capacity_gib_month: 0.045,
        }
    }
}

/// A month at the rate of the time that was observed.
#[derive(Clone, PartialEq, Debug)]
pub struct Month {
    /// How much time the rates come from.
    pub observed: Duration,
    pub table_transactions: f64,
    pub queue_transactions: f64,
    pub transactions_cost: f64,
    /// `None` when nobody says how much is stored.
    pub stored_bytes: Option<u64>,
    pub capacity_cost: Option<f64>,
}

impl Prices {
    /// What a month of these requests would cost; they were counted in the time `observed`.
    pub(super) fn month(
        &self,
        table_count: u64,
        queue_count: u64,
        observed: Duration,
        stored_bytes: Option<u64>,
    ) -> Month {
        let a_month = |count: u64| count as f64 * MONTH_SECONDS / observed.as_secs_f64().max(1.0);
        let (table_transactions, queue_transactions) = (a_month(table_count), a_month(queue_count));
        Month {
            observed,
            table_transactions,
            queue_transactions,
            transactions_cost: table_transactions / 1e4 * self.table_transactions_10k
                + queue_transactions / 1e4 * self.queue_transactions_10k,
            stored_bytes,
            capacity_cost: stored_bytes.map(|bytes| bytes as f64 / GIB * self.capacity_gib_month),
        }
    }

    /// What a month of one kind of request costs.
    pub(super) fn table_month(&self, per_second: f64) -> f64 {
        per_second * MONTH_SECONDS / 1e4 * self.table_transactions_10k
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_the_observed_time_made_longer() {
        let prices = Prices::default();
        let month = prices.month(1000, 0, Duration::from_secs(10), Some(2 << 30));
        assert_eq!(month.table_transactions, 262_800_000.0);
        assert!((month.transactions_cost - 9.4608).abs() < 1e-9, "{month:?}");
        assert_eq!(month.capacity_cost, Some(0.09));
        assert!((prices.table_month(100.0) - month.transactions_cost).abs() < 1e-9);
        assert_eq!(prices.month(5, 5, Duration::ZERO, None).capacity_cost, None);
    }
}
