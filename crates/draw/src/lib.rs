//! Pictures as SVG or PNG: sheets to draw on, and panels with axes on them.

mod canvas;
mod colour;
mod letters;
mod panel;
mod scale;
mod sheet;
mod svg;

pub use canvas::Canvas;
pub use colour::{Alignment, Rgb};
pub use panel::Panel;
pub use scale::Scale;
pub use sheet::Sheet;
pub use svg::{Rect, Svg, escape};

/// Colours of series, dark enough on white.
pub const BLUE: Rgb = Rgb::new(0x0b, 0x6e, 0x99);
/// See [`BLUE`].
pub const ORANGE: Rgb = Rgb::new(0xc2, 0x57, 0x1a);
/// See [`BLUE`].
pub const GREEN: Rgb = Rgb::new(0x3f, 0x7d, 0x20);
/// See [`BLUE`].
pub const BLACK: Rgb = Rgb::new(0x11, 0x11, 0x11);
/// The colour of labels.
pub const GREY: Rgb = Rgb::new(0x55, 0x55, 0x55);
/// The colour of grids.
pub const PALE: Rgb = Rgb::new(0xe2, 0xe2, 0xe2);
/// The colour of the ground.
pub const WHITE: Rgb = Rgb::new(0xff, 0xff, 0xff);
/// Colours of series that lie over each other, in their order.
pub const SERIES: [Rgb; 12] = [
    BLUE,
    ORANGE,
    GREEN,
    Rgb::new(0x8a, 0x2b, 0x8c),
    Rgb::new(0xb0, 0x1e, 0x3c),
    Rgb::new(0x7a, 0x5c, 0x00),
    Rgb::new(0x2c, 0x3e, 0x9e),
    Rgb::new(0x4a, 0x4a, 0x4a),
    Rgb::new(0x00, 0x7d, 0x7d),
    Rgb::new(0xc8, 0x3a, 0x8e),
    Rgb::new(0x5f, 0x7d, 0x00),
    Rgb::new(0x6a, 0x5a, 0xcd),
];
