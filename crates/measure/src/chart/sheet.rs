//! The interface of the sheets that charts are drawn on.

use super::{Canvas, Rgb};

/// A sheet to draw on, measured in pixels from its upper left corner.
pub trait Sheet {
    /// Draws a line.
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb);

    /// Draws lines from point to point.
    fn curve(&mut self, points: &[(i32, i32)], colour: Rgb) {
        points.windows(2).for_each(|pair| self.line(pair[0], pair[1], colour));
    }

    /// Fills a rectangle of this size.
    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb);

    /// Writes small text; `at` is the left end, the middle or the right end of its base line, for
    /// an `anchor` of -1, 0 or 1.
    fn text(&mut self, at: (i32, i32), anchor: i32, colour: Rgb, text: &str);

    /// Writes large text.
    fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str);
}

impl Sheet for Canvas {
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        Self::line(self, from, to, colour);
    }

    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb) {
        Self::fill(self, corner, size, colour);
    }

    fn text(&mut self, at: (i32, i32), anchor: i32, colour: Rgb, text: &str) {
        Self::text(self, at, anchor, colour, text);
    }

    fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str) {
        Self::title(self, at, colour, text);
    }
}
