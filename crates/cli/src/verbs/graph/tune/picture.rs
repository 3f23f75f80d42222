//! Throughput by size of rings, as SVG.

use super::report::si;
use millstream_draw::{
    Alignment, BLACK, BLUE, GREEN, GREY, ORANGE, Panel, Rgb, Scale, Sheet, Svg, WHITE,
};
use millstream_planner::tune::{PlanAttempt, Tuned, TuningStage};

const WIDTH: u32 = 760;
const HEIGHT: u32 = 440;
/// The upper left corner and the size of the plot.
const CORNER: (i32, i32) = (70, 70);
const FRAME: (u32, u32) = (665, 315);
const SERIES: [(TuningStage, &str, Rgb); 3] = [
    (TuningStage::Batch, "batches", GREEN),
    (TuningStage::Inside, "rings inside partitions", BLUE),
    (TuningStage::Between, "rings between partitions", ORANGE),
];

/// Draws the attempts of a search.
pub fn draw(graph: &str, unit: &str, tuned: &Tuned) -> String {
    let series = SERIES.map(|(stage, ..)| points(&tuned.attempts, stage));
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.fill((0, 0), (WIDTH, HEIGHT), WHITE);
    let title = format!("{graph}: {} {unit}", si(tuned.figure));
    svg.title((CORNER.0, 24), BLACK, &title);
    let all = || series.iter().flatten();
    let Some(first) = all().next() else {
        let middle = (WIDTH as i32 / 2, HEIGHT as i32 / 2);
        svg.text(middle, Alignment::Center, GREY, "no size was tried");
        return svg.element(&title);
    };
    let (mut sizes, mut changes) = ([first[0]; 2], [0.0f64; 2]);
    for [size, _, low, high] in all() {
        sizes = [sizes[0].min(*size), sizes[1].max(*size)];
        changes = [changes[0].min(*low), changes[1].max(*high)];
    }
    // Room beside the outermost points.
    let x = Scale::bytes(sizes[0] / 1.2, sizes[1] * 1.2, "size of a batch or of each ring");
    let room = ((changes[1] - changes[0]) * 0.05).max(1.0);
    let y = Scale::new(changes[0] - room, changes[1] + room, 8.0, "% above the default");
    let panel = Panel::new(CORNER, FRAME, x, y);
    panel.frame(&mut svg, "");
    panel.curve(&mut svg, &[(0.0, 0.0), (f64::MAX, 0.0)], GREY);
    let drawn = series.iter().zip(SERIES).filter(|(points, _)| !points.is_empty());
    for (at, (points, (_, name, colour))) in drawn.enumerate() {
        let line: Vec<_> = points.iter().map(|[size, change, ..]| (*size, *change)).collect();
        panel.curve(&mut svg, &line, colour);
        panel.intervals(&mut svg, points, colour);
        svg.name((CORNER.0 + 200 * at as i32, 46), Alignment::Left, colour, name);
    }
    svg.element(&title)
}

/// The latest figure of each size, ascending: the size, the change from the default in per cent,
/// and its bounds.
fn points(attempts: &[PlanAttempt], stage: TuningStage) -> Vec<[f64; 4]> {
    let mut points: Vec<[f64; 4]> = Vec::new();
    for attempt in attempts.iter().filter(|attempt| attempt.stage == stage) {
        let Some(size) = attempt.size_bytes else { continue };
        let ratio = attempt.to_default;
        // Plots nothing without measurements or without bounds.
        if ratio.pairs == 0 && ratio.low < ratio.high || !ratio.high.is_finite() {
            continue;
        }
        points.retain(|point| point[0] != size as f64);
        let [change, low, high] =
            [ratio.estimate, ratio.low, ratio.high].map(|ratio| (ratio - 1.0) * 100.0);
        points.push([size as f64, change, low, high]);
    }
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    points
}
