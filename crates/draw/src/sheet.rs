//! The interface of the sheets that charts are drawn on.

use super::{Alignment, BLACK, Rgb};

/// A sheet to draw on, measured in pixels from its upper left corner.
pub trait Sheet {
    /// Draws a line; parts outside the sheet are not shown.
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb);

    /// Draws lines from point to point.
    fn curve(&mut self, points: &[(i32, i32)], colour: Rgb) {
        points.windows(2).for_each(|pair| self.line(pair[0], pair[1], colour));
    }

    /// Fills a rectangle of this size.
    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb);

    /// Writes small text; `at` is the left end, the middle or the right end of its base line.
    fn text(&mut self, at: (i32, i32), alignment: Alignment, colour: Rgb, text: &str);

    /// Writes large text.
    fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str);

    /// Writes the name of a series beside a patch of its colour, to the right or the left of it.
    fn name(&mut self, (x, y): (i32, i32), alignment: Alignment, colour: Rgb, text: &str) {
        self.fill((x, y - 8), (10, 8), colour);
        let gap = if alignment == Alignment::Left { 14 } else { -6 };
        self.text((x + gap, y), alignment, BLACK, text);
    }
}
