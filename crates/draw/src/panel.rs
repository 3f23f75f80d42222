//! A part of a sheet with two axes.

use super::{Alignment, BLACK, GREY, PALE, Rgb, Scale, Sheet, WHITE};

/// Two axes at a place on a sheet, and the drawing between them.
#[derive(Debug)]
pub struct Panel {
    left: i32,
    top: i32,
    width: u32,
    height: u32,
    x: Scale,
    y: Scale,
}

impl Panel {
    /// Returns a frame of this size with its upper left corner there; labels are outside of it.
    #[must_use]
    pub fn new(corner: (i32, i32), size: (u32, u32), x: Scale, y: Scale) -> Self {
        let ((left, top), (width, height)) = (corner, size);
        Self { left, top, width, height, x, y }
    }

    /// Draws title, grid and labels.
    pub fn frame(&self, sheet: &mut dyn Sheet, title: &str) {
        let (right, bottom) = (self.left + self.width as i32, self.top + self.height as i32);
        for value in self.x.lines() {
            let x = self.at_x(value);
            sheet.line((x, self.top), (x, bottom), PALE);
            sheet.text((x, bottom + 13), Alignment::Center, GREY, &self.x.word(value));
        }
        for value in self.y.lines() {
            let y = self.at_y(value);
            sheet.line((self.left, y), (right, y), PALE);
            sheet.text((self.left - 5, y + 3), Alignment::Right, GREY, &self.y.word(value));
        }
        sheet.line((self.left, bottom), (right, bottom), GREY);
        sheet.line((self.left, self.top), (self.left, bottom), GREY);
        sheet.title((self.left, self.top - 10), BLACK, title);
        sheet.text((right, bottom + 27), Alignment::Right, GREY, self.x.label());
        sheet.text((right, self.top - 8), Alignment::Right, GREY, self.y.label());
    }

    fn at_x(&self, value: f64) -> i32 {
        self.left + (self.x.share(value).clamp(0.0, 1.0) * f64::from(self.width)).round() as i32
    }

    fn at_y(&self, value: f64) -> i32 {
        let share = 1.0 - self.y.share(value).clamp(0.0, 1.0);
        self.top + (share * f64::from(self.height)).round() as i32
    }

    /// Draws a line from point to point; values beyond the axes lie on the frame, and points that
    /// are not numbers leave a gap.
    pub fn curve(&self, sheet: &mut dyn Sheet, points: &[(f64, f64)], colour: Rgb) {
        for part in points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
            let at = |(x, y): &(f64, f64)| (self.at_x(*x), self.at_y(*y));
            sheet.curve(&part.iter().map(at).collect::<Vec<_>>(), colour);
        }
    }

    /// Draws a line from zero, or from the lower end, to each point.
    pub fn stems(&self, sheet: &mut dyn Sheet, points: &[(f64, f64)], colour: Rgb) {
        let base = self.at_y(self.y.nearest(0.0));
        for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let x = self.at_x(*x);
            sheet.line((x, base), (x, self.at_y(*y)), colour);
        }
    }

    /// Draws points with their intervals: x, y, and the lowest and the highest y.
    pub fn intervals(&self, sheet: &mut dyn Sheet, points: &[[f64; 4]], colour: Rgb) {
        for [x, y, low, high] in points {
            let (x, y, ends) = (self.at_x(*x), self.at_y(*y), [low, high].map(|y| self.at_y(*y)));
            sheet.line((x, ends[0]), (x, ends[1]), colour);
            for end in ends {
                sheet.line((x - 4, end), (x + 4, end), colour);
            }
            sheet.fill((x - 3, y - 3), (7, 7), colour);
        }
    }

    /// Draws counts as darkness: rows from the lower end of the vertical axis up, each with as many
    /// cells as the first.
    pub fn density(&self, sheet: &mut dyn Sheet, rows: &[Vec<u32>], colour: Rgb) {
        let columns = rows.first().map_or(0, Vec::len);
        let most = rows.iter().flatten().copied().max().unwrap_or(0);
        if most == 0 {
            return;
        }
        let edge = |n: usize, of: usize, size: u32| (n as u64 * u64::from(size) / of as u64) as i32;
        for (r, row) in rows.iter().enumerate() {
            let (top, bottom) = (
                edge(rows.len() - r - 1, rows.len(), self.height),
                edge(rows.len() - r, rows.len(), self.height),
            );
            for (c, count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
                let left = edge(c, columns, self.width);
                let right = edge(c + 1, columns, self.width);
                // The square root keeps rare counts visible.
                let share = (255.0 * (f64::from(*count) / f64::from(most)).sqrt()).round() as u8;
                let corner = (self.left + left, self.top + top);
                let size = ((right - left) as u32, (bottom - top) as u32);
                sheet.fill(corner, size, colour.over(WHITE, share));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Canvas;

    #[test]
    fn what_is_beyond_the_axes_stays_within_the_frame() {
        let mut canvas = Canvas::new(100, 100);
        let scale = || Scale::new(0.0, 1.0, 4.0, "");
        let panel = Panel::new((20, 20), (50, 50), scale(), scale());
        let clean = canvas.clone();
        panel.curve(&mut canvas, &[(0.0, f64::NAN), (1.0, 1.0)], BLACK);
        panel.density(&mut canvas, &[vec![0; 4]], BLACK);
        assert_eq!(format!("{canvas:?}"), format!("{clean:?}"), "a gap and no counts draw nothing");
        panel.curve(&mut canvas, &[(-9.0, -9.0), (9.0, 9.0)], BLACK);
        panel.stems(&mut canvas, &[(0.5, 70.0)], BLACK);
        assert_eq!((panel.at_x(9.0), panel.at_y(9.0)), (70, 20));
    }
}
