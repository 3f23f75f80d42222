//! A sheet as a drawing in a page: SVG 1.1, without references to other files.

use std::fmt::{Arguments, Display, Write};

use super::{Alignment, Rgb, Sheet};

/// A rectangle, in pixels from a sheet's upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// The left edge.
    pub x: f64,
    /// The upper edge.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

impl Rect {
    /// Returns the right edge.
    #[must_use]
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Returns the lower edge.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// Returns the middle.
    #[must_use]
    pub fn middle(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }
}

/// An SVG drawing: a [`Sheet`], and what only SVG can show. A `style` is attributes as they are
/// written; texts and titles are escaped.
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

    /// Draws a path that ends in an arrowhead; its title is shown under the pointer.
    pub fn arrow(&mut self, path: &str, colour: &str, width: f64, title: &str) {
        let (id, title) = (format!("head{}", colour.trim_start_matches('#')), escape(title));
        if !self.body.contains(&format!("id=\"{id}\"")) {
            self.add(format_args!(
                "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"5\" refY=\"4\" markerWidth=\"9\" \
                 markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
                 <path d=\"M0,0.5 L8,4 L0,7.5 z\" fill=\"{colour}\"/></marker>"
            ));
        }
        self.add(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\" \
             marker-end=\"url(#{id})\"><title>{title}</title></path>"
        ));
    }

    /// Draws a rectangle with round corners; its title, unless empty, is shown under the pointer.
    pub fn rect(&mut self, place: &Rect, round: f64, style: impl Display, title: &str) {
        let Rect { x, y, width, height } = place;
        let title = match title {
            "" => String::new(),
            title => format!("<title>{}</title>", escape(title)),
        };
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             rx=\"{round}\" {style}>{title}</rect>"
        ));
    }

    /// Writes text; `at` is an end of its base line.
    pub fn write(&mut self, (x, y): (f64, f64), style: impl Display, text: &str) {
        let text = escape(text);
        self.add(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>"));
    }

    fn add(&mut self, element: Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

impl Sheet for Svg {
    fn line(&mut self, from: (i32, i32), to: (i32, i32), colour: Rgb) {
        let ((x1, y1), (x2, y2), colour) = (from, to, hex(colour));
        self.add(format_args!(
            "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"{colour}\" shape-rendering=\"crispEdges\"/>"
        ));
    }

    fn curve(&mut self, points: &[(i32, i32)], colour: Rgb) {
        if points.is_empty() {
            return;
        }
        let points: String = points.iter().map(|(x, y)| format!("{x},{y} ")).collect();
        let colour = hex(colour);
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        ));
    }

    fn fill(&mut self, corner: (i32, i32), size: (u32, u32), colour: Rgb) {
        let ((x, y), (width, height), colour) = (corner, size, hex(colour));
        self.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"
        ));
    }

    fn text(&mut self, (x, y): (i32, i32), alignment: Alignment, colour: Rgb, text: &str) {
        let anchor = match alignment {
            Alignment::Left => "start",
            Alignment::Center => "middle",
            Alignment::Right => "end",
        };
        let colour = hex(colour);
        let style = format!("font-size=\"11\" text-anchor=\"{anchor}\" fill=\"{colour}\"");
        self.write((x.into(), y.into()), style, text);
    }

    fn title(&mut self, (x, y): (i32, i32), colour: Rgb, text: &str) {
        let colour = hex(colour);
        let style = format!("font-size=\"14\" font-weight=\"bold\" fill=\"{colour}\"");
        self.write((x.into(), y.into()), style, text);
    }
}

fn hex(colour: Rgb) -> String {
    let [red, green, blue] = colour.parts();
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes text for HTML and SVG, also for attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLUE;

    #[test]
    fn what_is_drawn_stands_in_the_element_and_text_cannot_break_out_of_it() {
        let mut svg = Svg::new(100, 50);
        svg.curve(&[(1, 2), (3, 4)], BLUE);
        svg.curve(&[], BLUE);
        svg.text((5, 6), Alignment::Right, BLUE, "<script>\"&");
        let text = svg.element("a & b");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{text}");
        assert!(text.contains("<polyline points=\"1,2 3,4 \" fill=\"none\" stroke=\"#0b6e99\""));
        assert!(text.contains(">&lt;script&gt;&quot;&amp;</text>"), "{text}");
        assert!(text.contains("aria-label=\"a &amp; b\""), "{text}");
        assert_eq!(text.matches("<polyline").count(), 1);
    }
}
