//! The picture of a recording.

use super::reception::{ROWS, ReceptionReport, SPAN};
use millstream_draw::{Alignment, BLACK, BLUE, Canvas, GREEN, GREY, ORANGE, Panel, Scale, Sheet};

const WIDTH: u32 = 1240;
const HEIGHT: u32 = 940;

/// Size of a panel, and the positions of their columns and rows.
const PANEL: (u32, u32) = (530, 210);
const COLUMNS: [i32; 2] = [65, 675];
const ROWS_AT: [i32; 3] = [85, 370, 655];

/// Draws a reception report: spectrum, echoes, levels over time and their histogram, modulation
/// error ratio over time, taps.
#[must_use]
pub fn portrait(survey: &ReceptionReport, title: &str) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    canvas.title((20, 24), BLACK, title);
    canvas.text((20, 42), Alignment::Left, GREY, &words(survey));
    spectrum(&mut canvas, survey, (COLUMNS[0], ROWS_AT[0]));
    echoes(&mut canvas, survey, (COLUMNS[1], ROWS_AT[0]));
    levels(&mut canvas, survey, (COLUMNS[0], ROWS_AT[1]));
    histogram(&mut canvas, survey, (COLUMNS[1], ROWS_AT[1]));
    course(&mut canvas, survey, (COLUMNS[0], ROWS_AT[2]));
    taps(&mut canvas, survey, (COLUMNS[1], ROWS_AT[2]));
    canvas
}

fn words(survey: &ReceptionReport) -> String {
    let status = &survey.status;
    let value = |value: Option<f64>, unit: &str| {
        // A value that rounds to 0 has no minus sign.
        let rounded = value.map(|value| (value * 10.0).round() / 10.0 + 0.0);
        rounded.map_or("-".to_owned(), |value| format!("{value:.1} {unit}"))
    };
    format!(
        "{:.2} s   {}   MER {}   pilot {}   clock {}   {} packets, {} damaged   {} bytes corrected",
        survey.seconds,
        status.state,
        value(status.mer_db, "dB"),
        value(status.pilot_offset_hz, "Hz"),
        value(status.clock_offset_ppm, "ppm"),
        status.packets,
        status.uncorrected_packets,
        status.corrected_bytes,
    )
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

fn spectrum(canvas: &mut Canvas, survey: &ReceptionReport, corner: (i32, i32)) {
    let points: Vec<_> = survey.spectrum.iter().map(|(hz, db)| (hz / 1e6, *db)).collect();
    let (_, top) = bounds(points.iter().map(|point| point.1));
    let (low, high) = bounds(points.iter().map(|point| point.0));
    let top = (top / 10.0).ceil() * 10.0;
    let x = Scale::new(low, high, 8.0, "MHz from the middle of the channel");
    let y = Scale::new(top - 80.0, top, 6.0, "dB of full scale, a bin");
    let panel = Panel::new(corner, PANEL, x, y);
    panel.frame(canvas, "Spectrum");
    panel.curve(canvas, &points, BLUE);
}

fn echoes(canvas: &mut Canvas, survey: &ReceptionReport, corner: (i32, i32)) {
    let (low, high) = bounds(survey.echoes.iter().map(|point| point.0));
    let x = Scale::new(low, high, 8.0, "µs after the strongest");
    let y = Scale::new(-60.0, 0.0, 6.0, "dB");
    let panel = Panel::new(corner, PANEL, x, y);
    panel.frame(canvas, "Echoes, before equalising");
    panel.curve(canvas, &survey.echoes, BLUE);
}

fn levels(canvas: &mut Canvas, survey: &ReceptionReport, corner: (i32, i32)) {
    let span = f64::from(SPAN);
    let x = Scale::new(0.0, survey.seconds, 8.0, "s");
    let y = Scale::new(-span, span, 6.0, "level");
    let panel = Panel::new(corner, PANEL, x, y);
    panel.frame(canvas, "Symbols, equalised");
    panel.density(canvas, &survey.levels, BLUE);
}

fn histogram(canvas: &mut Canvas, survey: &ReceptionReport, corner: (i32, i32)) {
    let span = f64::from(SPAN);
    let most = survey.histogram.iter().copied().max().unwrap_or(0).max(1);
    let all: f64 = survey.histogram.iter().map(|count| f64::from(*count)).sum::<f64>().max(1.0);
    let level = |row: usize| (row as f64 + 0.5) / ROWS as f64 * 2.0 * span - span;
    let share = |count: u32| 100.0 * f64::from(count) / all;
    let rows = survey.histogram.iter().enumerate();
    let points: Vec<_> = rows.map(|(row, count)| (level(row), share(*count))).collect();
    let x = Scale::new(-span, span, 10.0, "level");
    let y = Scale::new(0.0, share(most) * 1.1, 5.0, "% of symbols");
    let panel = Panel::new(corner, PANEL, x, y);
    panel.frame(canvas, "Histogram, second half");
    panel.stems(canvas, &points, BLUE);
    panel.curve(canvas, &points, BLUE);
}

fn course(canvas: &mut Canvas, survey: &ReceptionReport, corner: (i32, i32)) {
    let known = survey.course.iter().map(|moment| moment.mer_db.unwrap_or(f64::NAN));
    let (low, high) = bounds(known.clone());
    let (low, high) = ((low / 5.0).floor() * 5.0, (high / 5.0).ceil() * 5.0);
    let x = Scale::new(0.0, survey.seconds, 8.0, "s");
    let panel = Panel::new(corner, PANEL, x, Scale::new(low, high, 5.0, "dB; orange: damage"));
    panel.frame(canvas, "Modulation error ratio");
    let bad = survey.course.iter().filter(|moment| moment.bad_packets > 0);
    let bad: Vec<_> = bad.map(|moment| (moment.time_s, high)).collect();
    panel.stems(canvas, &bad, ORANGE);
    let points: Vec<_> = survey.course.iter().map(|moment| moment.time_s).zip(known).collect();
    panel.curve(canvas, &points, BLUE);
}

fn taps(canvas: &mut Canvas, survey: &ReceptionReport, corner: (i32, i32)) {
    let [forward, feedback] = &survey.taps;
    let both = || forward.iter().chain(feedback);
    let (first, last) = bounds(both().map(|tap| tap.0));
    let (low, high) = bounds(both().map(|tap| tap.1));
    let x = Scale::new(first, last, 8.0, "symbols; green: decision feedback");
    let panel = Panel::new(corner, PANEL, x, Scale::new(low.min(-0.2), high.max(1.0), 5.0, ""));
    panel.frame(canvas, "Equaliser taps");
    panel.stems(canvas, forward, BLUE);
    panel.stems(canvas, feedback, GREEN);
}
