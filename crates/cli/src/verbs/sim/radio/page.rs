//! The dashboard of emulated radios: their counters, and switches for their faults.

use super::spectra::{Bands, Spectra};
use super::{Args, Served, ServedRadio, ServedRadios, sum};
use crate::dashboard::{BareDashboard, BareMoment, DashboardTopic};
use crate::output::document;
use millstream_emulator::{Faults, fault_forms};
use millstream_web::{ControlInfo, ControlRequest};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Instant;

/// The dashboard, and the troubles that it has told.
pub struct RadioPage {
    dashboard: BareDashboard,
    bands: Bands,
    told: HashSet<String>,
}

impl RadioPage {
    /// Starts it, if it is wanted.
    pub fn start(args: &Args, product: &str, spectra: Spectra) -> anyhow::Result<Option<Self>> {
        let control = |name: &str, kind: &str, help: &str| ControlInfo {
            target: "faults".to_owned(),
            name: name.to_owned(),
            kind: kind.to_owned(),
            help: help.to_owned(),
            ..ControlInfo::default()
        };
        let controls = vec![
            control("add", "text", &fault_forms()),
            control("remove", "a whole number", "remove the fault of this number"),
            control("clear", "true or false", "remove all faults"),
        ];
        let title = format!("emulated {product} at {}", args.addr);
        let topic = DashboardTopic { verb: "sim radio", title, ..DashboardTopic::default() };
        let (streams, bands) = spectra.split();
        let dashboard = BareDashboard::start(&args.web, topic, (controls, streams))?;
        Ok(dashboard.map(|dashboard| Self { dashboard, bands, told: HashSet::new() }))
    }

    /// Does what clients want, and publishes the counters from time to time.
    pub fn attend(&mut self, now: Instant, served: &[Served]) {
        let board = self.dashboard.board();
        while let Some(request) = board.take_control() {
            let outcome = obey(&request, served);
            let text = outcome.as_ref().map_or_else(Clone::clone, Clone::clone);
            board.note("control", &request.target, text);
            board.reply(&request, outcome);
        }
        for one in served {
            for (kind, text) in one.troubles() {
                let name = one.addr.to_string();
                // Its numbers grow: once a kind is enough.
                if self.told.insert(format!("{name} {kind}")) {
                    board.note("note", &name, text);
                }
            }
        }
        if self.dashboard.is_due(now) {
            self.bands.publish(self.dashboard.board());
            let total = sum(served.iter().map(|one| one.radio.counters()));
            let radios = served.iter().map(|one| ServedRadio {
                faults: Some(one.radio.faults().list()),
                ..one.document()
            });
            let radios: Vec<_> = radios.collect();
            let of_each = |one: &ServedRadio| (one.addr.to_string(), document(&one.counters));
            let counters = radios.iter().map(of_each).collect();
            let results = ServedRadios { counters: total.into_iter().collect(), radios };
            let results = document(&results);
            self.dashboard.publish(BareMoment { counters, results, ..BareMoment::default() });
        }
    }
}

/// Does it on every radio.
fn obey(request: &ControlRequest, served: &[Served]) -> Result<String, String> {
    let ControlRequest { target, name, value, .. } = request;
    let faults = || served.iter().map(|one| one.radio.faults());
    match (target.as_str(), name.as_str(), value) {
        ("faults", "add", Value::String(text)) => {
            let add =
                |id: Option<u64>, faults: &Faults| faults.add(text).map(|added| id.or(Some(added)));
            let first = faults().try_fold(None, add).map_err(|error| error.to_string())?;
            Ok(format!("fault {}: {text}", first.unwrap_or(0)))
        }
        ("faults", "remove", value) => {
            let id = value.as_u64().ok_or(format!("the number of a fault, but got {value}"))?;
            let removed = faults().filter_map(|faults| faults.remove(id)).count();
            match removed {
                0 => Err(format!("there is no fault {id}")),
                _ => Ok(format!("removed fault {id}")),
            }
        }
        ("faults", "clear", _) => {
            let removed: usize = faults().map(Faults::clear).sum();
            Ok(format!("removed {removed} faults"))
        }
        _ => Err(format!("there is no {target}.{name} with such a value; see `controls` of hello")),
    }
}
