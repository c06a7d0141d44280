//! Bars in groups, with a title, a legend and a value at every bar.

use std::fmt::Write;

use crate::{colour, escape};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 76.0;
const BOTTOM: f64 = 20.0;
const BAR_HEIGHT: f64 = 15.0;
const GROUP_GAP: f64 = 14.0;
/// Keeps even the shortest bar visible.
const BAR_WIDTH_MIN: f64 = 2.0;

pub struct BarChart<'a> {
    pub title: &'a str,
    pub series: Vec<String>,
    /// A name and one value per series. A value that was not measured has no bar.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
    /// Uses a logarithmic scale, for values that are far apart.
    pub is_logarithmic: bool,
    pub show: fn(f64) -> String,
}

impl BarChart<'_> {
    pub fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.groups
            .iter()
            .flat_map(|(_, values)| values.iter().flatten().copied())
            .filter(|value| *value > 0.0)
    }

    pub fn to_svg(&self) -> String {
        let bars: usize = self.groups.iter().map(|(_, values)| values.iter().flatten().count()).sum();
        let height = TOP + BOTTOM + bars as f64 * BAR_HEIGHT + self.groups.len() as f64 * GROUP_GAP;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fdfdfb\"/>\n\
             <text x=\"16\" y=\"26\" font-size=\"17\">{}</text>\n",
            escape(self.title)
        );
        let mut x = 16.0;
        for (index, name) in self.series.iter().enumerate() {
            let colour = colour(index);
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"44\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"54\">{}</text>",
                x + 18.0,
                escape(name)
            );
            x += 40.0 + 7.0 * name.chars().count() as f64;
        }
        let mut y = TOP;
        for (name, values) in &self.groups {
            let count = values.iter().flatten().count() as f64;
            let middle = y + count * BAR_HEIGHT / 2.0 + 4.0;
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 10.0,
                escape(name)
            );
            for (index, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let width = (self.share(*value) * (WIDTH - LEFT - RIGHT)).max(BAR_WIDTH_MIN);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    BAR_HEIGHT - 2.0,
                    colour(index),
                    LEFT + width + 6.0,
                    y + 11.0,
                    escape(&(self.show)(*value))
                );
                y += BAR_HEIGHT;
            }
            y += GROUP_GAP;
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The share of the full width that a value's bar takes.
    fn share(&self, value: f64) -> f64 {
        let high = self.values().fold(f64::MIN_POSITIVE, f64::max);
        if !self.is_logarithmic {
            return (value / high).clamp(0.0, 1.0);
        }
        let low = self.values().fold(high, f64::min);
        // The scale starts below the lowest value, so that it has a bar too.
        let floor = 10f64.powf(low.log10().floor() - 0.5);
        ((value.max(floor) / floor).log10() / (high / floor).log10()).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_logarithmic: bool) -> BarChart<'static> {
        BarChart {
            title: "a < b",
            series: vec!["x".to_owned(), "y".to_owned()],
            groups: vec![
                ("one".to_owned(), vec![Some(10.0), Some(1000.0)]),
                ("two".to_owned(), vec![None, Some(0.0)]),
            ],
            is_logarithmic,
            show: |value| format!("{value}"),
        }
    }

    #[test]
    fn every_value_has_a_bar_within_the_frame() {
        for is_logarithmic in [false, true] {
            let svg = chart(is_logarithmic).to_svg();
            assert_eq!(svg.matches("height=\"13.0\"").count(), 3, "{svg}");
            assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn longer_bars_are_larger_values() {
        for is_logarithmic in [false, true] {
            let chart = chart(is_logarithmic);
            assert!(chart.share(10.0) < chart.share(500.0) && chart.share(500.0) < chart.share(1000.0));
            assert_eq!(chart.share(1000.0), 1.0);
        }
    }
}
