//! A plan as an SVG file, for any browser.

use super::flow;
use super::layout::{BOX_WIDTH, GAP_X, HEAD_WIDTH, Layout, MARGIN, layout};
use super::paint::{distance_colour, frame_colours, load_colour};
use crate::place::explain::{self, share_of, time};
use crate::place::{Distance, Placed};
use millstream_draw::{Rect, Sheet, Svg, WHITE};

const LEGEND_HEIGHT: f64 = 58.0;
const LEAST_WIDTH: f64 = 760.0;
/// The width of a lane's load bar.
const BAR_WIDTH: f64 = 158.0;
const INSIDE: &str = "#8d95a1";

impl Placed {
    /// Draws the plan: a lane for each partition, in frames for groups of CPUs; boxes coloured by
    /// load, the width of connections by their traffic.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        let layout = layout(self);
        let (width, height) = (layout.width.max(LEAST_WIDTH), layout.height + LEGEND_HEIGHT);
        let mut svg = Svg::new(width as u32, height as u32);
        svg.fill((0, 0), (width as u32, height as u32), WHITE);
        self.title(&mut svg, title, width);
        self.draw_frames(&mut svg, &layout);
        self.draw_lanes(&mut svg, &layout);
        self.draw_edges(&mut svg, &layout);
        self.draw_blocks(&mut svg, &layout);
        self.draw_labels(&mut svg, &layout);
        self.legend(&mut svg, height - MARGIN - LEGEND_HEIGHT + 22.0);
        svg.element(title)
    }

    fn title(&self, svg: &mut Svg, title: &str, width: f64) {
        let y = MARGIN + 10.0;
        svg.write((MARGIN, y), "font-size=\"20\" font-weight=\"600\"", title);
        let grey = "font-size=\"12.5\" fill=\"#56606e\"";
        let lines = [explain::headline(&self.prediction), explain::limit(&self.prediction)];
        for (line, text) in lines.iter().enumerate() {
            // About 6.4 px a character.
            let most = ((width - 2.0 * MARGIN) / 6.4) as usize;
            let text = shortened(text.trim_end(), most);
            svg.write((MARGIN, y + 24.0 + 18.0 * line as f64), grey, &text);
        }
    }

    fn draw_frames(&self, svg: &mut Svg, layout: &Layout) {
        for (frame, place) in self.frames.iter().zip(&layout.frames) {
            let (fill, border) = frame_colours(frame.depth);
            svg.rect(place, 10.0, format_args!("fill=\"{fill}\" stroke=\"{border}\""), "");
            let style = "font-size=\"11\" fill=\"#56606e\"";
            svg.write((place.x + 12.0, place.y + 16.5), style, &frame.label);
        }
    }

    fn draw_lanes(&self, svg: &mut Svg, layout: &Layout) {
        let prediction = &self.prediction;
        for (load, place) in prediction.partitions.iter().zip(&layout.lanes) {
            let limits = load.name == prediction.bottleneck;
            let border = if limits { "#d9603f" } else { "#c9ced8" };
            let line = if limits { 2.0 } else { 1.0 };
            let style = format!("fill=\"#ffffff\" stroke=\"{border}\" stroke-width=\"{line}\"");
            svg.rect(place, 8.0, style, "");
            let (x, y) = (place.x + 16.0, place.y + 24.0);
            let pinned =
                self.plan.partitions.iter().any(|partition| {
                    partition.name == load.name && partition.cpu == Some(load.cpu)
                });
            let cpu = format!("CPU {}", load.cpu);
            let cpu = if pinned { cpu } else { format!("{cpu}, not pinned") };
            svg.write((x, y), "font-size=\"14\" font-weight=\"600\"", &cpu);
            let share = share_of(load, prediction);
            let style = "font-size=\"13\" font-weight=\"600\" text-anchor=\"end\"";
            svg.write((x + BAR_WIDTH, y), style, &format!("{:.0} %", share * 100.0));
            let grey = "font-size=\"12\" fill=\"#56606e\"";
            svg.write((x, y + 17.0), grey, &shortened(&load.name, 24));
            let parts = [
                (load.work_ns, "#e8865f", "work"),
                (load.talk_ns, "#2f74c0", "connections"),
                (load.shared_ns, "#a7adb8", "sibling"),
            ];
            let bar = Rect { x, y: y + 25.0, width: BAR_WIDTH, height: 8.0 };
            svg.rect(&bar, 4.0, "fill=\"#eef0f4\"", "");
            let mut from = x;
            for (ns, colour, what) in parts.into_iter().filter(|(ns, ..)| *ns > 0.0) {
                let width = ns / prediction.ns_per_item.max(f64::MIN_POSITIVE) * BAR_WIDTH;
                let part = Rect { x: from, y: bar.y, width, height: bar.height };
                let style = format!("fill=\"{colour}\"");
                svg.rect(&part, 0.0, style, &format!("{what}: {}", time(ns)));
                from += width;
            }
        }
    }

    fn draw_blocks(&self, svg: &mut Svg, layout: &Layout) {
        let prediction = &self.prediction;
        for (block, place) in prediction.blocks.iter().zip(&layout.blocks) {
            let share = block.work_ns / prediction.ns_per_item.max(f64::MIN_POSITIVE);
            let colour = load_colour(share);
            let style = format!("fill=\"{colour}\" stroke=\"#7d8591\"");
            svg.rect(place, 6.0, style, "");
            let (x, y) = place.middle();
            let name = shortened(&block.name, 19);
            let size = if name.chars().count() > 16 { 11 } else { 12 };
            let bold = format!("font-size=\"{size}\" font-weight=\"600\" text-anchor=\"middle\"");
            svg.write((x, y - 3.0), bold, &name);
            let cost = if prediction.measured {
                format!("{} · {:.0} %", time(block.work_ns), share * 100.0)
            } else {
                format!("{:.0} %", share * 100.0)
            };
            let small = "font-size=\"10.5\" fill=\"#454d59\" text-anchor=\"middle\"";
            svg.write((x, y + 13.0), small, &cost);
        }
    }

    fn draw_edges(&self, svg: &mut Svg, layout: &Layout) {
        let most = self.prediction.edges.iter().map(|edge| edge.bytes).fold(0.0, f64::max);
        for edge in &self.prediction.edges {
            let (from, to) = (&layout.blocks[edge.writer], &layout.blocks[edge.reader]);
            let share = if most > 0.0 { (edge.bytes / most).sqrt() } else { 0.0 };
            let colour = edge.cut.as_ref().map_or(INSIDE, |cut| distance_colour(cut.distance));
            let what =
                format!("{} to {}: {}", edge.from, edge.to, flow(&self.prediction, edge.bytes));
            svg.arrow(&path(from, to), colour, 1.2 + 3.0 * share, &what);
        }
    }

    /// Draws the traffic of each cut, on top of everything else.
    fn draw_labels(&self, svg: &mut Svg, layout: &Layout) {
        let cuts = self.prediction.edges.iter().filter(|edge| edge.cut.is_some());
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for edge in cuts {
            let (from, to) = (&layout.blocks[edge.writer], &layout.blocks[edge.reader]);
            let (mut x, mut y) = label_place(from, to);
            // Moved on where another label is.
            while taken.iter().any(|(a, b)| (a - x).abs() < 60.0 && (b - y).abs() < 13.0) {
                (x, y) = (x + 9.0, y + 5.0);
            }
            taken.push((x, y));
            let colour = edge.cut.as_ref().map_or(INSIDE, |cut| distance_colour(cut.distance));
            let style = format!(
                "font-size=\"10.5\" font-weight=\"600\" fill=\"{colour}\" stroke=\"#ffffff\" \
                 stroke-width=\"3.5\" paint-order=\"stroke\" text-anchor=\"middle\""
            );
            svg.write((x, y), style, &flow(&self.prediction, edge.bytes));
        }
    }

    fn legend(&self, svg: &mut Svg, y: f64) {
        let mut x = MARGIN;
        let grey = "font-size=\"11\" fill=\"#56606e\"";
        svg.write((x, y + 10.0), grey, "block: share of the fullest CPU");
        x += 176.0;
        for step in 0..24 {
            let colour = load_colour(f64::from(step) / 23.0);
            let part = Rect { x, y, width: 5.2, height: 12.0 };
            svg.rect(&part, 0.0, format_args!("fill=\"{colour}\""), "");
            x += 5.0;
        }
        svg.write((x + 6.0, y + 10.0), grey, "all of it");
        x += 70.0;
        for (name, colour) in
            [("work", "#e8865f"), ("connections", "#2f74c0"), ("sibling or others", "#a7adb8")]
        {
            x = key(svg, (x, y), (14.0, 8.0), colour, name);
        }
        let (mut x, y) = (MARGIN, y + 24.0);
        svg.write((x, y + 10.0), grey, "connection: across");
        x += 108.0;
        for distance in Distance::ALL {
            let mut cuts = self.prediction.edges.iter().filter_map(|edge| edge.cut.as_ref());
            if !cuts.any(|cut| cut.distance == distance) {
                continue;
            }
            let (colour, name) = (distance_colour(distance), distance.to_string());
            x = key(svg, (x, y), (22.0, 3.5), colour, &name);
        }
        key(svg, (x, y), (22.0, 2.0), INSIDE, "inside a partition");
    }
}

