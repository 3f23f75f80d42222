//! A page for somebody who was not there: what was measured and where, how late things were, how
//! that compares, and how to read it. Figures are drawn once and come out as SVG in the page and as
//! PNG.

mod figure;
mod outliers;
mod page;
mod tables;
mod view;

pub use page::html;
pub use view::ReportView;

use crate::chart::Canvas;

/// Width of a figure.
const WIDTH: u32 = 900;
/// Height of a figure.
const HEIGHT: u32 = 360;

/// All figures below each other.
#[must_use]
pub fn png(view: &ReportView<'_>) -> Canvas {
    let figures = figure::all(view);
    let mut canvas = Canvas::new(WIDTH, HEIGHT * figures.len().max(1) as u32);
    for (index, figure) in figures.iter().enumerate() {
        figure.draw(&mut canvas, index as i32 * HEIGHT as i32);
    }
    canvas
}
