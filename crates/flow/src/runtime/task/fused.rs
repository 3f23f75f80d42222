//! A task as part of a [fused chain](super::super::fused_chain).

use super::BlockTask;
use crate::block::{BlockError, Context};
use crate::item::ItemType;
use crate::lane::{Lane, PAGE_BYTES};
use crate::port::each_port;
use crate::runtime::stats::FILL_ONE;
use crate::runtime::sync::now;
use millstream_ring::cursor::{Consumer, Producer};

/// Items that went through a fused chain and are not counted yet.
#[derive(Clone, Copy, Default)]
pub(in crate::runtime) struct PendingCounts {
    pub(in crate::runtime) items: u64,
    pub(in crate::runtime) batches: u64,
}

impl BlockTask {
    /// Calls the block if it can work; timed if there is a `weight`.
    #[inline]
    pub(in crate::runtime) fn call(
        &mut self,
        context: &mut Context,
        weight: Option<u32>,
    ) -> Result<bool, BlockError> {
        match weight {
            None => self.step(context),
            Some(weight) => self.timed_step(context, weight),
        }
    }

    /// Returns the item types of its ports, the input first.
    pub(in crate::runtime) fn items(&self) -> &[ItemType] {
        &self.views.items
    }

    /// Whether `next` may follow in a fused chain: both are one-to-one, and this one's whole output
    /// goes there.
    pub(in crate::runtime) fn leads_to(&self, next: &Self) -> bool {
        self.is_one_to_one() && next.is_one_to_one() && self.views.lead_to(&next.views)
    }

    pub(in crate::runtime) fn is_source(&self) -> bool {
        self.views.is_source()
    }

    pub(in crate::runtime) fn is_sink(&self) -> bool {
        self.views.outputs.is_empty()
    }

    /// Fused chains do not count the items under way, so a measured block is never part of one.
    fn is_one_to_one(&self) -> bool {
        let views = &self.views;
        let is_plain = views.inputs.len() <= 1
            && views.outputs.len() <= 1
            && views.inputs.iter().all(|input| input.wanted() <= 1)
            && views.outputs.iter().all(|output| output.wanted() <= 1)
            && views.items.iter().all(|item| item.align_bytes() <= PAGE_BYTES);
        let is_metered = self.marks.is_some() || self.budget.is_some();
        !self.finished && is_plain && !is_metered && self.takes_lanes
    }

    /// Whether the rings behind the block are empty.
    pub(in crate::runtime) fn is_drained(&self) -> bool {
        self.views.outputs.iter().all(|output| output.is_drained())
    }

    /// Whether the block could be called as part of a chain: nothing waits for it, and the ring
    /// behind it is empty if that is `inside` the chain.
    pub(in crate::runtime) fn is_clear(&self, inside: bool) -> bool {
        !self.finished
            && self.wake_at.is_none()
            && self.tags.is_quiet()
            && (!inside || self.is_drained())
    }

    /// Whether no tag is in its ports.
    pub(in crate::runtime) fn is_untagged(&mut self) -> bool {
        let (mut inputs, mut outputs) = (true, true);
        each_port(
            &mut *self.block,
            |_, port| inputs &= port.is_untagged(),
            |_, port| outputs &= port.is_untagged(),
        );
        inputs && outputs
    }

    /// Returns the items that a chain could take from here: those of the input, or any number for a
    /// source. `None` if the block must be called by itself.
    #[inline]
    pub(in crate::runtime) fn lane_in(&self) -> Option<u64> {
        let Some(input) = self.views.inputs.first() else { return Some(u64::MAX) };
        let (available, ended) = input.available();
        input.cut(available);
        // Tags are read after the items, because they are published before them.
        (!ended && self.tags.is_quiet()).then_some(available)
    }

    /// Returns the items that a chain could write here; `None` if there is no reader.
    #[inline]
    pub(in crate::runtime) fn lane_out(&self) -> Option<u64> {
        let Some(output) = self.views.outputs.first() else { return Some(u64::MAX) };
        let (room, is_abandoned) = output.survey();
        (!is_abandoned).then_some(room)
    }

    /// Whether a message waits.
    #[inline]
    pub(in crate::runtime) fn has_pending(&self) -> bool {
        self.inbox.has_pending()
    }

    /// Whether the block wakes other threads.
    pub(in crate::runtime) fn has_neighbours(&self) -> bool {
        !self.neighbours.is_empty()
    }

    /// Calls the block with a lane.
    #[inline]
    pub(in crate::runtime) fn call_on_lane(&mut self, lane: &mut Lane) {
        self.block.pass(lane);
    }

    /// As `call_on_lane`, and wakes the neighbours.
    pub(in crate::runtime) fn call_on_lane_and_tell(&mut self, lane: &mut Lane) {
        self.block.pass(lane);
        self.tell();
    }

    /// Adds the calls with a lane to the block's count.
    #[inline]
    pub(in crate::runtime) fn count_calls(&mut self, counts: PendingCounts) {
        self.calls += counts.batches;
        self.counters.calls.set(self.calls);
    }

    /// Counts the fill of the input before a timed call.
    pub(in crate::runtime) fn count_lane(&self, items: u64) {
        for (input, counters) in self.views.inputs.iter().zip(&self.counters.inputs) {
            counters.looks.add(1);
            counters.fill.add(items.saturating_mul(FILL_ONE) / input.capacity().max(1));
        }
    }

    /// Charges the time since `context.now`, which it advances, to the block.
    pub(in crate::runtime) fn charge(&self, context: &mut Context, weight: u32) {
        let now = now();
        let busy = now.saturating_duration_since(context.now);
        self.counters.busy_ns.add(busy.as_nanos() as u64 * u64::from(weight));
        context.now = now;
    }

    /// Takes, before the chain runs, the cursor of the ring behind the block, whose output has no
    /// room from then on. `None` if the block has given the port away.
    #[cold]
    pub(in crate::runtime) fn set_output_aside(&mut self) -> Option<Producer> {
        let mut aside = None;
        each_port(&mut *self.block, |_, _| {}, |_, port| aside = port.bypass());
        aside
    }

    /// Takes the cursor of the ring before the block in the same way.
    #[cold]
    pub(in crate::runtime) fn set_input_aside(&mut self) -> Option<Consumer> {
        let mut aside = None;
        each_port(&mut *self.block, |_, port| aside = port.bypass(), |_, _| {});
        aside
    }

    /// Gives the cursor of the ring behind the block back after the chain.
    #[cold]
    pub(in crate::runtime) fn resume_output(&mut self, cursor: Producer) {
        let mut cursor = Some(cursor);
        each_port(
            &mut *self.block,
            |_, _| {},
            |_, port| cursor.take().into_iter().for_each(|cursor| port.resume(cursor)),
        );
    }

    /// Gives the cursor of the ring before the block back in the same way.
    #[cold]
    pub(in crate::runtime) fn resume_input(&mut self, cursor: Consumer) {
        let mut cursor = Some(cursor);
        each_port(
            &mut *self.block,
            |_, port| cursor.take().into_iter().for_each(|cursor| port.resume(cursor)),
            |_, _| {},
        );
    }

    /// Updates the block's progress after the chain: items that moved meanwhile are not a change.
    pub(in crate::runtime) fn rejoin(&mut self) {
        self.progress = self.views.progress();
    }
}
