//! Charts as SVG that any browser shows: bars in groups, and figures over time.
//!
//! Owns: scales, drawing, escaping, the palette. Leaves to the caller: which figures are drawn, and where the text
//! goes.

mod bars;
mod plot;

pub use bars::BarChart;
pub use plot::{Plot, Scale, Series};

/// The colours of series, easy to tell apart even for the colour-blind. Neighbours may be related: the first two are
/// blue.
const COLOURS: [&str; 8] =
    ["#0072b2", "#56b4e9", "#d55e00", "#7f7f7f", "#009e73", "#cc79a7", "#e69f00", "#000000"];

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// Text as it may stand inside an SVG element.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
