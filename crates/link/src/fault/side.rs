//! One direction of a frame link behind a fault switch: frames in, the frames after the rules out.
//!
//! No frame leaves the memory of its link: lost frames go back to the link, delayed ones stay in
//! place, bits are flipped in place, and only a duplicate is copied, into a buffer that the link
//! lends.

use super::held::{DelayQueue, ReleaseTime};
use super::rule::ByteChange;
use super::switch::{DatagramFate, FaultSwitch, RuleId};
use crate::frame::{Frame, FrameLink};

/// The least length of a truncated frame: its addresses and its type (IEEE 802.3).
const HEADER_BYTES: usize = 14;

/// The most lists of parts kept for reuse.
const SPARE_MAX: usize = 64;

/// The changes of the number of frames by faults.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub lost: u64,
    pub added: u64,
}

/// One direction of a frame link.
pub(super) struct FaultDirection {
    pub switch: FaultSwitch,
    /// The frames that have passed the rules and wait to be taken, in parts of whole frames.
    pub ready: Vec<Frame>,
    pub done: Done,
    held: DelayQueue<Vec<Frame>>,
    /// Parts in `held`.
    held_parts: usize,
    /// Parts of the current frame.
    whole: Vec<Frame>,
    spare: Vec<Vec<Frame>>,
    back: Vec<Frame>,
}

impl FaultDirection {
    /// Creates a direction for batches of `batch` parts; delays at most `held` frames.
    pub fn new(switch: FaultSwitch, batch: usize, held: usize) -> Self {
        Self {
            switch,
            ready: Vec::with_capacity(2 * batch),
            done: Done::default(),
            held: DelayQueue::new(held),
            held_parts: 0,
            whole: Vec::with_capacity(batch),
            spare: Vec::new(),
            back: Vec::with_capacity(batch),
        }
    }

    /// Whether there are no frames here and no rule can act: frames may bypass it.
    pub fn is_idle(&self) -> bool {
        self.is_empty() && !self.switch.is_live()
    }

    /// Whether there are no frames here.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty()
    }

    /// Returns the number of parts of frames here.
    pub fn parts(&self) -> usize {
        self.ready.len() + self.held_parts
    }

    /// Applies the rules to whole frames, one by one.
    pub fn judge(&mut self, link: &mut dyn FrameLink, frames: impl Iterator<Item = Frame>) {
        for part in frames {
            let more = part.continues();
            self.whole.push(part);
            if !more {
                self.judge_whole(link);
            }
        }
        // A frame without its end is passed on, for its taker to refuse.
        self.ready.append(&mut self.whole);
    }

    fn judge_whole(&mut self, link: &mut dyn FrameLink) {
        let now_ns = self.switch.now_ns();
        match self.switch.judge(link.memory().bytes(&self.whole[0]), now_ns) {
            DatagramFate::Pass => {}
            DatagramFate::Lose => self.lose(link),
            DatagramFate::Copies(copies, rule) => {
                (0..copies).for_each(|_| self.duplicate(link, rule))
            }
            DatagramFate::Later(due, rule) => {
                let mut parts = self.spare.pop().unwrap_or_default();
                parts.append(&mut self.whole);
                self.done.lost += u64::from(!self.hold(link, rule, due, parts));
            }
            DatagramFate::Change(ByteChange::Cut { bytes }) => {
                self.cut(link, bytes.max(HEADER_BYTES))
            }
            DatagramFate::Change(flips) => self.flip(link, &flips),
        }
        self.ready.append(&mut self.whole);
        self.release(now_ns);
    }

    fn lose(&mut self, link: &mut dyn FrameLink) {
        self.done.lost += 1;
        link.give_back(&mut self.whole);
    }

    /// Delays a frame; returns false if there was no room, so that it is lost.
    fn hold(
        &mut self,
        link: &mut dyn FrameLink,
        rule: RuleId,
        due: ReleaseTime,
        parts: Vec<Frame>,
    ) -> bool {
        let count = parts.len();
        let Err(mut parts) = self.held.keep(&self.switch, rule, due, parts) else {
            self.held_parts += count;
            return true;
        };
        link.give_back(&mut parts);
        self.keep_spare(parts);
        false
    }

    /// Copies the frame into buffers of the link, to follow it.
    fn duplicate(&mut self, link: &mut dyn FrameLink, rule: RuleId) {
        let mut copy = self.spare.pop().unwrap_or_default();
        let wanted = self.whole.len();
        let enough = link.reserve(&mut copy, wanted) == wanted
            && copy.iter().zip(&self.whole).all(|(to, from)| from.len() <= to.room());
        if !enough {
            self.switch.note_overflow(rule);
            link.give_back(&mut copy);
            return self.keep_spare(copy);
        }
        let memory = link.memory();
        for (to, from) in copy.iter_mut().zip(&self.whole) {
            to.set_len(from.len());
            to.set_continues(from.continues());
            to.note(from.vlan(), from.checksum_trusted());
            memory.bytes_mut(to).copy_from_slice(memory.bytes(from));
        }
        self.done.added += u64::from(self.hold(link, rule, ReleaseTime::NEXT, copy));
    }

    /// Cuts the frame's tail off.
    fn cut(&mut self, link: &mut dyn FrameLink, bytes: usize) {
        let mut left = bytes;
        let last = self.whole.iter().position(|part| {
            let ends = part.len() >= left;
            left -= if ends { 0 } else { part.len() };
            ends
        });
        let Some(last) = last else { return };
        self.whole[last].set_len(left);
        self.whole[last].set_continues(false);
        self.back.extend(self.whole.drain(last + 1..));
        link.give_back(&mut self.back);
    }

    /// Flips bits in place.
    fn flip(&mut self, link: &mut dyn FrameLink, change: &ByteChange) {
        let bytes = self.whole.iter().map(Frame::len).sum();
        for (mut at, bit) in change.flips(bytes) {
            for part in &mut self.whole {
                match at.checked_sub(part.len()) {
                    Some(behind) => at = behind,
                    None => {
                        link.memory().bytes_mut(part)[at] ^= 1 << bit;
                        // The checksums of changed bytes are no longer verified.
                        part.note(part.vlan(), false);
                        break;
                    }
                }
            }
        }
    }

    /// Moves the frames that are due to the ready ones.
    pub fn release(&mut self, now_ns: u64) {
        while let Some((mut parts, _)) = self.held.pop_due(&self.switch, now_ns) {
            self.held_parts -= parts.len();
            self.ready.append(&mut parts);
            self.keep_spare(parts);
        }
    }

    fn keep_spare(&mut self, list: Vec<Frame>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(list);
        }
    }
}
