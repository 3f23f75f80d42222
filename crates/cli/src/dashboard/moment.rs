//! The state of a run at one time, and the documents that show it.

use crate::graph_report::{GraphReport, LedgerReport};
use crate::output::document;
use crate::signal::SignalReport;
use millstream_cpu::threads::{self, ThreadInfo};
use millstream_flow::{BlockStats, Plan, Profile, RunningGraph, Snapshot};
use millstream_radio::TxCause;
use millstream_web::{BlockStatus, EdgeStatus, LedgerStatus, PartitionStatus, Status};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

/// Snapshots that are taken until the counters of all ledgers are of one moment: a block that
/// writes between two reads leaves sums that differ.
const TRIES: usize = 8;

/// The state at one time.
#[derive(Clone)]
pub struct Moment {
    pub at: Instant,
    elapsed: Duration,
    cpu_s: f64,
    snapshot: Snapshot,
    profile: Profile,
    threads: Vec<ThreadInfo>,
    pub signals: Vec<SignalReport>,
}

impl Moment {
    /// The present state.
    pub fn of(
        at: Instant,
        elapsed: Duration,
        running: &RunningGraph,
        signals: Vec<SignalReport>,
    ) -> Self {
        let mut snapshot = running.snapshot();
        for _ in 0..TRIES {
            if all_ledgers(&snapshot).iter().all(|ledger| ledger.balances) {
                break;
            }
            snapshot = running.snapshot();
        }
        Self {
            at,
            elapsed,
            cpu_s: millstream_cpu::usage::process_cpu_time().as_secs_f64(),
            snapshot,
            profile: running.profile(),
            threads: threads::of_process(std::process::id()).unwrap_or_default(),
            signals,
        }
    }

    /// The state at the end.
    pub fn of_end(run: &GraphReport, signals: Vec<SignalReport>) -> Self {
        Self {
            at: Instant::now(),
            elapsed: Duration::try_from_secs_f64(run.elapsed_s).unwrap_or_default(),
            cpu_s: run.cpu_s,
            snapshot: run.snapshot.clone(),
            profile: run.profile.clone(),
            threads: Vec::new(),
            signals,
        }
    }

    /// The status, with loads since `before`, and those that `plan` expects.
    pub fn status(&self, before: Option<&Self>, plan: Option<&Plan>, ended: bool) -> Status {
        let load = before.map(|before| self.profile.since(&before.profile));
        let load = load.as_ref().unwrap_or(&self.profile);
        let window_s = load.elapsed_s.max(1e-3);
        let loads = self.loads(before, load, window_s);
        let blocks = self.snapshot.blocks.iter().zip(loads).map(|(block, share)| BlockStatus {
            name: block.name.clone(),
            partition: block.partition.clone(),
            calls: block.calls,
            items_in: block.items_in,
            items_out: block.items_out,
            busy_ns: block.busy_ns,
            load: share,
            expected_load: plan.and_then(|plan| expected_load(plan, load, &block.name)),
            metrics: document(&block.metrics),
        });
        let edges = self.profile.edges.iter().map(|edge| {
            let recent = load.edges.iter().find(|recent| recent.to == edge.to);
            EdgeStatus {
                from: edge.from.clone(),
                to: edge.to.clone(),
                item_bytes: edge.item_bytes,
                items: edge.items,
                capacity_items: edge.capacity_items,
                fill: recent.map_or(edge.fill, |recent| recent.fill),
                starved: edge.starved,
                blocked: edge.blocked,
            }
        });
        let partitions = self.snapshot.partitions.iter().map(|partition| {
            let (now_s, then_s) = self.cpu_s(before, partition.tid);
            PartitionStatus {
                name: partition.name.clone(),
                cpu: partition.cpu,
                tid: partition.tid,
                sweeps: partition.sweeps,
                waits: partition.waits,
                cpu_s: now_s,
                load: (now_s - then_s).max(0.0) / window_s,
            }
        });
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Status {
            unix_s: since.as_secs_f64(),
            elapsed_s: self.elapsed.as_secs_f64(),
            cpu_s: self.cpu_s,
            ended,
            ledgers: all_ledgers(&self.snapshot),
            blocks: blocks.collect(),
            edges: edges.collect(),
            partitions: partitions.collect(),
            signals: self.signals.iter().map(document).collect(),
            latencies: Vec::new(),
        }
    }

    /// The blocks that transmit, with the samples that they have transmitted, and the delay of the
    /// last of these, seconds.
    pub fn transmit_delays(&self) -> impl Iterator<Item = (&str, u64, f64)> {
        self.snapshot.blocks.iter().filter_map(|block| {
            let delay_s = block.metric("transmit_delay_s").filter(|delay_s| delay_s.is_finite())?;
            Some((block.name.as_str(), block.metric("transmitted")? as u64, delay_s))
        })
    }

