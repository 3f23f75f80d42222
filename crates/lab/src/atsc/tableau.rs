//! The picture of receivers' limits.

use super::table::{LimitsTable, rate_word};
use super::{Axis, BACKGROUND_CN_DB, Point, StoredResult};
use millstream_draw::{
    Alignment, BLACK, BLUE, Canvas, GREEN, GREY, ORANGE, Panel, Rgb, Scale, Sheet, WHITE,
};

/// Size of a cell, height of a table's head, and width of small and of large letters.
const CELL: (u32, u32) = (46, 18);
const TITLE: i32 = 34;
const LETTER: i32 = 6;
const LARGE_LETTER: i32 = 9;

/// Distance from the edge, and between tables.
const EDGE: i32 = 20;
const GAP: i32 = 30;

/// Height of the curves of noise, with their labels.
const CURVES: (u32, i32) = (200, 290);

/// The lowest error rate of the curves: no rate of the packets counted lies on it.
const LEAST: f64 = 1e-4;

/// Draws error rates: curves against C/N, below them tables of echoes by delay and level, and by
/// rate of rotation and level, the receivers side by side.
#[must_use]
pub fn tableau(lines: &[&StoredResult], receivers: &[String], title: &str) -> Canvas {
    let rows: [&[Axis]; 3] =
        [&[Axis::Echo], &[Axis::Doppler], &[Axis::Ensemble, Axis::Clock, Axis::Carrier]];
    let rows = rows.map(|axes| -> Vec<LimitsTable> {
        axes.iter().flat_map(|axis| LimitsTable::of(*axis, lines, receivers)).collect()
    });
    let wide = |tables: &[LimitsTable]| tables.iter().map(|t| width(t) + GAP).sum::<i32>();
    let sheet = rows.iter().map(|tables| wide(tables)).max().unwrap_or(0).max(560) + 2 * EDGE;
    let high =
        |tables: &[LimitsTable]| tables.iter().map(height).max().map_or(0, |high| high + GAP);
    let noise = has_noise(lines);
    let curves = if noise { CURVES.1 } else { 0 };
    let tall = 70 + curves + rows.iter().map(|tables| high(tables)).sum::<i32>();
    let mut canvas = Canvas::new(sheet as u32, tall as u32);
    canvas.title((EDGE, 24), BLACK, title);
    let words = format!(
        "packet error rate; 0: no packet wrong; C/N {BACKGROUND_CN_DB} dB where it is not varied"
    );
    canvas.text((EDGE, 42), Alignment::Left, GREY, &words);
    let mut top = 70;
    if noise {
        noise_curves(&mut canvas, lines, receivers, (EDGE + 40, top + 20), sheet - 2 * EDGE - 60);
        top += curves;
    }
    for tables in &rows {
        let mut left = EDGE;
        for table in tables {
            draw(&mut canvas, table, (left, top));
            left += width(table) + GAP;
        }
        top += high(tables);
    }
    canvas
}

fn has_noise(lines: &[&StoredResult]) -> bool {
    lines.iter().any(|line| line.point.axis() == Axis::Noise)
}

fn cell_width(table: &LimitsTable) -> i32 {
    (CELL.0 as i32).max(longest(table.columns.iter()) * LETTER + 8)
}

/// Width of the heads of rows.
fn heads_width(table: &LimitsTable) -> i32 {
    longest(table.rows.iter().map(|(head, _)| head)) * LETTER + 10
}

fn longest<'a>(words: impl Iterator<Item = &'a String>) -> i32 {
    words.map(|word| word.chars().count()).max().unwrap_or(0) as i32
}

fn width(table: &LimitsTable) -> i32 {
    let cells = heads_width(table) + table.columns.len() as i32 * cell_width(table);
    cells.max(table.title.chars().count() as i32 * LARGE_LETTER)
}

fn height(table: &LimitsTable) -> i32 {
    TITLE + table.rows.len() as i32 * CELL.1 as i32
}

