//! What pictures in SVG have in common: colours for light and dark pages, and text.

use alloc::string::String;

/// A colour on light and on dark pages.
pub type Colour = [&'static str; 2];

/// The background.
pub const PAPER: Colour = ["#ffffff", "#0d1117"];
/// Text; a contrast of 4.5 or more to the background, as the next.
pub const INK: Colour = ["#1f2328", "#e6edf3"];
/// Text at the side, and axes.
pub const SOFT: Colour = ["#59636e", "#9198a1"];
/// Lines of a grid.
pub const GRID: Colour = ["#d8dee4", "#2f3742"];

/// What lines and bars have in turn; all can be told from the background (a contrast of 3).
pub const SERIES: [Colour; 8] = [
    ["#0072b2", "#56b4e9"],
    ["#c8500a", "#ff9248"],
    ["#007a5a", "#3ecf9f"],
    ["#a6427c", "#e89ac7"],
    ["#8a6d00", "#e3c341"],
    ["#5b4bb7", "#a99cff"],
    RED,
    ["#4d4d4d", "#c9d1d9"],
];

/// The one of [`SERIES`] for what went wrong, where something may.
pub const RED: Colour = ["#b3261e", "#ff7b72"];

/// `text` as XML can have it: what has a meaning there is escaped, and characters that are not
/// allowed are spaces.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
