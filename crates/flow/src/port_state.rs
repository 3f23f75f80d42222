//! Decides when a block may be called and when it has ended.
//!
//! It reads the rings directly, not through the block: this costs a few loads, no call.

use crate::block::Block;
use crate::item::ItemType;
use crate::port::each_port;
use millstream_ring::cursor::{ConsumerView, ProducerView};

/// The connected ports of a block, seen from outside: inputs and outputs each in the order of
/// `Ports::ports`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    pub(crate) inputs: Vec<ConsumerView>,
    pub(crate) outputs: Vec<ProducerView>,
    /// Types of the items, inputs first.
    pub(crate) items: Vec<ItemType>,
}

/// The state of a block's ports before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortState {
    /// Every input has its wanted items or has ended.
    inputs_ready: bool,
    /// Every output has its wanted room.
    outputs_ready: bool,
    /// Every input has ended or has something to read.
    nothing_to_wait_for: bool,
    /// Some input has ended.
    has_ended_input: bool,
    /// The block has outputs and every reader of all of them is gone.
    pub(crate) is_abandoned: bool,
}

impl Views {
    /// Takes the views of a block whose ports are connected; a port without connection has no view.
    pub(crate) fn of(block: &mut dyn Block) -> Self {
        let (mut views, mut output_items) = (Self::default(), Vec::new());
        each_port(
            block,
            |_, port| {
                views.inputs.extend(port.view());
                views.items.push(port.item_type());
            },
            |_, port| {
                views.outputs.extend(port.view());
                output_items.push(port.item_type());
            },
        );
        views.items.append(&mut output_items);
        views
    }

    /// Reports the state of the ports now. Limits the block to the items that are there now, until
    /// the next report: so a decision for a call about tags holds for all items that the call sees.
    #[inline]
    pub(crate) fn survey(&self) -> PortState {
        let mut survey = PortState {
            inputs_ready: true,
            outputs_ready: true,
            nothing_to_wait_for: true,
            has_ended_input: false,
            is_abandoned: !self.outputs.is_empty(),
        };
        for input in &self.inputs {
            let (available, ended) = input.available();
            input.cut(available);
            survey.has_ended_input |= ended;
            survey.inputs_ready &= available >= input.wanted() || ended;
            survey.nothing_to_wait_for &= available > 0 || ended;
        }
        for output in &self.outputs {
            let (room, is_abandoned) = output.survey();
            survey.is_abandoned &= is_abandoned;
            survey.outputs_ready &= room >= output.wanted();
        }
        survey
    }

    /// Whether the only output of this block is the only input of another, through a ring without
    /// another reader.
    pub(crate) fn lead_to(&self, other: &Self) -> bool {
        match (&*self.outputs, &*other.inputs) {
            ([output], [input]) => output.feeds_only(input),
            _ => false,
        }
    }

    /// Returns a number that grows when and only when a port moves an item.
    #[inline]
    pub(crate) fn progress(&self) -> u64 {
        self.items_in().wrapping_add(self.items_out())
    }

    /// Returns the items consumed so far, all inputs together.
    pub(crate) fn items_in(&self) -> u64 {
        self.inputs.iter().map(ConsumerView::position).sum()
    }

    /// Returns the items produced so far, all outputs together.
    pub(crate) fn items_out(&self) -> u64 {
        self.outputs.iter().map(ProducerView::position).sum()
    }

    /// Whether the block has no inputs.
    pub(crate) fn is_source(&self) -> bool {
        self.inputs.is_empty()
    }
}

impl PortState {
    /// Whether the block can be called now.
    pub(crate) fn can_work(&self) -> bool {
        self.inputs_ready && self.outputs_ready
    }

    /// Whether a call that moves no item now proves that no call ever will: an input has ended, and
    /// the block waits for neither items nor room.
    pub(crate) fn is_last_chance(&self) -> bool {
        self.has_ended_input && self.outputs_ready && self.nothing_to_wait_for
    }
}