fn noise_curves(
    canvas: &mut Canvas,
    lines: &[&StoredResult],
    receivers: &[String],
    corner: (i32, i32),
    width: i32,
) {
    let points = |receiver: &String| {
        let of = lines.iter().filter(|line| line.receiver == *receiver);
        let mut points: Vec<(f64, f64)> = of
            .filter_map(|line| match line.point {
                Point::Noise { cn_db } => Some((cn_db, line.score.error_rate().max(LEAST).log10())),
                _ => None,
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let all: Vec<_> = receivers.iter().map(points).collect();
    let cn = all.iter().flatten().map(|point| point.0);
    let (low, high) = cn.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    let x = Scale::new(low, high, 10.0, "C/N in 6 MHz, dB");
    let y = Scale::new(LEAST.log10(), 0.0, 4.0, "power of ten; the lowest: none");
    let panel = Panel::new(corner, (width as u32, CURVES.0), x, y);
    panel.frame(canvas, "White noise");
    let (at, base) = (corner.0 + width - 160, corner.1 + 16);
    for (n, (points, receiver)) in all.iter().zip(receivers).enumerate() {
        let colour = [BLUE, ORANGE, GREEN][n % 3];
        panel.curve(canvas, points, colour);
        canvas.text((at, base + 14 * n as i32), Alignment::Left, colour, receiver);
    }
}

fn draw(canvas: &mut Canvas, table: &LimitsTable, (left, top): (i32, i32)) {
    let (wide, heads) = (cell_width(table), heads_width(table));
    canvas.title((left, top + 10), BLACK, &table.title);
    for (n, column) in table.columns.iter().enumerate() {
        let middle = left + heads + wide * n as i32 + wide / 2;
        canvas.text((middle, top + 28), Alignment::Center, GREY, column);
    }
    for (n, (head, cells)) in table.rows.iter().enumerate() {
        let y = top + TITLE + n as i32 * CELL.1 as i32;
        canvas.text((left + heads - 6, y + 12), Alignment::Right, GREY, head);
        for (n, rate) in cells.iter().enumerate() {
            let x = left + heads + wide * n as i32;
            let Some(rate) = rate else { continue };
            let (ground, ink) = colours(*rate);
            canvas.fill((x, y), (wide as u32 - 1, CELL.1 - 1), ground);
            canvas.text((x + wide / 2, y + 12), Alignment::Center, ink, &rate_word(*rate));
        }
    }
}

/// Background and text colour for an error rate: green for zero, then by powers of ten to dark.
fn colours(rate: f64) -> (Rgb, Rgb) {
    match rate {
        0.0 => (Rgb::new(0xcf, 0xe8, 0xc4), BLACK),
        ..1e-3 => (Rgb::new(0xf4, 0xec, 0xb0), BLACK),
        ..1e-2 => (Rgb::new(0xf3, 0xcf, 0x8a), BLACK),
        ..0.1 => (Rgb::new(0xe8, 0x9b, 0x5d), BLACK),
        ..0.9 => (Rgb::new(0xc2, 0x57, 0x1a), WHITE),
        _ => (Rgb::new(0x6e, 0x1f, 0x1f), WHITE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atsc::PacketScore;

    #[test]
    fn every_cell_that_is_known_has_the_colour_of_its_rate() {
        let line = |point, receiver: &str, right| {
            let score = PacketScore { expected: 100, right, ..PacketScore::default() };
            let receiver = receiver.to_owned();
            StoredResult { point, receiver, seconds: 1.0, seed: 1, score }
        };
        let echo = Point::Echo { delay_us: 1.0, level_db: -6.0 };
        let lines = [
            line(Point::noise(15.0), "a", 100),
            line(Point::noise(16.0), "a", 100),
            line(echo, "a", 100),
            line(echo, "b", 0),
        ];
        let lines: Vec<&StoredResult> = lines.iter().collect();
        let receivers = ["a".to_owned(), "b".to_owned()];
        let canvas = tableau(&lines, &receivers, "Title");
        let of = |colour: Rgb| canvas.count(colour);
        let cell = (CELL.0 - 1) * (CELL.1 - 1);
        for rate in [0.0, 1.0] {
            let (ground, _) = colours(rate);
            assert!((cell / 2..=cell).contains(&of(ground)), "{rate}: {}", of(ground));
        }
        assert!(of(BLUE) > 100, "a curve");
    }
}
