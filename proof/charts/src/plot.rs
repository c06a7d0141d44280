//! Figures over time, with titled axes, a grid and a legend.

use std::fmt::Write;

use crate::{colour, escape};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 52.0;
const TICK_COUNT: f64 = 6.0;
const POINT_COUNT_MAX: usize = 1200;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Starts at zero.
    Linear,
    /// In powers of ten. Values that are not positive are left out.
    Logarithmic,
}

pub struct Series {
    pub name: String,
    /// One value for each second.
    pub values: Vec<f64>,
}

pub struct Plot<'a> {
    pub title: &'a str,
    /// The unit of the vertical axis. The horizontal one is time in seconds.
    pub unit: &'a str,
    pub scale: Scale,
    pub series: Vec<Series>,
}

impl Plot<'_> {
    pub fn to_svg(&self) -> String {
        let seconds = self.series.iter().map(|series| series.values.len()).max().unwrap_or(0).max(2) as f64;
        let (low, high) = self.range();
        let x = |second: f64| LEFT + second / (seconds - 1.0) * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| {
            let share = match self.scale {
                Scale::Linear => (value - low) / (high - low),
                Scale::Logarithmic => (value / low).log10() / (high / low).log10(),
            };
            HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fdfdfb\"/>\n\
             <text x=\"{LEFT}\" y=\"26\" font-size=\"17\">{}</text>\n",
            escape(self.title)
        );
        let right = WIDTH - RIGHT;
        let bottom = HEIGHT - BOTTOM;
        for tick in self.ticks(low, high) {
            let at = y(tick);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                at + 4.0,
                number(tick)
            );
        }
        let step = nice_step(seconds - 1.0);
        let mut second = 0.0;
        while second <= seconds - 1.0 {
            let at = x(second);
            let _ = writeln!(
                svg,
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#eeeeee\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                number(second)
            );
            second += step;
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#444444\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time in seconds</text>\n\
             <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 14.0,
            (TOP + bottom) / 2.0,
            escape(self.unit)
        );
        for (index, series) in self.series.iter().enumerate() {
            let colour = colour(index);
            // Draws the highest of each group of points, so that no peak gets lost.
            let group = series.values.len().div_ceil(POINT_COUNT_MAX).max(1);
            let mut path = String::new();
            for (place, values) in series.values.chunks(group).enumerate() {
                let value = values.iter().copied().fold(f64::MIN, f64::max);
                if self.scale == Scale::Logarithmic && value <= 0.0 {
                    continue;
                }
                let command = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", x((place * group) as f64), y(value.max(low)));
            }
            let at = TOP + 14.0 + 22.0 * index as f64;
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\n\
                 <line x1=\"{:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"{colour}\" stroke-width=\"3\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                right + 14.0,
                right + 36.0,
                right + 42.0,
                at + 4.0,
                escape(&series.name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn range(&self) -> (f64, f64) {
        let values = || self.series.iter().flat_map(|series| series.values.iter().copied());
        let high = values().fold(0.0, f64::max);
        match self.scale {
            Scale::Linear => {
                let high = if high > 0.0 { high } else { 1.0 };
                let step = nice_step(high);
                (0.0, (high / step).ceil() * step)
            }
            Scale::Logarithmic => {
                let low = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
                let low = if low.is_finite() { low } else { 0.1 };
                let floor = 10f64.powf(low.log10().floor());
                (floor, 10f64.powf(high.max(low).log10().ceil()).max(floor * 10.0))
            }
        }
    }

    fn ticks(&self, low: f64, high: f64) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = nice_step(high - low);
                (0..=((high - low) / step).round() as u32)
                    .map(|index| low + step * f64::from(index))
                    .collect()
            }
            Scale::Logarithmic => {
                let powers = (high / low).log10().round() as i32;
                (0..=powers).map(|power| low * 10f64.powi(power)).collect()
            }
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten, of which about six fit into the range.
fn nice_step(range: f64) -> f64 {
    let rough = (range / TICK_COUNT).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(rough)
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (range, expected) in [(6.0, 1.0), (10.0, 2.0), (100.0, 20.0), (599.0, 100.0), (0.5, 0.1)] {
            let step = nice_step(range);
            assert!((step / expected - 1.0).abs() < 1e-9, "{range}: {step}");
        }
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(300.0), "300");
    }

    #[test]
    fn a_plot_has_a_line_for_each_series_and_stays_in_its_frame() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let series = vec![
                Series { name: "a < b".to_owned(), values: vec![0.5, 20.0, 3.0] },
                Series { name: "zero".to_owned(), values: vec![0.0, 0.0, 0.0] },
            ];
            let svg = Plot { title: "t", unit: "ms", scale, series }.to_svg();
            assert_eq!(svg.matches("stroke-width=\"1.6\"").count(), 2);
            assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
