//! The delay of a change by the size of the transmit buffer, as a table and a picture.

use super::search::calculated;
use super::{Args, check};
use crate::child_radio::ChildRadio;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::output::Report;
use crate::table::Table;
use millstream_draw::{BLACK, BLUE, GREY, Panel, Scale, Sheet, Svg, WHITE};
use millstream_lab::response::{self, Response};
use millstream_measure::picture::short_time;
use millstream_radio::DeviceArgs;

/// Buffers, as multiples of the calculated one.
const MULTIPLES: [u64; 4] = [1, 2, 4, 8];
/// From the beginning to the first sample, seconds of this machine's time.
const LEAD_S: f64 = 0.1;
/// Looks at the delay with each buffer.
const LOOKS: usize = 17;

const WIDTH: u32 = 640;
const HEIGHT: u32 = 400;
/// The upper left corner and the size of the plot.
const CORNER: (i32, i32) = (70, 60);
const FRAME: (u32, u32) = (540, 280);

crate::results! {
    /// With `--series`: the delay of a change by the transmit buffer.
    struct DelayResults<'a> {
        /// Samples per second.
        rate_hz: f64,
        /// Each buffer.
        series: &'a [Response],
        /// Seconds of delay for a second of buffer.
        delay_per_buffer: f64,
    }
}

/// Succeeds when no buffer ran empty.
pub fn run(args: &Args, latency_s: f64) -> anyhow::Result<Report> {
    args.picture.as_deref().map_or(Ok(()), |path| args.force.check(path))?;
    interrupt::install();
    let least = calculated(args, latency_s)?;
    let cases = MULTIPLES.map(|multiple| least * multiple);
    let mut series = Series { args };
    let all: Vec<_> = in_rounds(&mut series, &cases, 1).whole()?.outcomes().collect();
    if let Some(path) = &args.picture {
        args.force.write(path, draw(args.rate, &all))?;
    }
    let time = |s: f64| short_time((s.max(0.0) * 1e9).round() as u64);
    let table = Table::of(&all)
        .right("samples", |one| one.buffer_samples.to_string())
        .right("last", |one| time(one.buffer_s))
        .right("delay", |one| time(one.median_s))
        .right("least", |one| time(one.least_s))
        .right("largest", |one| time(one.largest_s))
        .right("of the buffer", |one| format!("{:.2}", one.median_s / one.buffer_s));
    let slope = slope(&all);
    let text = format!(
        "how long after its sending a sample leaves the antenna, at {} MS/s, by the transmit \
         buffer\n\n{}\nwith each second of buffer a change comes {slope:.2} s later\n",
        args.rate / 1e6,
        table.text()
    );
    let failure = all.iter().find(|one| one.underflows > 0).map(|one| {
        format!(
            "the buffer of {} samples ran empty, so its delay means nothing: the machine is busy; \
             try a smaller --time-scale",
            one.buffer_samples
        )
    });
    let results = DelayResults { rate_hz: args.rate, series: &all, delay_per_buffer: slope };
    Ok(Report::of(text, &results).failing(failure))
}

/// The measurement of delays, by the samples of the transmit buffer.
struct Series<'a> {
    args: &'a Args,
}

impl Experiment for Series<'_> {
    type Case = u64;
    type Outcome = Response;

    fn name(&self, samples: &u64) -> String {
        format!("a buffer of {samples} samples")
    }

    fn step(&mut self, samples: &u64, _: usize) -> Result<Response, Unmeasured> {
        let Args { rate, time_scale, .. } = *self.args;
        let mut radio = ChildRadio::start(&check::radio_options(self.args, *samples))?;
        let found =
            response::measure(&DeviceArgs::new(radio.addr), rate, LEAD_S * time_scale, LOOKS);
        Ok(found.map_err(|error| radio.explain(error.into()))?)
    }
}

/// The slope of the line through the delays (least squares), seconds of delay for a second of
/// buffer.
fn slope(all: &[Response]) -> f64 {
    let count = all.len() as f64;
    let mean = |of: fn(&Response) -> f64| all.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|one| one.buffer_s), mean(|one| one.median_s));
    let both = all.iter().map(|one| (one.buffer_s - x) * (one.median_s - y)).sum::<f64>();
    both / all.iter().map(|one| (one.buffer_s - x).powi(2)).sum::<f64>()
}

fn draw(rate_hz: f64, all: &[Response]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.fill((0, 0), (WIDTH, HEIGHT), WHITE);
    let title = format!("Delay of a change by the transmit buffer, {} MS/s", rate_hz / 1e6);
    svg.title((CORNER.0, 24), BLACK, &title);
    let most = all.iter().map(|one| one.buffer_s.max(one.largest_s) * 1e3).fold(0.0, f64::max);
    let x = Scale::new(0.0, most * 1.05, 8.0, "buffer, ms");
    let y = Scale::new(0.0, most * 1.05, 8.0, "delay, ms");
    let panel = Panel::new(CORNER, FRAME, x, y);
    panel.frame(&mut svg, "");
    panel.curve(&mut svg, &[(0.0, 0.0), (most, most)], GREY);
    let points: Vec<[f64; 4]> = all
        .iter()
        .map(|one| [one.buffer_s, one.median_s, one.least_s, one.largest_s].map(|s| s * 1e3))
        .collect();
    let line: Vec<_> = points.iter().map(|[x, y, ..]| (*x, *y)).collect();
    panel.curve(&mut svg, &line, BLUE);
    panel.intervals(&mut svg, &points, BLUE);
    svg.element(&title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(buffer_s: f64, median_s: f64) -> Response {
        Response {
            buffer_samples: 1,
            buffer_s,
            median_s,
            least_s: median_s,
            largest_s: median_s,
            underflows: 0,
        }
    }

    #[test]
    fn the_slope_is_that_of_the_line_and_the_picture_has_all_points() {
        let all = [response(0.001, 0.0012), response(0.002, 0.0021), response(0.004, 0.0039)];
        assert!((slope(&all) - 0.9).abs() < 1e-9, "{}", slope(&all));
        let drawn = draw(1e6, &all);
        assert!(drawn.contains("Delay of a change") && drawn.ends_with("</svg>\n"));
    }
}
