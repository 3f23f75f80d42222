//! One-to-one blocks of a partition, run as one. See [`lane`](crate::lane).

use super::stats::Count;
use super::task::{BlockTask, PendingCounts};
use crate::block::Context;
use crate::lane::{BatchMemory, Lane};
use millstream_ring::cursor::{Consumer, Producer};
use std::any::TypeId;
use std::ops::Range;

/// Blocks that are called one after the other: a chain of one-to-one blocks, or a single block of
/// any kind.
pub(super) struct FusedChain {
    /// Its tasks among the partition's, in the order that items pass.
    members: Range<usize>,
    /// Facts about each task, close together in memory.
    steps: Vec<ChainStep>,
    /// The most items that pass at once.
    batch_items: usize,
    /// The chain begins with a source and ends with a sink: it has no neighbours.
    is_closed: bool,
    /// The rings inside are empty, and no tag is on its way.
    is_clear: bool,
    /// Both ends of the rings inside while the chain is clear, so that nothing else can use them.
    rings: Vec<(Producer, Consumer)>,
    /// What the blocks and rings have yet to count.
    uncounted: PendingCounts,
}

/// One block of a fused chain.
struct ChainStep {
    /// See [`BlockTask::call_number`].
    call_number: u64,
    /// The buffer behind this block among the partition's; [`NO_BUFFER`] behind the last.
    buffer: usize,
    /// The block wakes other threads.
    wakes_others: bool,
}

/// A [`ChainStep::buffer`] without a buffer.
const NO_BUFFER: usize = usize::MAX;

/// The next action of a fused chain.
pub(super) enum ChainAction {
    /// Call all blocks in turn with a lane of so many items.
    Run(usize),
    /// Wait for items.
    Wait,
    /// Call each block by itself.
    CallEach,
}

impl FusedChain {
    /// Forms the chains of `tasks` and sorts these by chain; batches have at most `batch_bytes`.
    /// Also returns the buffers, which all chains share: only one chain runs at a time, and the
    /// buffers stay in the near cache.
    pub(super) fn form(
        tasks: &mut Vec<BlockTask>,
        batch_bytes: usize,
    ) -> (Vec<Self>, Vec<BatchMemory>) {
        let next: Vec<Option<usize>> = (0..tasks.len())
            .map(|task| (0..tasks.len()).find(|next| tasks[task].leads_to(&tasks[*next])))
            .collect();
        let heads = (0..tasks.len()).filter(|task| !next.contains(&Some(*task)));
        let members = |head| std::iter::successors(Some(head), |task| next[*task]).collect();
        let members: Vec<Vec<usize>> = heads.map(members).collect();
        let mut loose: Vec<Option<BlockTask>> =
            std::mem::take(tasks).into_iter().map(Some).collect();
        tasks.extend(members.iter().flatten().filter_map(|task| loose[*task].take()));
        let (mut buffers, mut start) = (Vec::new(), 0);
        let chain = |members: &Vec<usize>| {
            let range = start..start + members.len();
            start = range.end;
            Self::of(tasks, range, batch_bytes, &mut buffers)
        };
        (members.iter().map(chain).collect(), buffers)
    }

