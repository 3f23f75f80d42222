//! Finds blocks that stand still, and the reasons. The thread that waits for the graph calls it; it
//! has no thread of its own.
//!
//! Partitions publish which block is in a call (one relaxed store); all else is read from the
//! rings. A block in a call whose counters do not change from one poll to the next is inside the
//! same call. A graph whose rings have not moved is explained block by block.

use std::fmt;
use std::time::{Duration, Instant};

/// A block or graph that has not moved for longer than the limit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stall {
    /// A block has not returned from one call of its `work`, `start` or `finish`.
    Busy {
        /// The block.
        block: String,
        /// Its partition, whose other blocks wait for it.
        partition: String,
        /// The least time that this has lasted.
        lasted: Duration,
    },
    /// No block has moved an item.
    Still {
        /// The least time that this has lasted.
        lasted: Duration,
        /// The reason of each block, in the order that items pass; blocks that wait for no other
        /// block first.
        reasons: Vec<StallReason>,
    },
}

/// The reason why a block does not move.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StallReason {
    /// The block.
    pub block: String,
    /// The reason.
    pub why: Why,
}

/// The reason why a block waits.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// Too few items have come.
    Starved {
        /// Items that it wants.
        wanted: u64,
        /// Items that are there.
        available: u64,
        /// The block that writes them.
        writer: String,
    },
    /// There is too little room for its output.
    Blocked {
        /// The output.
        output: String,
        /// Room that it wants, items.
        wanted: u64,
        /// Room that is there.
        room: u64,
        /// Items that fit.
        capacity: u64,
        /// The blocks that read them.
        readers: Vec<String>,
    },
    /// It is in a call.
    Busy,
    /// It could work, but has asked to be called later.
    Later,
    /// It is called and moves no item; a source has no items to give.
    Nothing,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { block, partition, lasted } => write!(
                f,
                "block `{block}` of partition `{partition}` has been in one call for {:.1} s",
                lasted.as_secs_f64()
            ),
            Self::Still { lasted, reasons } => {
                write!(f, "no item has moved for {:.1} s", lasted.as_secs_f64())?;
                let mut separator = ": ";
                reasons.iter().try_for_each(|reason| {
                    write!(f, "{separator}{reason}")?;
                    separator = "; ";
                    Ok(())
                })
            }
        }
    }
}

impl fmt::Display for StallReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = &self.block;
        match &self.why {
            Why::Starved { wanted, available, writer } => {
                write!(
                    f,
                    "`{block}` waits for {} of `{writer}`, and has {available}",
                    items(*wanted)
                )
            }
            Why::Blocked { output, wanted, room, capacity, readers } => write!(
                f,
                "`{block}` waits for room for {} in `{output}` ({room} of {capacity} \
                 free), which {} not emptied",
                items(*wanted),
                emptier(readers)
            ),
            Why::Busy => write!(f, "`{block}` is in a call"),
            Why::Later => write!(f, "`{block}` has asked to be called later"),
            Why::Nothing => write!(f, "`{block}` is called and gives no items"),
        }
    }
}

fn items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

/// Names the blocks that should empty a ring.
fn emptier(readers: &[String]) -> String {
    match readers {
        [reader] => format!("`{reader}` has"),
        readers => format!("`{}` have", readers.join("`, `")),
    }
}

/// The state of a graph at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    /// In the order that items pass.
    pub(crate) blocks: Vec<BlockScene>,
    pub(crate) running: Vec<RunningBlock>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BlockScene {
    pub(crate) name: String,
    pub(crate) finished: bool,
    pub(crate) calls: u64,
    /// Items that passed its ports so far.
    pub(crate) progress: u64,
    /// The first reason that keeps it from being called.
    pub(crate) hindrance: Option<Why>,
}

/// The block that is in a call in a partition.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RunningBlock {
    pub(crate) partition: String,
    /// The block, with its calls so far; `None` while the thread waits or has ended.
    pub(crate) block: Option<(String, u64)>,
    pub(crate) sweeps: u64,
}

/// The state of earlier polls.
#[derive(Debug, Default)]
pub(crate) struct WatchdogState {
    /// The time since when no item has moved, and the calls at that time.
    still: Option<(Instant, u64, Vec<u64>)>,
    running: Vec<(Instant, RunningBlock)>,
}

impl WatchdogState {
    pub(crate) fn look(&mut self, now: Instant, limit: Duration, scene: &Scene) -> Vec<Stall> {
        let mut stalls = self.look_at_running(now, limit, &scene.running);
        stalls.extend(self.look_at_progress(now, limit, scene));
        stalls
    }

    fn look_at_running(
        &mut self,
        now: Instant,
        limit: Duration,
        running: &[RunningBlock],
    ) -> Vec<Stall> {
        let before = std::mem::take(&mut self.running);
        let since = |call: &RunningBlock| {
            let same = before.iter().find(|(_, other)| other == call);
            same.map_or(now, |(since, _)| *since)
        };
        self.running = running.iter().map(|call| (since(call), call.clone())).collect();
        let stalls = self.running.iter().filter_map(|(since, call)| {
            let (block, _) = call.block.clone()?;
            let lasted = now.saturating_duration_since(*since);
            let partition = call.partition.clone();
            (lasted >= limit).then_some(Stall::Busy { block, partition, lasted })
        });
        stalls.collect()
    }

    fn look_at_progress(&mut self, now: Instant, limit: Duration, scene: &Scene) -> Option<Stall> {
        let blocks = scene.blocks.iter();
        let progress = blocks.map(|block| block.progress + u64::from(block.finished)).sum();
        let calls = || scene.blocks.iter().map(|block| block.calls).collect();
        let (since, _, calls_then) = match &mut self.still {
            Some(still) if still.1 == progress => still,
            moved => moved.insert((now, progress, calls())),
        };
        let lasted = now.saturating_duration_since(*since);
        if lasted < limit {
            return None;
        }
        let mut reasons: Vec<StallReason> = Vec::new();
        for (block, calls_then) in scene.blocks.iter().zip(calls_then) {
            if block.finished {
                continue;
            }
            let why = match &block.hindrance {
                _ if scene.running.iter().any(|call| call.is_of(&block.name)) => Why::Busy,
                Some(why) => why.clone(),
                None if block.calls == *calls_then => Why::Later,
                None => Why::Nothing,
            };
            reasons.push(StallReason { block: block.name.clone(), why });
        }
        // The order within both groups stays.
        reasons
            .sort_by_key(|reason| matches!(reason.why, Why::Starved { .. } | Why::Blocked { .. }));
        Some(Stall::Still { lasted, reasons })
    }
}

impl RunningBlock {
    fn is_of(&self, block: &str) -> bool {
        self.block.as_ref().is_some_and(|(name, _)| name == block)
    }
}

#[cfg(test)]
mod tests;
