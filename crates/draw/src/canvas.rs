//! Pixels, lines and letters.

use embedded_graphics::Pixel;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::iso_8859_1::{FONT_6X10, FONT_9X15_BOLD};
use embedded_graphics::pixelcolor::RgbColor;
use embedded_graphics::prelude::{DrawTarget, Drawable, Primitive};
use embedded_graphics::primitives::{Line, PrimitiveStyle, Rectangle};
use embedded_graphics::text::Text;
use std::convert::Infallible;
use std::io::Write;

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
        let wanted = [colour.r(), colour.g(), colour.b()];
        self.pixels.chunks_exact(3).filter(|pixel| **pixel == wanted).count() as u32
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

    fn write(&mut self, at: (i32, i32), style: MonoTextStyle<'_, Rgb>, to: Alignment, text: &str) {
        let Ok(_) = Text::with_alignment(text, at.into(), style, to).draw(self);
    }
}

impl Sheet for Canvas {
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        let line = Line::new(from.into(), to.into());
        let Ok(()) = line.into_styled(PrimitiveStyle::with_stroke(colour, 1)).draw(self);
    }

    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb) {
        let area = Rectangle::new(corner.into(), size.into());
        let Ok(()) = area.into_styled(PrimitiveStyle::with_fill(colour)).draw(self);
    }

    fn text(&mut self, at: (i32, i32), alignment: Alignment, colour: Rgb, text: &str) {
        self.write(at, MonoTextStyle::new(&FONT_6X10, colour), alignment, text);
    }

    fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str) {
        self.write(at, MonoTextStyle::new(&FONT_9X15_BOLD, colour), Alignment::Left, text);
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb>>,
    {
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
        assert!((20..40).any(|x| (22..32).any(|y| at(x, y) == [0; 3])), "the letters");
    }
}