    fn of(
        tasks: &[BlockTask],
        members: Range<usize>,
        batch_bytes: usize,
        buffers: &mut Vec<BatchMemory>,
    ) -> Self {
        let tasks = &tasks[members.clone()];
        let sizes = tasks.iter().flat_map(BlockTask::items).map(|item| item.size_bytes());
        let batch_items = (batch_bytes / sizes.max().unwrap_or(1).max(1)).max(1);
        let is_closed = tasks[0].is_source() && tasks[tasks.len() - 1].is_sink();
        let mut steps: Vec<ChainStep> = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            let last = steps.last().map_or(NO_BUFFER, |step| step.buffer);
            let buffer = tasks.get(at + 1).map_or(NO_BUFFER, |next| {
                let item = next.items()[0];
                let bytes = batch_bytes.max(batch_items * item.size_bytes());
                Self::buffer_for(item.id(), bytes, last, buffers)
            });
            steps.push(ChainStep {
                call_number: task.call_number(),
                buffer,
                wakes_others: task.has_neighbours(),
            });
        }
        let (is_clear, uncounted) = (false, PendingCounts::default());
        let rings = Vec::with_capacity(members.len() - 1);
        Self { members, steps, batch_items, is_closed, is_clear, rings, uncounted }
    }

    /// Finds a buffer of the same type other than the batch's own, so a chain of one type
    /// alternates between two buffers.
    fn buffer_for(
        item: TypeId,
        bytes: usize,
        last: usize,
        buffers: &mut Vec<BatchMemory>,
    ) -> usize {
        let fits = |(at, buffer): &(usize, &BatchMemory)| {
            buffer.item() == item && buffer.bytes() >= bytes && *at != last
        };
        let found = buffers.iter().enumerate().find(fits).map(|(at, _)| at);
        found.unwrap_or_else(|| {
            buffers.push(BatchMemory::new(item, bytes));
            buffers.len() - 1
        })
    }

    pub(super) fn members(&self) -> Range<usize> {
        self.members.clone()
    }

    /// Whether the chain can pass several batches in a row without delaying another block.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the chain's next action, if the graph is not `stopping`. Unless it is
    /// [`ChainAction::CallEach`], only the chain may use the tasks. A block takes messages only by
    /// itself, because tags that say what a message changed need its ports.
    #[inline]
    pub(super) fn next_action(&mut self, tasks: &mut [BlockTask], stopping: bool) -> ChainAction {
        let members = self.members.clone();
        if self.is_clear && !stopping && !tasks[members.clone()].iter().any(BlockTask::has_pending)
        {
            let (first, last) = (members.start, members.end - 1);
            let (taken, room) = (tasks[first].lane_in(), tasks[last].lane_out());
            match (taken, room) {
                (Some(0), Some(1..)) => {
                    tasks[members].iter().for_each(BlockTask::count_refusal);
                    return ChainAction::Wait;
                }
                (Some(taken), Some(room @ 1..)) => {
                    return ChainAction::Run(taken.min(room).min(self.batch_items as u64) as usize);
                }
                _ => {}
            }
        }
        self.split(tasks);
        ChainAction::CallEach
    }

    /// Passes the items of the action through the `buffers`, then more that come meanwhile, in up
    /// to so many rounds; stores each block's number in `in_call` before its call. Not called while
    /// the graph is stopping.
    pub(super) fn run(
        &mut self,
        tasks: &mut [BlockTask],
        buffers: &[BatchMemory],
        (items, rounds): (usize, u32),
        in_call: &Count,
    ) {
        self.pass_batches(tasks, buffers, (items, rounds), |task, step, lane| {
            in_call.set(step.call_number);
            if step.wakes_others {
                task.call_on_lane_and_tell(lane);
            } else {
                task.call_on_lane(lane);
            }
        });
    }

    /// As `run`, and charges the time since `context.now`, which it advances, to the blocks: each
    /// `weight` times, because it represents that many calls.
    pub(super) fn run_timed(
        &mut self,
        tasks: &mut [BlockTask],
        buffers: &[BatchMemory],
        (items, rounds): (usize, u32),
        in_call: &Count,
        (context, weight): (&mut Context, u32),
    ) {
        self.pass_batches(tasks, buffers, (items, rounds), |task, step, lane| {
            in_call.set(step.call_number);
            task.count_lane(items as u64);
            task.call_on_lane_and_tell(lane);
            task.charge(context, weight);
        });
    }

    #[inline]
    fn pass_batches(
        &mut self,
        tasks: &mut [BlockTask],
        buffers: &[BatchMemory],
        (mut items, rounds): (usize, u32),
        mut call: impl FnMut(&mut BlockTask, &ChainStep, &mut Lane),
    ) {
        for left in (0..rounds).rev() {
            let members = &mut tasks[self.members.clone()];
            let mut lane = Lane::new(items);
            for (at, step) in self.steps.iter().enumerate() {
                // SAFETY: only this partition uses the buffers, and it runs one chain at a time;
                // consecutive steps have different buffers, each made for a batch;
                // `BlockTask::leads_to` has checked the alignment.
                unsafe { lane.lead(buffers.get(step.buffer)) };
                call(&mut members[at], step, &mut lane);
            }
            self.uncounted.items += items as u64;
            self.uncounted.batches += 1;
            // Nothing outside a closed chain changes its next action, but a message, which may wait
            // for so short a time.
            if left > 0 && !self.is_closed {
                let ChainAction::Run(more) = self.next_action(tasks, false) else { break };
                items = more;
            }
        }
        self.count(tasks);
    }

    /// Adds the pending counts to the tasks.
    fn count(&mut self, tasks: &mut [BlockTask]) {
        let uncounted = std::mem::take(&mut self.uncounted);
        for (producer, consumer) in &mut self.rings {
            producer.count_bypassed(consumer, uncounted.items);
        }
        tasks[self.members.clone()].iter_mut().for_each(|task| task.count_calls(uncounted));
    }

    /// Whether the rings inside hold items.
    pub(super) fn holds_items(&self, tasks: &[BlockTask]) -> bool {
        let inside = &tasks[self.members.start..self.members.end - 1];
        inside.iter().any(|task| !task.is_drained())
    }

    /// Checks, after every block was called by itself, whether the blocks can run as one.
    pub(super) fn fuse(&mut self, tasks: &mut [BlockTask]) {
        let tasks = &mut tasks[self.members.clone()];
        let last = tasks.len() - 1;
        self.is_clear = last > 0
            && tasks.iter().enumerate().all(|(at, task)| task.is_clear(at < last))
            && tasks.iter_mut().all(BlockTask::is_untagged);
        self.is_clear = self.is_clear && self.bypass(tasks);
    }

    /// Takes the cursors of the rings inside from the members' `tasks`. Returns false if a block
    /// does not have its cursor.
    fn bypass(&mut self, tasks: &mut [BlockTask]) -> bool {
        for at in 0..tasks.len() - 1 {
            match (tasks[at].set_output_aside(), tasks[at + 1].set_input_aside()) {
                (Some(producer), Some(consumer)) if producer.feeds_only(&consumer) => {
                    self.rings.push((producer, consumer));
                }
                (producer, consumer) => {
                    producer.into_iter().for_each(|end| tasks[at].resume_output(end));
                    consumer.into_iter().for_each(|end| tasks[at + 1].resume_input(end));
                    self.resume(tasks);
                    return false;
                }
            }
        }
        true
    }

    /// Gives the cursors of the rings inside back to the members' `tasks`.
    fn resume(&mut self, tasks: &mut [BlockTask]) {
        for (at, (producer, consumer)) in self.rings.drain(..).enumerate() {
            tasks[at].resume_output(producer);
            tasks[at + 1].resume_input(consumer);
        }
    }

    /// Ends the fused mode, so that the blocks can be called by themselves or handed to another
    /// thread.
    #[inline]
    pub(super) fn split(&mut self, tasks: &mut [BlockTask]) {
        if self.is_clear {
            self.count(tasks);
            let tasks = &mut tasks[self.members.clone()];
            self.resume(tasks);
            tasks.iter_mut().for_each(BlockTask::rejoin);
            self.is_clear = false;
        }
    }
}
