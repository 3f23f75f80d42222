//! One block in its partition: when to call it, what to count, whom to tell.
//!
//! A task knows nothing of the thread that runs it, so it can be handed from one to another
//! between two sweeps.

mod lane;

use super::stats::{BlockCounters, FILL_ONE};
use super::sync::Waiter;
use crate::block::{Block, BlockError, Context, Work};
use crate::latency::{Budget, Marks};
use crate::message::Inbox;
use crate::port::{InputPort, OutputPort, PortVisitor};
use crate::port_state::{Loans, Views};
use crate::tag::TagCarrier;
use millstream_ring::Padded;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When a source that had nothing to say is asked again.
const SOURCE_POLL: Duration = Duration::from_millis(1);

/// A block, its counters, and the waiters of the partitions it is connected to.
pub(super) struct BlockTask {
    /// Its place among the graph's blocks.
    node: usize,
    pub(super) name: String,
    block: Box<dyn Block>,
    views: Views,
    tags: TagCarrier,
    inbox: Inbox,
    /// Only on the way of a source with a bound.
    marks: Option<Arc<Padded<Marks>>>,
    /// Only of such a source.
    budget: Option<Budget>,
    counters: Arc<Padded<BlockCounters>>,
    neighbours: Vec<Arc<Padded<Waiter>>>,
    calls: u64,
    progress: u64,
    wake_at: Option<Instant>,
    finished: bool,
}

impl BlockTask {
    /// Of a block whose ports are connected.
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

    /// Takes messages from here on.
    pub(super) fn with_inbox(self, inbox: Inbox) -> Self {
        Self { inbox, ..self }
    }

    /// Counts what is under way from here on.
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

    /// What the partition's counter [`turn`](super::stats::PartitionCounters::turn) says when it is
    /// this block's.
    pub(super) fn call_number(&self) -> u64 {
        self.node as u64 + 1
    }

    /// Says who is to be told from now on.
    pub(super) fn set_neighbours(&mut self, neighbours: Vec<Arc<Padded<Waiter>>>) {
        self.neighbours = neighbours;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// When the block wants to be called even if no port changes.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Calls of `work` so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Says that the calling thread runs this task from now on; before anything else on it.
    ///
    /// # Safety
    /// No other thread runs a task whose rings borrow from the same pools, nor will before it
    /// enters; whoever did has handed it in at the exchange.
    pub(super) unsafe fn enter(&self) {
        // SAFETY: passed on to the caller; only a thread that has entered uses such rings.
        self.views.pools().for_each(|pool| unsafe { pool.enter() });
    }

    /// Says that nobody runs this task until a thread enters, so that no block that stays behind
    /// uses its rings.
    ///
    /// # Safety
    /// The thread that ran it runs nothing now.
    pub(super) unsafe fn leave(&self) {
        // SAFETY: passed on to the caller; only a thread that has entered uses such rings.
        self.views.pools().for_each(|pool| unsafe { pool.leave() });
    }

    /// What its rings have borrowed.
    pub(super) fn loans(&self) -> Loans {
        self.views.loans.clone()
    }

    /// Prepares the block.
    pub(super) fn start(&mut self) -> Result<(), BlockError> {
        self.block.start()
    }

    /// Calls the block if it can work. Says whether anything changed: items moved, or the block
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
        if let Some(budget) = &mut self.budget
            && !budget.grant(&self.views.outputs)
        {
            return Ok(false);
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

    /// The same, and charges the time since `context.now`, which it advances, to the block:
    /// `weight` times, because it stands for that many calls.
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
        if self.inbox.has_news() {
            self.inbox.deliver(&mut *self.block);
        }
    }

    /// After a call: what is under way now, where that is asked.
    fn measure(&self) {
        if let Some(marks) = &self.marks {
            marks.publish(&self.views);
        }
        if let Some(budget) = &self.budget {
            budget.record(&self.views.outputs);
        }
    }

    /// Out of the way of calls that are made.
    #[cold]
    fn count_refusal(&self) {
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

    /// Ends the block: last words first, so that a sink's data is safe before anyone upstream
    /// or downstream learns of the end.
    fn finish(&mut self) -> Result<bool, BlockError> {
        self.block.finish()?;
        self.block.ports(&mut Close);
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

/// Closes every port it is shown.
struct Close;

impl PortVisitor for Close {
    fn input(&mut self, _: &str, port: &mut dyn InputPort) {
        port.close();
    }

    fn output(&mut self, _: &str, port: &mut dyn OutputPort) {
        port.close();
    }
}
