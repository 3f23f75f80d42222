//! One block in its partition: when to call it, what to count, whom to tell.

use super::error::{RunError, panic_message};
use super::stats::BlockCounters;
use crate::block::{Block, BlockError, Context, Work};
use crate::port::{InputPort, OutputPort, PortVisitor};
use crate::survey::{Survey, Totals};
use millstream_ring::{Padded, Waiter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When a source that had nothing to say is asked again.
const SOURCE_POLL: Duration = Duration::from_millis(1);

/// A block, its counters, and the waiters of the partitions it is connected to.
pub(super) struct Task {
    name: String,
    block: Box<dyn Block>,
    counters: Arc<Padded<BlockCounters>>,
    neighbours: Vec<Arc<Padded<Waiter>>>,
    totals: Totals,
    wake_at: Option<Instant>,
    finished: bool,
}

impl Task {
    pub(super) fn new(
        name: String,
        block: Box<dyn Block>,
        counters: Arc<Padded<BlockCounters>>,
        neighbours: Vec<Arc<Padded<Waiter>>>,
    ) -> Self {
        let totals = Totals::default();
        Self { name, block, counters, neighbours, totals, wake_at: None, finished: false }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// When the block wants to be called even if no port changes.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Prepares the block.
    pub(super) fn start(&mut self) -> Result<(), RunError> {
        self.guard(|task| task.block.start())
    }

    /// Calls the block if it can work. Says whether anything changed: items moved, an input
    /// was found to have ended, or the block finished. Advances `context.now`.
    pub(super) fn step(&mut self, context: &mut Context) -> Result<bool, RunError> {
        if self.finished { Ok(false) } else { self.guard(|task| task.try_step(context)) }
    }

    fn try_step(&mut self, context: &mut Context) -> Result<bool, BlockError> {
        self.wake_at = None;
        let survey = Survey::of(&mut *self.block);
        if survey.is_abandoned() || (context.stopping && survey.is_source()) {
            return self.finish();
        }
        if !survey.can_work() {
            return Ok(false);
        }
        let work = self.block.work(context)?;
        let totals = Totals::of(&mut *self.block);
        let moved = totals != self.totals;
        self.count(context, totals);
        match work {
            Work::Finished => return self.finish(),
            Work::Continue if !moved && survey.is_last_chance() => return self.finish(),
            Work::Continue if !moved && survey.is_source() => {
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

    fn count(&mut self, context: &mut Context, totals: Totals) {
        let now = Instant::now();
        let busy = now.saturating_duration_since(context.now);
        context.now = now;
        self.totals = totals;
        self.counters.calls.add(1);
        self.counters.items_in.set(totals.items_in);
        self.counters.items_out.set(totals.items_out);
        self.counters.busy_ns.add(busy.as_nanos() as u64);
    }

    /// Ends the block: last words first, so that a sink's data is safe before anyone upstream
    /// or downstream learns of the end.
    fn finish(&mut self) -> Result<bool, BlockError> {
        self.block.finish()?;
        self.block.ports(&mut Close);
        self.finished = true;
        self.tell();
        Ok(true)
    }

    fn tell(&self) {
        self.neighbours.iter().for_each(|waiter| waiter.notify());
    }

    /// Runs a piece of the block and turns its error or panic into the run's.
    fn guard<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, BlockError>,
    ) -> Result<T, RunError> {
        // After a panic the block is only dropped, so a broken state harms nobody.
        match catch_unwind(AssertUnwindSafe(|| run(self))) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(RunError::Block { block: self.name.clone(), source }),
            Err(panic) => Err(RunError::BlockPanic {
                block: self.name.clone(),
                message: panic_message(&*panic),
            }),
        }
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
