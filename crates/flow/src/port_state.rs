//! The one place that says when a block may be called and when it is at its end.
//!
//! It looks at the rings and not through the block: a look costs a few loads, no call.

use crate::block::Block;
use crate::item::ItemType;
use crate::port::{InputPort, OutputPort, PortVisitor};
use millstream_ring::cursor::{ConsumerView, ProducerView};
use millstream_ring::{Loan, Pool};

/// The connected ports of a block, seen from outside: inputs and outputs each in the order of
/// `Ports::ports`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    pub(crate) inputs: Vec<ConsumerView>,
    pub(crate) outputs: Vec<ProducerView>,
    pub(crate) loans: Loans,
    /// Types of the items, inputs first.
    pub(crate) items: Vec<ItemType>,
}

/// What the rings of a block have borrowed of a pool, by port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loans {
    pub(crate) inputs: Vec<Option<Loan>>,
    pub(crate) outputs: Vec<Option<Loan>>,
}

/// The state of a block's ports before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortState {
    /// No input is short of its wanted items, unless it has ended.
    inputs_ready: bool,
    /// Every output has its wanted room.
    outputs_ready: bool,
    /// Every input has ended or has something to read.
    nothing_to_wait_for: bool,
    /// Some input has ended.
    has_ended_input: bool,
    /// There are outputs and nobody reads any of them any more.
    pub(crate) is_abandoned: bool,
}

impl Views {
    /// Of a block whose ports are connected; a port that is not has no view.
    pub(crate) fn of(block: &mut dyn Block) -> Self {
        let mut views = Self::default();
        block.ports(&mut views);
        views
    }

    /// The pools that the block's rings borrow from.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &Pool> {
        let loans = self.loans.inputs.iter().chain(&self.loans.outputs).flatten();
        loans.filter_map(Loan::pool)
    }

    /// What the ports say now. Keeps the block to the items that are there now, until the next
    /// survey: what is decided for a call, as to tags, holds for all that it sees.
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

    /// Whether the only output of this block is the only input of another, through a ring that
    /// nobody else reads.
    pub(crate) fn lead_to(&self, other: &Self) -> bool {
        match (&*self.outputs, &*other.inputs) {
            ([output], [input]) => output.feeds_only(input),
            _ => false,
        }
    }

    /// A number that grows when any port moves an item, and only then.
    #[inline]
    pub(crate) fn progress(&self) -> u64 {
        self.items_in().wrapping_add(self.items_out())
    }

    /// Items consumed so far, all inputs together.
    pub(crate) fn items_in(&self) -> u64 {
        self.inputs.iter().map(ConsumerView::position).sum()
    }

    /// Items produced so far, all outputs together.
    pub(crate) fn items_out(&self) -> u64 {
        self.outputs.iter().map(ProducerView::position).sum()
    }

    /// Whether the block has no inputs.
    pub(crate) fn is_source(&self) -> bool {
        self.inputs.is_empty()
    }
}

impl PortVisitor for Views {
    fn input(&mut self, _: &str, port: &mut dyn InputPort) {
        self.inputs.extend(port.view());
        // In whatever order the block names its ports.
        self.items.insert(self.loans.inputs.len(), port.item_type());
        self.loans.inputs.push(port.loan());
    }

    fn output(&mut self, _: &str, port: &mut dyn OutputPort) {
        self.outputs.extend(port.view());
        self.items.push(port.item_type());
        self.loans.outputs.push(port.loan());
    }
}

impl PortState {
    /// Whether a call makes sense now.
    pub(crate) fn can_work(&self) -> bool {
        self.inputs_ready && self.outputs_ready
    }

    /// Whether a call that moves nothing now proves that no call ever will: an input has
    /// ended, and there is neither an item nor room left to wait for.
    pub(crate) fn is_last_chance(&self) -> bool {
        self.has_ended_input && self.outputs_ready && self.nothing_to_wait_for
    }
}
