//! `--web`: the turnarounds while they are measured.

use super::Args;
use super::found::Found;
use crate::dashboard::{BareDashboard, BareMoment, DashboardTopic, end_of_run, unknown_control};
use crate::interrupt;
use crate::output::document;
use millstream_lab::turnaround::Answer;
use millstream_web::{ControlRequest, ShownLatency, Streams};
use serde::Serialize;
use std::time::Instant;

const ABOUT: &str = "from the newest received sample to the earliest answer, by the radio's clock";

#[derive(Serialize)]
struct Counters {
    turnarounds: u64,
    answers_with_lead: u64,
    late: u64,
}

/// The dashboard, if one is wanted, with what it shows.
pub struct TurnaroundPage {
    dashboard: Option<BareDashboard>,
    ticks_hz: f64,
    turnarounds: ShownLatency,
    /// Answers with a lead time: all, and those that were late.
    tries: u64,
    late: u64,
}

impl TurnaroundPage {
    /// Starts it; the radio counts `ticks_hz` ticks a second.
    pub fn start(args: &Args, title: String, ticks_hz: f64) -> anyhow::Result<Self> {
        let topic = DashboardTopic { verb: "latency radio", title, ..DashboardTopic::default() };
        let controls = vec![end_of_run()];
        Ok(Self {
            dashboard: BareDashboard::start(&args.web, topic, (controls, Streams::new()))?,
            ticks_hz,
            turnarounds: ShownLatency::new("turnaround", "radio", ABOUT),
            tries: 0,
            late: 0,
        })
    }

    /// Takes the answer of a try with this lead, ticks. Publishes from time to time, between two
    /// tries.
    pub fn note(&mut self, lead: u64, answer: Answer, found: &Found) {
        match answer {
            // With a lead only the longer turnarounds are late: their times would mislead.
            Answer::Late { ticks } if lead == 0 => {
                self.turnarounds.record((ticks as f64 * 1e9 / self.ticks_hz).round() as u64);
            }
            _ if lead == 0 => {}
            answer => {
                self.tries += 1;
                self.late += u64::from(matches!(answer, Answer::Late { .. }));
            }
        }
        self.obey();
        if self.dashboard.as_ref().is_some_and(|dashboard| dashboard.is_due(Instant::now())) {
            self.publish(found, None);
        }
    }

    /// Publishes the end of a measurement that was made as a whole, or was not.
    pub fn end(&mut self, found: &Found, is_whole: bool) {
        self.publish(found, Some(is_whole));
    }

    fn obey(&mut self) {
        let Some(dashboard) = &self.dashboard else { return };
        while let Some(request) = dashboard.board().take_control() {
            let ControlRequest { target, name, .. } = &request;
            let outcome = if (target.as_str(), name.as_str()) == ("run", "stop") {
                interrupt::ask();
                Ok("the run ends".to_owned())
            } else {
                Err(unknown_control(&request, std::iter::empty()))
            };
            dashboard.board().reply(&request, outcome);
        }
    }

    fn publish(&mut self, found: &Found, ended: Option<bool>) {
        let Some(dashboard) = &mut self.dashboard else { return };
        let latency = self.turnarounds.status();
        let (answers_with_lead, late) = (self.tries, self.late);
        let counters = Counters { turnarounds: latency.count, answers_with_lead, late };
        let counters = document(&counters);
        dashboard.publish(BareMoment {
            counters: vec![("radio".to_owned(), counters)],
            latencies: vec![latency],
            results: document(&found.results(ended.unwrap_or(false))),
            ended: ended.is_some(),
            ..BareMoment::default()
        });
    }
}
