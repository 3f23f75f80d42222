//! Pixels, lines and letters.

use embedded_graphics::Pixel;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15_BOLD};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::{DrawTarget, Drawable, Primitive};
use embedded_graphics::primitives::{Line, PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Alignment, Text};
use std::convert::Infallible;
use std::io::Write;

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl From<Rgb> for Rgb888 {
    fn from(Rgb(r, g, b): Rgb) -> Self {
        Self::new(r, g, b)
    }
}

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

    /// Returns the width in pixels.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the height in pixels.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Draws a line; parts outside the sheet are not drawn.
    pub fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        let style = PrimitiveStyle::with_stroke(colour.into(), 1);
        let line = Line::new(from.into(), to.into());
        let Ok(()) = line.into_styled(style).draw(self);
    }

    /// Fills a rectangle of this size.
    pub fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb) {
        let area = Rectangle::new(corner.into(), size.into());
        let Ok(()) = area.into_styled(PrimitiveStyle::with_fill(colour.into())).draw(self);
    }

    /// Writes small text; `at` is the left end, the middle or the right end of its base line, for
    /// an `anchor` of -1, 0 or 1.
    pub fn text(&mut self, at: (i32, i32), anchor: i32, colour: Rgb, text: &str) {
        self.write(&FONT_6X10, at, anchor, colour, text);
    }

    /// Writes large text.
    pub fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str) {
        self.write(&FONT_9X15_BOLD, at, -1, colour, text);
    }

    fn write(&mut self, font: &MonoFont, at: (i32, i32), anchor: i32, colour: Rgb, text: &str) {
        let alignment = match anchor {
            ..0 => Alignment::Left,
            0 => Alignment::Center,
            _ => Alignment::Right,
        };
        let style = MonoTextStyle::new(font, colour.into());
        let Ok(_) = Text::with_alignment(text, at.into(), style, alignment).draw(self);
    }

    /// Returns how many pixels have this colour.
    #[must_use]
    pub fn count(&self, Rgb(r, g, b): Rgb) -> u32 {
        self.pixels.chunks_exact(3).filter(|pixel| **pixel == [r, g, b]).count() as u32
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
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        use embedded_graphics::pixelcolor::RgbColor;
        for Pixel(Point { x, y }, colour) in pixels {
            let inside = |at: i32, size: u32| u32::try_from(at).ok().filter(|at| *at < size);
            if let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) {
                let at = 3 * (y * self.width + x) as usize;
                self.pixels[at..at + 3].copy_from_slice(&[colour.r(), colour.g(), colour.b()]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_a_png_that_a_decoder_reads_back() {
        let mut canvas = Canvas::new(60, 40);
        canvas.fill((10, 5), (3, 2), Rgb(1, 2, 3));
        canvas.line((-5, 20), (100, 20), Rgb(9, 9, 9));
        canvas.text((30, 30), 0, Rgb(0, 0, 0), "µs");
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
        assert!((20..40).any(|x| (22..32).any(|y| at(x, y) == [0; 3])), "the letters");
    }
}
