//! The one place that says when a block may be called and when it is at its end.

use crate::block::Block;
use crate::port::{InputPort, OutputPort, PortVisitor};

/// The state of a block's ports before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    /// No input is short of its wanted items, unless it has ended.
    inputs_ready: bool,
    /// Every output has its wanted room.
    outputs_ready: bool,
    /// Every input has ended or has something to read.
    nothing_to_wait_for: bool,
    inputs: u32,
    outputs: u32,
    inputs_ended: u32,
    outputs_abandoned: u32,
}

impl Survey {
    pub(crate) fn of(block: &mut dyn Block) -> Self {
        let mut survey = Self {
            inputs_ready: true,
            outputs_ready: true,
            nothing_to_wait_for: true,
            inputs: 0,
            outputs: 0,
            inputs_ended: 0,
            outputs_abandoned: 0,
        };
        block.ports(&mut survey);
        survey
    }

    /// Whether a call makes sense now.
    pub(crate) fn can_work(&self) -> bool {
        self.inputs_ready && self.outputs_ready
    }

    /// Whether a call that moves nothing now proves that no call ever will: an input has
    /// ended, and there is neither an item nor room left to wait for.
    pub(crate) fn is_last_chance(&self) -> bool {
        self.inputs_ended > 0 && self.outputs_ready && self.nothing_to_wait_for
    }

    /// Whether the block has outputs and nobody reads any of them any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.outputs > 0 && self.outputs_abandoned == self.outputs
    }

    /// Whether the block has no inputs.
    pub(crate) fn is_source(&self) -> bool {
        self.inputs == 0
    }
}

impl PortVisitor for Survey {
    fn input(&mut self, _: &str, port: &mut dyn InputPort) {
        let wanted = port.min_items();
        let has_wanted = port.has(wanted);
        let has_any = if wanted == 0 { port.has(1) } else { has_wanted };
        // After the looks above, so that it agrees with them.
        let ended = port.is_ended();
        self.inputs += 1;
        self.inputs_ended += u32::from(ended);
        self.inputs_ready &= has_wanted || ended;
        self.nothing_to_wait_for &= has_any || ended;
    }

    fn output(&mut self, _: &str, port: &mut dyn OutputPort) {
        self.outputs += 1;
        self.outputs_abandoned += u32::from(port.is_abandoned());
        self.outputs_ready &= port.has_room(port.min_items());
    }
}

/// What a block has moved so far, and how many of its inputs are known to have ended. Unequal
/// totals before and after a call mean that the call got somewhere.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Totals {
    pub(crate) items_in: u64,
    pub(crate) items_out: u64,
    pub(crate) inputs_ended: u32,
}

impl Totals {
    pub(crate) fn of(block: &mut dyn Block) -> Self {
        let mut totals = Self::default();
        block.ports(&mut totals);
        totals
    }
}

impl PortVisitor for Totals {
    fn input(&mut self, _: &str, port: &mut dyn InputPort) {
        self.items_in += port.items();
        self.inputs_ended += u32::from(port.is_ended());
    }

    fn output(&mut self, _: &str, port: &mut dyn OutputPort) {
        self.items_out += port.items();
    }
}
