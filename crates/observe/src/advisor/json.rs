//! Findings, prices and rates as JSON.
//!
//! Promises: the output is valid JSON whatever names and keys contain, and no text in it can be taken for markup:
//! `<`, `>` and `&` are escaped too.

use std::fmt::Write as _;

use super::busiest::Rate;
use super::findings::Finding;
use super::prices::{Month, Prices};

/// An object, member by member.
struct Object<'o> {
    out: &'o mut String,
    is_empty: bool,
}

impl<'o> Object<'o> {
    fn open(out: &'o mut String) -> Object<'o> {
        out.push('{');
        Object { out, is_empty: true }
    }

    fn name(&mut self, name: &str) -> &mut String {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(',');
        }
        string(name, self.out);
        self.out.push(':');
        self.out
    }

    fn text(&mut self, name: &str, value: &str) {
        string(value, self.name(name));
    }

    fn number(&mut self, name: &str, value: f64) {
        number(value, self.name(name));
    }

    fn optional(&mut self, name: &str, value: Option<f64>) {
        match value {
            Some(value) => self.number(name, value),
            None => self.name(name).push_str("null"),
        }
    }

    fn close(self) {
        self.out.push('}');
    }
}

pub(super) fn findings(findings: &[Finding]) -> String {
    array(findings, |finding, out| {
        let mut object = Object::open(out);
        object.text("id", &finding.id);
        object.number("rank", finding.rank as f64);
        object.text("severity", finding.severity.name());
        object.text("kind", finding.kind.name());
        object.text("account", &finding.account);
        object.text("table", &finding.table);
        object.text("subject", &finding.subject);
        object.text("title", &finding.title);
        let mut numbers = Object::open(object.name("numbers"));
        for (name, value) in &finding.numbers {
            numbers.number(name, *value);
        }
        numbers.close();
        object.text("explanation", &finding.explanation);
        object.text("remedy", &finding.remedy);
        object.text("sketch", &finding.sketch);
        object.text("pattern", finding.pattern);
        object.close();
    })
}

pub(super) fn rates(rates: &[Rate<'_>]) -> String {
    array(rates, |rate, out| {
        let mut object = Object::open(out);
        object.text("account", rate.account);
        object.text("table", rate.table);
        object.text("partition", rate.partition);
        object.number("per_second", (rate.per_second * 10.0).round() / 10.0);
        object.close();
    })
}

pub(super) fn month(month: &Month, prices: &Prices) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.number("observed_seconds", month.observed.as_secs() as f64);
    object.text("currency", &prices.currency);
    object.text("prices_date", &prices.date);
    object.text("prices_basis", &prices.basis);
    object.number("table_transactions", month.table_transactions.round());
    object.number("queue_transactions", month.queue_transactions.round());
    object.number("transactions_cost", month.transactions_cost);
    object.optional("stored_bytes", month.stored_bytes.map(|bytes| bytes as f64));
    object.optional("capacity_cost", month.capacity_cost);
    object.close();
    out
}

fn array<T>(items: &[T], write: impl Fn(&T, &mut String)) -> String {
    let mut out = "[".to_owned();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, &mut out);
    }
    out.push(']');
    out
}

/// Whole numbers without a fraction, others with at most six digits of it.
fn number(value: f64, out: &mut String) {
    const FACTOR: f64 = 1e6;
    let rounded = (value * FACTOR).round() / FACTOR;
    // JSON has no word for what is not a number. Display never uses an exponent.
    let _ = write!(out, "{}", if rounded.is_finite() { rounded } else { 0.0 });
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}' | '\0'..='\u{1f}' => {
                // Writing to a string never fails.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_json() {
        let mut out = String::new();
        string("a\"\\\n\t</script>ä", &mut out);
        assert_eq!(out, r#""a\"\\\n\u0009\u003c/script\u003eä""#);
        for (value, expected) in
            [(0.0, "0"), (7.0, "7"), (1e15, "1000000000000000"), (0.1234567, "0.123457"), (f64::NAN, "0")]
        {
            let mut out = String::new();
            number(value, &mut out);
            assert_eq!(out, expected);
        }
        assert_eq!(array(&[1, 2], |item, out| out.push_str(&item.to_string())), "[1,2]");
    }
}
