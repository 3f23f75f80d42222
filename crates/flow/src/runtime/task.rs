//! One block in its partition: when it is called, its counts, the threads to wake.
//!
//! A task does not depend on its thread, so it can move to another between two sweeps.

mod fused;

pub(super) use fused::PendingCounts;

use super::inbox::Inbox;
use super::stats::{BlockCounters, FILL_ONE};
use super::sync::Waiter;
use crate::block::{Block, BlockError, Context, Work};
use crate::carrier::TagCarrier;
use crate::lane::Lane;
use crate::observe::{Budget, Marks};
use crate::port::each_port;
use crate::port_state::Views;
use millstream_ring::Padded;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval at which a source without items is called again.
const SOURCE_POLL: Duration = Duration::from_millis(1);

/// A block, its counters, and the waiters of the partitions it is connected to.
pub(super) struct BlockTask {
    /// Its position among the graph's blocks.
    node: usize,
    pub(super) name: String,
    block: Box<dyn Block>,
    /// The block is one-to-one.
    takes_lanes: bool,
    views: Views,
    tags: TagCarrier,
    inbox: Inbox,
    /// Present only downstream of a measured source.
    marks: Option<Arc<Padded<Marks>>>,
    /// Present only for such a source.
    budget: Option<Budget>,
    counters: Arc<Padded<BlockCounters>>,
    neighbours: Vec<Arc<Padded<Waiter>>>,
    calls: u64,
    progress: u64,
    wake_at: Option<Instant>,
    finished: bool,
}

impl BlockTask {
    /// Makes the task of a block whose ports are connected.
    pub(super) fn new(
        node: usize,
        name: String,
        mut block: Box<dyn Block>,
        counters: Arc<Padded<BlockCounters>>,
        neighbours: Vec<Arc<Padded<Waiter>>>,
    ) -> Self {
        let views = Views::of(&mut *block);
        let progress = views.progress();
        let tags = TagCarrier::of(&mut *block);
        Self {
            node,
            name,
            takes_lanes: Lane::is_taken_by(|lane| block.pass(lane)),
            block,
            views,
            tags,
            inbox: Inbox::default(),
            marks: None,
            budget: None,
            counters,
            neighbours,
            calls: 0,
            progress,
            wake_at: None,
            finished: false,
        }
    }

    /// Sets the inbox of messages.
    pub(super) fn with_inbox(self, inbox: Inbox) -> Self {
        Self { inbox, ..self }
    }

    /// Sets the meters of items under way.
    pub(super) fn with_meters(
        self,
        marks: Option<Arc<Padded<Marks>>>,
        budget: Option<Budget>,
    ) -> Self {
        Self { marks, budget, ..self }
    }

    pub(super) fn node(&self) -> usize {
        self.node
    }

    /// Returns the value of the partition's counter
    /// [`in_call`](super::stats::PartitionCounters::in_call) while this block is in a call.
    pub(super) fn call_number(&self) -> u64 {
        self.node as u64 + 1
    }

    /// Sets the waiters of the neighbours.
    pub(super) fn set_neighbours(&mut self, neighbours: Vec<Arc<Padded<Waiter>>>) {
        self.neighbours = neighbours;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the time at which the block wants to be called even if no port changes.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Calls of `work` so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Starts the block.
    pub(super) fn start(&mut self) -> Result<(), BlockError> {
        self.block.start()
    }

    /// Calls the block if it can work. Returns whether anything changed: items moved, or the block
    /// finished.
    pub(super) fn step(&mut self, context: &mut Context) -> Result<bool, BlockError> {
        if self.finished {
            return Ok(false);
        }
        self.wake_at = None;
        self.take_messages();
        let survey = self.views.survey();
        if survey.is_abandoned || (context.stopping && self.views.is_source()) {
            return self.finish();
        }
        if !survey.can_work() {
            self.count_refusal();
            return Ok(false);
        }
        if let Some(budget) = &mut self.budget {
            if !budget.grant(&self.views.outputs) {
                return Ok(false);
            }
        }
        self.tags.carry(&mut *self.block);
        let work = self.block.work(context)?;
        let progress = self.views.progress();
        let moved = progress != self.progress;
        self.progress = progress;
        self.calls += 1;
        self.counters.calls.set(self.calls);
        self.measure();
        match work {
            Work::Finished => return self.finish(),
            Work::Continue if moved => {}
            Work::Continue if survey.is_last_chance() => return self.finish(),
            Work::Continue if self.views.is_source() => {
                self.wake_at = Some(context.now + SOURCE_POLL);
            }
            Work::Continue => {}
            Work::Again(after) => self.wake_at = context.now.checked_add(after),
        }
        if moved {
            self.tell();
        }
        Ok(moved)
    }

    /// As `step`, and charges the time since `context.now`, which it advances, to the block:
    /// `weight` times, because it represents that many calls.
    pub(super) fn timed_step(
        &mut self,
        context: &mut Context,
        weight: u32,
    ) -> Result<bool, BlockError> {
        let calls = self.calls;
        self.count_fill();
        let moved = self.step(context)?;
        if self.calls != calls {
            self.charge(context, weight);
        }
        Ok(moved)
    }

    #[inline]
    fn take_messages(&mut self) {
        if self.inbox.has_pending() {
            self.inbox.deliver(&mut *self.block);
            self.tags.follow(&mut *self.block);
        }
    }

    /// Records the items under way after a call, if the source is measured.
    fn measure(&self) {
        if let Some(marks) = &self.marks {
            marks.publish(&self.views);
        }
        if let Some(budget) = &self.budget {
            budget.record(&self.views.outputs);
        }
    }

    /// Counts a call that was refused. Kept out of the path of calls that are made.
    #[cold]
    pub(super) fn count_refusal(&self) {
        for (input, counters) in self.views.inputs.iter().zip(&self.counters.inputs) {
            let (available, ended) = input.available();
            counters.starved.add(u64::from(available < input.wanted() && !ended));
        }
        for (output, blocked) in self.views.outputs.iter().zip(&self.counters.blocked) {
            blocked.add(u64::from(output.room() < output.wanted()));
        }
    }

    fn count_fill(&self) {
        for (input, counters) in self.views.inputs.iter().zip(&self.counters.inputs) {
            let (available, _) = input.available();
            counters.looks.add(1);
            counters.fill.add(available.saturating_mul(FILL_ONE) / input.capacity().max(1));
        }
    }

    /// Ends the block: `finish` first, so that a sink's data is safe before a neighbour sees the
    /// end.
    fn finish(&mut self) -> Result<bool, BlockError> {
        self.block.finish()?;
        each_port(&mut *self.block, |_, port| port.close(), |_, port| port.close());
        self.finished = true;
        self.inbox.close();
        if let Some(marks) = &self.marks {
            marks.close();
        }
        self.counters.finished.set(1);
        self.tell();
        Ok(true)
    }

    fn tell(&self) {
        self.neighbours.iter().for_each(|waiter| waiter.notify());
    }
}
