//! `millstream view`: a recording in the dashboard.

use crate::dashboard::{DashboardTopic, WebArgs};
use crate::graph_report::{self, GraphReport};
use crate::graph_run::attended;
use crate::numbers::positive;
use crate::output::{Report, note};
use crate::{interrupt, live::Live};
use anyhow::Context;
use millstream_blocks::sigmf::{SigmfRecording, SigmfSource};
use millstream_flow::blocks::{NullSink, Throttle};
use millstream_flow::{Graph, Plan};
use millstream_radio::Complex32;
use millstream_web::StreamFacts;
use std::path::PathBuf;
use std::time::Duration;

/// Shows a SigMF recording in a browser, as if it were received now.
///
/// The dashboard plays the recording in the time in which it was made, and shows gaps and
/// annotations at their places. At the end the page stays until SIGINT (Ctrl-C). With --web-control
/// the page can stop it, start it again, change its speed and go to another time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream view recording.sigmf-meta
  millstream view recording.sigmf-meta --time-scale 0.1 --web 0.0.0.0:8080")]
pub struct Args {
    /// The recording: its .sigmf-meta or .sigmf-data file.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// Speed relative to real time.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    time_scale: f64,

    #[command(flatten)]
    web: WebArgs,
}

crate::results! {
    also [graph_report::results],

    /// What was shown.
    struct ShownRecording {
        /// Samples per second of the recording.
        rate_hz: f64,
        /// Samples shown.
        samples: u64,
        /// The run of the graph.
        run: GraphReport,
    }
}

/// Plays the recording, and serves the page until the user ends it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let path = &args.recording;
    let recording = SigmfRecording::open(path, None)?;
    let rate_hz = recording.rate_hz.with_context(|| {
        let name = path.display();
        match path.extension().is_some_and(|end| end == "sigmf-meta" || end == "sigmf-data") {
            true => format!("{name} does not contain its sample rate: add core:sample_rate to it"),
            false => format!(
                "{name} is raw samples, whose rate nobody knows: give a SigMF recording, which \
                 contains it"
            ),
        }
    })?;
    let mut source = SigmfSource::open(path).map_err(anyhow::Error::from_boxed)?;
    // From the end a client may go back.
    if args.web.may_control() {
        source = source.waiting_at_end();
    }
    let mut graph = Graph::new();
    graph.add("recording", source)?;
    let throttle = Throttle::<Complex32>::new(rate_hz * args.time_scale);
    graph.add("clock", throttle.map_err(anyhow::Error::from_boxed)?)?;
    graph.add("screen", NullSink::<Complex32>::new())?;
    graph.chain(&["recording", "clock", "screen"])?;

    let web = args.web.clone().or_usual();
    let mut plan = web.plan().context("the dashboard has no address")?;
    let facts = StreamFacts {
        rate_hz: Some(rate_hz),
        centre_hz: recording.captures.iter().find_map(|capture| capture.frequency_hz),
        ticks_hz: Some(rate_hz),
        is_live: false,
    };
    plan.show(&mut graph, "recording", facts)?;
    let title = path.display().to_string();
    let end_s = recording.samples as f64 / rate_hz;
    let limits = vec![(("recording", "position_s"), (0.0, end_s))];
    let topic = DashboardTopic { verb: "view", title, limits, ..DashboardTopic::default() };
    let mut dashboard = plan.start(&graph, topic)?;
    let mut live = Live::new();
    let run = attended(graph, &Plan::default(), |now, elapsed, running| {
        dashboard.attend(now, elapsed, running, Vec::new);
        live.show(now, || format!("{:6.1} s", elapsed.as_secs_f64()));
        Ok(())
    })?;
    live.end();
    dashboard.end(&run, Vec::new());
    let samples = run.snapshot.block("screen").map_or(0, |block| block.items_in);
    if !interrupt::asked() {
        note("the recording has ended; Ctrl-C ends the dashboard");
    }
    while !interrupt::asked() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = format!("{}: {samples} samples shown\n", path.display());
    Ok(Report::of(text, &ShownRecording { rate_hz, samples, run }))
}
