//! The dashboard of a transmission: its ledger, and the spectrum of what is sent.

use super::report::{self, Played};
use super::{Args, Source};
use crate::dashboard::{BareDashboard, BareMoment, DashboardTopic, unknown_control, value_of};
use crate::front_end::ChannelTuning;
use crate::interrupt;
use crate::playback::Samples;
use millstream_flow::blocks::SampleFormat;
use millstream_flow::{ParameterKind, ParameterValue};
use millstream_radio::Complex32;
use millstream_radio::tx::{TxDelay, TxLedger, TxStreamer};
use millstream_web::{
    ControlInfo, ControlRequest, ShownLatency, ShownSamples, StreamFacts, Streams,
};
use std::ops::Range;
use std::time::Instant;

/// Bytes of a sample on its way to the radio.
const SAMPLE_BYTES: u64 = 4;

/// The names of the controls.
const CONTROLS: [(&str, &str); 2] = [
    ("stop", "end the burst, and hold the rest of the samples back"),
    ("start", "go on with the samples behind a stop, as a new burst"),
];

/// The dashboard, and what its clients want.
pub struct TxPage {
    dashboard: BareDashboard,
    shown: Shown,
    /// Whether a client holds the transmission.
    is_held: bool,
    /// Why clients may not hold it.
    held_never: Option<&'static str>,
    /// From sending samples to the report of their outcome.
    delay: TxDelay,
    delays: ShownLatency,
}

/// The stream of the samples, in the format of their file.
enum Shown {
    Sc16(ShownSamples<[i16; 2]>),
    Cf32(ShownSamples<Complex32>),
}

impl TxPage {
    /// Starts it, if it is wanted.
    pub fn start(
        args: &Args,
        source: &Source,
        stream: &TxStreamer,
        tuned: Option<&ChannelTuning>,
    ) -> anyhow::Result<Option<Self>> {
        let mut streams = Streams::new();
        let rate = stream.rate();
        let facts = StreamFacts {
            rate_hz: Some(rate.samples_hz()),
            centre_hz: tuned.and_then(|tuned| tuned.freq_hz),
            ticks_hz: None,
            is_live: false,
        };
        let gain = args.scale.unwrap_or(1.0) as f32;
        let shown = match source.format {
            SampleFormat::Sc16 => Shown::Sc16(streams.shown("radio.in", facts, gain)),
            _ => Shown::Cf32(streams.shown("radio.in", facts, gain)),
        };
        let timed = args.timed || args.at.is_some() || args.lead.is_some() || args.at_pps;
        let held_never = timed.then_some(
            "the samples have times, and would be late after a stop: start the command without \
             --timed, --at, --lead and --at-pps",
        );
        let control = |(name, help): (&str, &str)| ControlInfo {
            target: "radio".to_owned(),
            name: name.to_owned(),
            kind: ParameterKind::Boolean.to_string(),
            help: help.to_owned(),
            ..ControlInfo::default()
        };
        let mut controls = vec![crate::dashboard::end_of_run()];
        controls.extend(CONTROLS.map(control).into_iter().filter(|_| !timed));
        let title = source.name.clone();
        let topic = DashboardTopic { verb: "tx", title, ..DashboardTopic::default() };
        let dashboard = BareDashboard::start(&args.web, topic, (controls, streams))?;
        let delay = TxDelay::new(stream.members()[0].credit_window_bytes() / SAMPLE_BYTES);
        let delays = crate::dashboard::delays_of("radio.in");
        let page = |dashboard| Self { dashboard, shown, is_held: false, held_never, delay, delays };
        Ok(dashboard.map(page))
    }

    /// Measures how long samples are under way, by the ledger as it is now.
    pub fn follow(&mut self, ledger: &TxLedger) {
        if let Some(delay) = self.delay.follow(ledger, Instant::now()) {
            self.delays.record(delay.as_nanos() as u64);
        }
    }

    /// Shows those of the samples that were sent.
    pub fn show(&mut self, samples: &Samples, sent: Range<usize>) {
        match (&mut self.shown, samples) {
            (Shown::Sc16(shown), Samples::Sc16(samples)) => shown.show(&samples[sent]),
            (Shown::Cf32(shown), Samples::Cf32(samples)) => shown.show(&samples[sent]),
            // The format of a file does not change.
            _ => {}
        }
    }

    /// Whether a client holds the transmission.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Does what clients want.
    pub fn attend(&mut self) {
        while let Some(request) = self.dashboard.board().take_control() {
            let outcome = self.obey(&request);
            let text = outcome.as_ref().map_or_else(Clone::clone, Clone::clone);
            let board = self.dashboard.board();
            board.note("control", &request.target, text);
            board.reply(&request, outcome);
        }
    }

    fn obey(&mut self, request: &ControlRequest) -> Result<String, String> {
        match (request.target.as_str(), request.name.as_str(), self.held_never) {
            ("run", "stop", _) => {
                interrupt::ask();
                Ok("the run ends".to_owned())
            }
            ("radio", "stop" | "start", Some(why)) => Err(why.to_owned()),
            ("radio", name @ ("stop" | "start"), None) => {
                let wanted = value_of(request, ParameterKind::Boolean)?;
                self.is_held = (name == "stop") == (wanted == ParameterValue::Boolean(true));
                let now = if self.is_held { "stops: its burst ends" } else { "goes on" };
                Ok(format!("the transmission {now}"))
            }
            _ => {
                let names = CONTROLS.iter().filter(|_| self.held_never.is_none());
                let own = names.filter(|_| request.target == "radio");
                Err(unknown_control(request, own.map(|control| control.0)))
            }
        }
    }

    /// Whether it is time to publish.
    pub fn is_due(&self) -> bool {
        self.dashboard.is_due(Instant::now())
    }

    /// Publishes the transmission as of now.
    pub fn publish(&mut self, played: &Played, ended: bool) {
        self.dashboard.publish(BareMoment {
            ledgers: vec![report::ledger_status(&played.ledger)],
            latencies: vec![self.delays.status()],
            results: report::shown(played),
            ended,
            ..BareMoment::default()
        });
    }
}
