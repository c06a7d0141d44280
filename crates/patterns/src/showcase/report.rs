//! What an example prints: one table per question, in Markdown, so that a page can show it as it is.

use std::fmt::{self, Write as _};

use crate::data::Size;
use crate::measure::Cost;

/// The measurements of one example.
#[derive(Debug)]
pub struct Report {
    /// What the size counts.
    unit: &'static str,
    rows: Vec<Measured>,
    notes: Vec<String>,
}

/// One measurement: which question, at which size, answered in which way.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was asked, in words.
    pub question: &'static str,
    /// On how many employees.
    pub size: Size,
    /// "before", "after", or the name of a variant.
    pub way: &'static str,
    /// What it cost.
    pub cost: Cost,
}

impl Report {
    /// An empty one, whose sizes count employees.
    pub fn new() -> Report {
        Report { unit: "employees", rows: Vec::new(), notes: Vec::new() }
    }

    /// The sizes count something else.
    pub fn count_as(&mut self, unit: &'static str) {
        self.unit = unit;
    }

    /// Adds a measurement.
    pub fn add(&mut self, question: &'static str, size: Size, way: &'static str, cost: Cost) {
        self.rows.push(Measured { question, size, way, cost });
    }

    /// Adds a sentence for below the tables.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// All measurements.
    pub fn rows(&self) -> &[Measured] {
        &self.rows
    }

    /// The measurement with this question, size and way.
    pub fn find(&self, question: &str, size: Size, way: &str) -> Option<Cost> {
        let is_it = |row: &&Measured| row.question == question && row.size == size && row.way == way;
        self.rows.iter().find(is_it).map(|row| row.cost)
    }

    fn questions(&self) -> Vec<&'static str> {
        let mut questions = Vec::new();
        for row in &self.rows {
            if !questions.contains(&row.question) {
                questions.push(row.question);
            }
        }
        questions
    }
}

impl Default for Report {
    fn default() -> Report {
        Report::new()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = [self.unit, "way", "requests", "entities examined", "bytes sent", "bytes received"];
        for (n, question) in self.questions().into_iter().enumerate() {
            if n > 0 {
                out.write_char('\n')?;
            }
            writeln!(out, "{question}:\n")?;
            let mut lines = vec![head.map(str::to_owned)];
            lines.extend(self.rows.iter().filter(|row| row.question == question).map(cells));
            write_table(out, &lines)?;
        }
        for note in &self.notes {
            write!(out, "\n{note}\n")?;
        }
        Ok(())
    }
}

fn cells(row: &Measured) -> [String; 6] {
    let Cost { requests, entities_examined, unexplained, bytes_sent, bytes_received } = row.cost;
    let examined = if unexplained == 0 { grouped(entities_examined) } else { "unknown".to_owned() };
    [
        grouped(row.size.count()),
        row.way.to_owned(),
        grouped(requests),
        examined,
        grouped(bytes_sent),
        grouped(bytes_received),
    ]
}

/// The columns are as wide as their widest cell, so that the text reads well in a terminal too.
fn write_table<const N: usize>(out: &mut fmt::Formatter<'_>, lines: &[[String; N]]) -> fmt::Result {
    let is_text = |column: usize| column == 1;
    let widths: [usize; N] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0));
    for (n, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            if is_text(column) {
                write!(out, "| {cell:<width$} ")?
            } else {
                write!(out, "| {cell:>width$} ")?
            }
        }
        out.write_str("|\n")?;
        if n == 0 {
            for (column, width) in widths.into_iter().enumerate() {
                let rule = "-".repeat(width);
                if is_text(column) { write!(out, "| {rule} ")? } else { write!(out, "| {}: ", &rule[1..])? }
            }
            out.write_str("|\n")?;
        }
    }
    Ok(())
}

/// A number as people write it: 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_table_in_markdown() {
        let mut report = Report::new();
        let cost =
            Cost { requests: 1, entities_examined: 2000, bytes_sent: 90, bytes_received: 5, unexplained: 0 };
        report.add("Find one", Size::Small, "before", cost);
        report.add("Find one", Size::Small, "after", Cost { unexplained: 1, ..cost });
        report.note("That is all.");
        let expected = "\
Find one:

| employees | way    | requests | entities examined | bytes sent | bytes received |
| --------: | ------ | -------: | ----------------: | ---------: | -------------: |
|       100 | before |        1 |             2,000 |         90 |              5 |
|       100 | after  |        1 |           unknown |         90 |              5 |

That is all.
";
        assert_eq!(report.to_string(), expected);
        assert_eq!(report.find("Find one", Size::Small, "before"), Some(cost));
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