    /// CPU times of a thread, now and before.
    fn cpu_s(&self, before: Option<&Self>, tid: u32) -> (f64, f64) {
        let read = |moment: &Self| {
            let thread = moment.threads.iter().find(|thread| thread.tid == tid)?;
            Some(thread.cpu_ns as f64 / 1e9)
        };
        let then = before.and_then(read);
        (read(self).or(then).unwrap_or(0.0), then.unwrap_or(0.0))
    }

    /// The share of a core of each block. Times of calls are by the wall clock: a source waits in
    /// its calls for what comes from outside, and a thread may lose its CPU. So the shares of a
    /// partition are cut to what the kernel counted for its thread, a source's last.
    fn loads(&self, before: Option<&Self>, load: &Profile, window_s: f64) -> Vec<f64> {
        let blocks = &self.snapshot.blocks;
        let busy = |block: &BlockStats| {
            load.block(&block.name).map_or(0.0, |cost| cost.busy_ns as f64 / 1e9 / window_s)
        };
        let is_source = |block: &BlockStats| {
            load.edges.iter().all(|edge| edge.to.split('.').next() != Some(&block.name))
        };
        let mut loads: Vec<_> = blocks.iter().map(busy).collect();
        for partition in &self.snapshot.partitions {
            let (now_s, then_s) = self.cpu_s(before, partition.tid);
            if now_s == 0.0 {
                continue;
            }
            let mut left = (now_s - then_s).max(0.0) / window_s;
            for source in [false, true] {
                let places = blocks.iter().enumerate().filter(|(_, block)| {
                    block.partition == partition.name && is_source(block) == source
                });
                let places: Vec<_> = places.map(|(place, _)| place).collect();
                let sum: f64 = places.iter().map(|place| loads[*place]).sum();
                let scale = if sum > left { left / sum } else { 1.0 };
                places.iter().for_each(|place| loads[*place] *= scale);
                left = (left - sum * scale).max(0.0);
            }
        }
        loads
    }

    /// The results of the document that `--json` prints, as of this moment.
    pub fn report(&self, results: &Map<String, Value>, plan: Option<&Plan>) -> Value {
        let mut report = results.clone();
        let run = GraphReport {
            interrupted: false,
            elapsed_s: self.elapsed.as_secs_f64(),
            cpu_s: self.cpu_s,
            plan: plan.cloned().unwrap_or_default(),
            profile: self.profile.clone(),
            snapshot: self.snapshot.clone(),
        };
        let ledgers: Vec<_> = ledgers(&self.snapshot).into_iter().map(|ledger| ledger.1).collect();
        report.insert("run".to_owned(), document(&run));
        report.insert("ledgers".to_owned(), document(&ledgers));
        report.insert("signals".to_owned(), document(&self.signals));
        Value::Object(report)
    }
}

/// The share of a core that a block should need at the rate of items in `load`, by the costs that
/// the plan has; `None` if it has none of this block.
fn expected_load(plan: &Plan, load: &Profile, block: &str) -> Option<f64> {
    let cost_ns = plan.ns_per_item.get(block).filter(|cost| cost.is_finite() && **cost >= 0.0)?;
    let items = load.block(block)?.items();
    Some(cost_ns * items as f64 / 1e9 / load.elapsed_s.max(1e-3))
}

/// The ledgers of all streams, as the dashboard shows them.
fn all_ledgers(snapshot: &Snapshot) -> Vec<LedgerStatus> {
    let received = ledgers(snapshot).into_iter().map(ledger_status);
    received.chain(snapshot.blocks.iter().filter_map(transmit_ledger)).collect()
}

/// The ledger of a block that transmits.
fn transmit_ledger(block: &BlockStats) -> Option<LedgerStatus> {
    let count = |name: &str| block.metric(name).map(|value| value as u64);
    let (expected, delivered) = (count("accepted")?, count("transmitted")?);
    let held = count("in_flight")?;
    let causes = TxCause::ALL.iter().map(|cause| cause.name()).chain(["unknown"]);
    let lost = causes.map(|cause| (cause.to_owned(), count(cause).unwrap_or(0)));
    let lost: BTreeMap<_, _> = lost.collect();
    let balances = expected == delivered + held + lost.values().sum::<u64>();
    let (name, held) = (block.name.clone(), Some(held));
    Some(LedgerStatus { name, expected, delivered, held, lost, after_end: 0, balances })
}

/// The ledgers of the blocks that receive.
fn ledgers(snapshot: &Snapshot) -> Vec<(String, LedgerReport)> {
    let ledger = |block| LedgerReport::of(block).map(|ledger| (block.name.clone(), ledger));
    snapshot.blocks.iter().filter_map(ledger).collect()
}

fn ledger_status((name, ledger): (String, LedgerReport)) -> LedgerStatus {
    LedgerStatus {
        name,
        expected: ledger.expected,
        delivered: ledger.delivered,
        held: None,
        lost: ledger.lost.iter().map(|(cause, lost)| ((*cause).to_owned(), *lost)).collect(),
        after_end: ledger.after_end,
        balances: ledger.balances,
    }
}