/// Explains a colour in a row of the legend; returns the place for the next one.
fn key(svg: &mut Svg, (x, y): (f64, f64), size: (f64, f64), colour: &str, name: &str) -> f64 {
    let (width, height) = size;
    let patch = Rect { x, y: y + 6.0 - height / 2.0, width, height };
    svg.rect(&patch, height / 4.0, format_args!("fill=\"{colour}\""), "");
    svg.write((x + width + 5.0, y + 10.0), "font-size=\"11\" fill=\"#56606e\"", name);
    x + width + 20.0 + 6.0 * name.len() as f64
}

/// Returns the path from one box to another: straight along a row, around the boxes to the row
/// below, curved to another lane.
fn path(from: &Rect, to: &Rect) -> String {
    let (_, a) = from.middle();
    let (_, b) = to.middle();
    let (start, end) = (from.right(), to.x - 4.0);
    if end > start && (a - b).abs() < 200.0 && to.x - from.right() < BOX_WIDTH {
        let bend = (end - start) / 2.0;
        return format!(
            "M{start:.1},{a:.1} C{:.1},{a:.1} {:.1},{b:.1} {end:.1},{b:.1}",
            start + bend,
            end - bend
        );
    }
    let down = to.y > from.bottom();
    let up = to.bottom() < from.y;
    if !down && !up {
        // Above the boxes in between.
        let (x, y) = (from.right() - 20.0, to.x + 20.0);
        let top = from.y.min(to.y);
        return format!(
            "M{x:.1},{:.1} C{x:.1},{:.1} {y:.1},{:.1} {y:.1},{:.1}",
            from.y,
            top - 22.0,
            top - 22.0,
            to.y - 4.0
        );
    }
    let (x, y) = (from.middle().0, to.middle().0);
    let (leave, arrive) =
        if down { (from.bottom(), to.y - 5.0) } else { (from.y, to.bottom() + 5.0) };
    let bend = (arrive - leave) * 0.5;
    format!(
        "M{x:.1},{leave:.1} C{x:.1},{:.1} {y:.1},{:.1} {y:.1},{arrive:.1}",
        leave + bend,
        arrive - bend
    )
}

fn label_place(from: &Rect, to: &Rect) -> (f64, f64) {
    let (x, y) = ((from.middle().0 + to.middle().0) / 2.0, (from.middle().1 + to.middle().1) / 2.0);
    if to.y > from.bottom() {
        return (x, (from.bottom() + to.y) / 2.0 + 4.0);
    }
    if to.bottom() < from.y {
        return (x, (to.bottom() + from.y) / 2.0 + 4.0);
    }
    (x, y - GAP_X / 2.0)
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

const _: () = assert!(BAR_WIDTH < HEAD_WIDTH);
