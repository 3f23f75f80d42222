//! A sheet as a drawing in a page: SVG 1.1, without references to other files.

use std::fmt::Write;

use super::{Rgb, Sheet};

/// An SVG drawing.
#[derive(Clone, Debug)]
pub struct Svg {
    width: u32,
    height: u32,
    body: String,
}

impl Svg {
    /// Returns an empty sheet.
    #[must_use]
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Returns the SVG element; screen readers read `about`.
    #[must_use]
    pub fn element(&self, about: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\" \
             font-family=\"sans-serif\">\n{body}</svg>\n",
            escape(about)
        )
    }

    fn write(&mut self, at: (i32, i32), anchor: &str, style: &str, colour: Rgb, text: &str) {
        let (x, y) = at;
        let (colour, text) = (hex(colour), escape(text));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{colour}\" {style}>{text}\
             </text>"
        );
    }
}

impl Sheet for Svg {
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"{}\" shape-rendering=\"crispEdges\"/>",
            hex(colour)
        );
    }

    fn curve(&mut self, points: &[(i32, i32)], colour: Rgb) {
        if points.is_empty() {
            return;
        }
        self.body += "<polyline points=\"";
        for (x, y) in points {
            let _ = write!(self.body, "{x},{y} ");
        }
        let colour = hex(colour);
        let _ = writeln!(self.body, "\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
    }

    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb) {
        let ((x, y), (width, height)) = (corner, size);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
            hex(colour)
        );
    }

    fn text(&mut self, at: (i32, i32), anchor: i32, colour: Rgb, text: &str) {
        let anchor = match anchor {
            ..0 => "start",
            0 => "middle",
            _ => "end",
        };
        self.write(at, anchor, "font-size=\"11\"", colour, text);
    }

    fn title(&mut self, at: (i32, i32), colour: Rgb, text: &str) {
        self.write(at, "start", "font-size=\"14\" font-weight=\"bold\"", colour, text);
    }
}

fn hex(Rgb(r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Escapes text for HTML and SVG, also for attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::BLUE;

    #[test]
    fn what_is_drawn_stands_in_the_element_and_text_cannot_break_out_of_it() {
        let mut svg = Svg::new(100, 50);
        svg.curve(&[(1, 2), (3, 4)], BLUE);
        svg.curve(&[], BLUE);
        svg.text((5, 6), 1, BLUE, "<script>\"&");
        let text = svg.element("a & b");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{text}");
        assert!(text.contains("<polyline points=\"1,2 3,4 \" fill=\"none\" stroke=\"#0b6e99\""));
        assert!(text.contains(">&lt;script&gt;&quot;&amp;</text>"), "{text}");
        assert!(text.contains("aria-label=\"a &amp; b\""), "{text}");
        assert_eq!(text.matches("<polyline").count(), 1);
    }
}
