//! A page for readers who did not make the measurement: the measurement and its machine, the
//! latencies, their comparison, and how to read them. Each figure is drawn once, as SVG in the page
//! and as PNG.

mod figure;
mod outliers;
mod page;
mod tables;
mod view;

pub use page::html;
pub use view::ReportView;

use millstream_draw::Canvas;

/// The width of a figure.
const WIDTH: u32 = 900;
/// The height of a figure.
const HEIGHT: u32 = 360;

/// Draws all figures below each other.
#[must_use]
pub fn png(view: &ReportView<'_>) -> Canvas {
    let figures = figure::all(view);
    let mut canvas = Canvas::new(WIDTH, HEIGHT * figures.len().max(1) as u32);
    for (index, figure) in figures.iter().enumerate() {
        figure.draw(&mut canvas, index as i32 * HEIGHT as i32);
    }
    canvas
}
