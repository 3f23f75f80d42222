//! Throughput by size of rings, as SVG.

use super::report::{TuningReport, si};
use millstream_measure::chart::escape;
use millstream_planner::tune::{PlanAttempt, TuningStage};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
/// Left, top, right, bottom of the plot.
const FRAME: [f64; 4] = [70.0, 60.0, 735.0, 385.0];
const SERIES: [(TuningStage, &str, &str); 3] = [
    (TuningStage::Batch, "batches", "#3f7d20"),
    (TuningStage::Inside, "rings inside partitions", "#0b6e99"),
    (TuningStage::Between, "rings between partitions", "#c2571a"),
];

/// A point: size, ratio to the default, and its interval.
struct Point {
    size: f64,
    ratio: f64,
    low: f64,
    high: f64,
}

/// Draws the attempts of a search.
pub fn draw(outcome: &TuningReport) -> String {
    let series: Vec<_> = SERIES
        .iter()
        .map(|(stage, name, colour)| (points(&outcome.tuned.attempts, *stage), *name, *colour))
        .filter(|(points, ..)| !points.is_empty())
        .collect();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    let title = escape(&outcome.setting.graph);
    let (figure, unit) = (si(outcome.tuned.figure), outcome.setting.unit);
    text(&mut svg, FRAME[0], 24.0, "start", "#000", &format!("{title}: {figure} {unit}"));
    if series.is_empty() {
        text(&mut svg, WIDTH / 2.0, HEIGHT / 2.0, "middle", "#555", "no size was tried");
        return svg + "</svg>\n";
    }
    let axes = Axes::around(series.iter().flat_map(|(points, ..)| points));
    axes.draw(&mut svg);
    for (at, (points, name, colour)) in series.iter().enumerate() {
        axes.series(&mut svg, points, colour);
        let (x, y) = (FRAME[0] + 200.0 * at as f64, 46.0);
        let _ = writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{colour}\"/>",
            x + 4.0,
            y - 4.0
        );
        text(&mut svg, x + 14.0, y, "start", "#333", name);
    }
    svg + "</svg>\n"
}

/// The latest figure of each size, ascending.
fn points(attempts: &[PlanAttempt], stage: TuningStage) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for attempt in attempts.iter().filter(|attempt| attempt.stage == stage) {
        let Some(size) = attempt.size_bytes else { continue };
        let ratio = attempt.to_default;
        // Plots nothing without measurements or without bounds.
        if ratio.pairs == 0 && ratio.low < ratio.high || !ratio.high.is_finite() {
            continue;
        }
        points.retain(|point| point.size != size as f64);
        let (ratio, low, high) = (ratio.estimate, ratio.low, ratio.high);
        points.push(Point { size: size as f64, ratio, low, high });
    }
    points.sort_by(|a, b| a.size.total_cmp(&b.size));
    points
}

/// The mapping from sizes and ratios to positions.
struct Axes {
    /// Powers of two.
    sizes: [f64; 2],
    /// Ratios.
    ratios: [f64; 2],
    step: f64,
}

impl Axes {
    fn around<'a>(points: impl Iterator<Item = &'a Point>) -> Self {
        let (mut sizes, mut ratios) = ([f64::MAX, f64::MIN], [1.0f64, 1.0f64]);
        for point in points {
            let power = point.size.log2();
            sizes = [sizes[0].min(power), sizes[1].max(power)];
            ratios = [ratios[0].min(point.low), ratios[1].max(point.high)];
        }
        let span = (ratios[1] - ratios[0]).max(0.02);
        let step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|step| span / step <= 8.0);
        let step = step.unwrap_or(1.0);
        let ratios = [(ratios[0] / step).floor() * step, (ratios[1] / step).ceil() * step];
        Self {
            sizes: [sizes[0].floor(), sizes[1].ceil().max(sizes[0].floor() + 1.0)],
            ratios,
            step,
        }
    }

    fn x(&self, size: f64) -> f64 {
        let share = (size.log2() - self.sizes[0]) / (self.sizes[1] - self.sizes[0]);
        FRAME[0] + 15.0 + share * (FRAME[2] - FRAME[0] - 30.0)
    }

    fn y(&self, ratio: f64) -> f64 {
        let share = (ratio - self.ratios[0]) / (self.ratios[1] - self.ratios[0]);
        FRAME[3] - share * (FRAME[3] - FRAME[1])
    }

    fn draw(&self, svg: &mut String) {
        let lines = ((self.ratios[1] - self.ratios[0]) / self.step).round() as i32;
        for line in 0..=lines {
            let ratio = self.ratios[0] + f64::from(line) * self.step;
            let y = self.y(ratio);
            let is_default = (ratio - 1.0).abs() < 1e-9;
            let colour = if is_default { "#888" } else { "#e4e4e4" };
            let (left, right) = (FRAME[0], FRAME[2]);
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"{colour}\" fill=\"none\"/>"
            );
            let label = match is_default {
                true => "default".to_owned(),
                false => format!("{:+.0} %", (ratio - 1.0) * 100.0),
            };
            text(svg, FRAME[0] - 8.0, y + 4.0, "end", "#333", &label);
        }
        for power in self.sizes[0] as i32..=self.sizes[1] as i32 {
            let bytes = f64::from(power).exp2();
            let label = match power {
                20.. => format!("{} MiB", bytes / f64::from(1 << 20)),
                _ => format!("{} KiB", bytes / 1024.0),
            };
            text(svg, self.x(bytes), FRAME[3] + 20.0, "middle", "#333", &label);
        }
        let middle = FRAME[0].midpoint(FRAME[2]);
        text(
            svg,
            middle,
            FRAME[3] + 42.0,
            "middle",
            "#333",
            "size in bytes, of a batch or of each ring",
        );
    }

    fn series(&self, svg: &mut String, points: &[Point], colour: &str) {
        let path: Vec<String> = points
            .iter()
            .map(|point| format!("{:.1} {:.1}", self.x(point.size), self.y(point.ratio)))
            .collect();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"none\" \
             opacity=\"0.5\"/>",
            path.join("L")
        );
        for point in points {
            let (x, y) = (self.x(point.size), self.y(point.ratio));
            let (low, high) = (self.y(point.low), self.y(point.high));
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\" \
                 stroke=\"{colour}\" fill=\"none\"/><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" \
                 fill=\"{colour}\"/>",
                x - 4.0,
                x - 4.0
            );
        }
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, colour: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
    );
}
