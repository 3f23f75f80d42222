//! Charts as PNG: a canvas, and panels with axes on it.

mod canvas;
mod panel;

pub use canvas::{Canvas, Rgb};
pub use panel::{Panel, Scale};

/// Colours of series, dark enough on white.
pub const BLUE: Rgb = Rgb(0x0b, 0x6e, 0x99);
/// See [`BLUE`].
pub const ORANGE: Rgb = Rgb(0xc2, 0x57, 0x1a);
/// See [`BLUE`].
pub const GREEN: Rgb = Rgb(0x3f, 0x7d, 0x20);
/// See [`BLUE`].
pub const BLACK: Rgb = Rgb(0x11, 0x11, 0x11);
/// Labels.
pub const GREY: Rgb = Rgb(0x55, 0x55, 0x55);
/// Grids.
pub const PALE: Rgb = Rgb(0xe2, 0xe2, 0xe2);
