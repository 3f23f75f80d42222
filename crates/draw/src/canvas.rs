//! Pixels, lines and letters.

use std::io::Write;

use super::letters::{Face, letters};
use super::{Alignment, Rgb, Sheet};

/// A white sheet to draw on, in pixels from its upper left corner.
#[derive(Clone, Debug)]
pub struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Returns a white sheet.
    #[must_use]
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height, pixels: vec![0xFF; (3 * width * height) as usize] }
    }

    /// Returns how many pixels have this colour.
    #[must_use]
    pub fn count(&self, colour: Rgb) -> u32 {
        self.pixels.chunks_exact(3).filter(|pixel| **pixel == colour.parts()).count() as u32
    }

    /// Writes the picture as a PNG file.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_png(&self, out: impl Write) -> std::io::Result<()> {
        let mut encoder = png::Encoder::new(out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        Ok(writer.finish()?)
    }

    /// Returns a pixel, unless it lies outside.
    fn pixel(&mut self, x: i32, y: i32) -> Option<&mut [u8]> {
        let inside = |at: i32, size: u32| u32::try_from(at).ok().filter(|at| *at < size);
        let at = 3 * (inside(y, self.height)? * self.width + inside(x, self.width)?) as usize;
        Some(&mut self.pixels[at..at + 3])
    }

    /// Lays `share` of 255 of a colour over a pixel.
    fn mark(&mut self, x: i32, y: i32, colour: Rgb, share: u8) {
        if let Some(pixel) = self.pixel(x, y) {
            let ground = Rgb::new(pixel[0], pixel[1], pixel[2]);
            pixel.copy_from_slice(&colour.over(ground, share).parts());
        }
    }

    fn write(
        &mut self,
        (x, y): (i32, i32),
        face: Face,
        (to, colour): (Alignment, Rgb),
        text: &str,
    ) {
        let width: i32 = letters(face, text).map(|letter| letter.advance).sum();
        let mut pen = match to {
            Alignment::Left => x,
            Alignment::Center => x - width / 2,
            Alignment::Right => x - width,
        };
        for letter in letters(face, text) {
            let (left, top) = (pen + letter.corner.0, y + letter.corner.1);
            for (row, y) in letter.coverage.chunks(letter.width.max(1)).zip(top..) {
                for (share, x) in row.iter().zip(left..) {
                    self.mark(x, y, colour, *share);
                }
            }
            pen += letter.advance;
        }
    }
}

impl Sheet for Canvas {
    /// By Bresenham's algorithm.
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        let (wide, high) = ((to.0 - from.0).abs(), -(to.1 - from.1).abs());
        let step = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
        let ((mut x, mut y), mut error) = (from, wide + high);
        loop {
            self.mark(x, y, colour, 255);
            if (x, y) == to {
                return;
            }
            let twice = 2 * error;
            if twice >= high {
                (error, x) = (error + high, x + step.0);
            }
            if twice <= wide {
                (error, y) = (error + wide, y + step.1);
            }
        }
    }

    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb) {
        let part = |from: i32, size: u32, all: u32| {
            let to = (i64::from(from) + i64::from(size)).clamp(0, all.into());
            from.max(0)..to as i32
        };
        for y in part(corner.1, size.1, self.height) {
            for x in part(corner.0, size.0, self.width) {
                self.mark(x, y, colour, 255);
            }
        }
    }

    fn text(&mut self, at: (i32, i32), alignment: Alignment, colour: Rgb, text: &str) {
        self.write(at, Face::Text, (alignment, colour), text);
    }

    fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str) {
        self.write(at, Face::Title, (Alignment::Left, colour), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_png_that_a_decoder_reads_back() {
        let mut canvas = Canvas::new(60, 40);
        canvas.fill((10, 5), (3, 2), Rgb::new(1, 2, 3));
        canvas.line((-5, 20), (100, 20), Rgb::new(9, 9, 9));
        canvas.text((30, 30), Alignment::Center, Rgb::new(0, 0, 0), "µs");
        let mut file = Vec::new();
        canvas.write_png(&mut file).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
        let mut pixels = vec![0; canvas.pixels.len()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (60, 40));
        assert_eq!(pixels, canvas.pixels);
        let at = |x: usize, y: usize| [0, 1, 2].map(|part| pixels[3 * (y * 60 + x) + part]);
        assert_eq!([at(10, 5), at(12, 6), at(13, 6)], [[1, 2, 3], [1, 2, 3], [255; 3]]);
        assert_eq!([at(0, 20), at(59, 20)], [[9; 3]; 2]);
        assert!((20..40).any(|x| (22..32).any(|y| at(x, y)[0] < 64)), "the letters");
        let mut canvas = Canvas::new(20, 20);
        canvas.line((3, 3), (9, 7), Rgb::new(4, 4, 4));
        canvas.line((9, 7), (9, 7), Rgb::new(5, 5, 5));
        assert_eq!((canvas.count(Rgb::new(4, 4, 4)), canvas.count(Rgb::new(5, 5, 5))), (6, 1));
    }
}
