//! Batches on their way: [`Pipeline`] takes samples and gives results in the same order, and falls
//! back to the CPU where the device does not answer. It reads no clock and owns no port.

mod fallback;
mod pace;
mod slots;
#[cfg(test)]
mod tests;

use crate::device::{Lost, Session};
use crate::kernel::{Kernel, KernelShape};
use crate::ledger::{Cause, DeviceLedger};
use crate::{OffloadSettings, Opened};
use fallback::Fallback;
use millstream_dsp::Sample;
use pace::{LOOK_MAX, LOOK_MIN, Pace};
use slots::{Slot, State};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The state of the device, as its answers show it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Health {
    /// It takes batches.
    Well,
    /// It owes answers that are overdue. When it has given all of them, it takes batches again.
    Stalled,
    /// It takes no batches any more.
    Gone(Cause),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pipeline {
    shape: KernelShape,
    settings: OffloadSettings,
    host: Fallback,
    session: Option<Box<dyn Session>>,
    health: Health,
    /// The device's slots, and one more for the CPU alone.
    slots: Vec<Slot>,
    /// The slot that is being filled.
    filling: Option<usize>,
    /// When its first sample came.
    filling_since: Option<Instant>,
    /// The batch ends with the frame that is begun.
    ends_soon: bool,
    /// The last samples that no complete batch has as its own: history, then the beginning of a
    /// frame.
    carried: Vec<Sample>,
    /// Complete batches, oldest first.
    order: VecDeque<usize>,
    /// Frames of the oldest batch that were given.
    given: usize,
    /// Batches that came back, for the check of one in so many.
    returned: u64,
    /// The oldest batch is calculated twice.
    checking: bool,
    pace: Pace,
    pub(crate) ledger: DeviceLedger,
}

impl Pipeline {
    pub(crate) fn new(kernel: &Kernel, opened: Opened, settings: OffloadSettings) -> Self {
        let shape = kernel.shape();
        let frames = settings.frames;
        let ledger = DeviceLedger::default();
        ledger.pinned_bytes.set(opened.session.pinned_bytes() as f64);
        let mut slots: Vec<_> = opened.windows.into_iter().map(Slot::of).collect();
        slots.push(Slot::ordinary(shape.window(frames)));
        let mut carried = Vec::with_capacity(shape.history + shape.samples);
        carried.resize(shape.history, Sample::default());
        Self {
            shape,
            host: Fallback::new(kernel),
            session: Some(opened.session),
            health: Health::Well,
            order: VecDeque::with_capacity(slots.len()),
            slots,
            filling: None,
            filling_since: None,
            ends_soon: false,
            carried,
            given: 0,
            returned: 0,
            checking: false,
            pace: Pace::default(),
            settings,
            ledger,
        }
    }

    /// Takes samples; returns how many. Takes none while all batches are under way.
    pub(crate) fn take(&mut self, samples: &[Sample], now: Instant) -> usize {
        let mut taken = 0;
        while taken < samples.len() && self.begin() {
            let slot = &mut self.slots[self.filling.expect("begun above")];
            let end = match self.ends_soon {
                // The frame that contains the gap is the last one.
                true => self.shape.end_of_frame(slot.samples()),
                false => self.shape.window(self.settings.frames),
            };
            taken += slot.fill(&samples[taken..], end);
            self.filling_since.get_or_insert(now);
            if slot.samples() == end {
                self.complete(now);
            }
        }
        taken
    }

    /// Makes sure that a slot is being filled; returns whether there is one.
    fn begin(&mut self) -> bool {
        if self.filling.is_some() {
            return true;
        }
        let device = match self.health {
            Health::Well => self.slots.len() - 1,
            Health::Stalled | Health::Gone(_) => self.slots.len(),
        };
        // The CPU calculates a batch when its turn comes, so one at a time is enough for it.
        let enough = self.health != Health::Well && !self.order.is_empty();
        let free = (0..device).rev().find(|slot| self.slots[*slot].is_free());
        let Some(slot) = free.filter(|_| !enough) else { return false };
        self.slots[slot].begin(&self.carried);
        self.filling = Some(slot);
        true
    }

    /// Completes the batch that is being filled, if it has a frame, and passes it on.
    pub(crate) fn complete(&mut self, now: Instant) {
        let KernelShape { history, samples, .. } = self.shape;
        let Some(slot) = self.filling else { return };
        let frames = (self.slots[slot].samples() - history) / samples;
        if frames == 0 {
            return;
        }
        self.filling = None;
        let own = frames * samples;
        self.carried.clear();
        self.carried.extend_from_slice(&self.slots[slot].filled()[own..]);
        let is_begun = self.carried.len() > history;
        self.filling_since = is_begun.then_some(now);
        self.ends_soon &= is_begun;
        let state = match self.submit(slot, frames) {
            Ok(true) => State::Submitted(now),
            Ok(false) => State::Host(self.cause()),
            Err(_) => {
                self.lose(Cause::Lost);
                State::Host(Cause::Lost)
            }
        };
        self.slots[slot].complete(frames, state);
        self.order.push_back(slot);
    }

    /// Gives a batch to the device; returns whether the device took it.
    fn submit(&mut self, slot: usize, frames: usize) -> Result<bool, Lost> {
        let Some(session) = &mut self.session else { return Ok(false) };
        if self.health != Health::Well || slot + 1 == self.slots.len() {
            return Ok(false);
        }
        session.submit(slot, self.slots[slot].window(), frames)?;
        let bytes = self.shape.window(frames) * size_of::<Sample>();
        self.ledger.to_device_bytes.add(bytes as u64);
        Ok(true)
    }

    fn cause(&self) -> Cause {
        match self.health {
            Health::Gone(cause) => cause,
            Health::Well | Health::Stalled => Cause::Stall,
        }
    }

    /// Fills up the frame that was begun, for a kernel whose results need no more of it. At the end
    /// of the stream only.
    pub(crate) fn pad(&mut self, now: Instant) {
        let samples = self.shape.samples;
        if self.is_frame_begun() && self.begin() {
            let slot = self.filling.expect("begun above");
            let length = self.shape.end_of_frame(self.slots[slot].samples());
            self.slots[slot].pad(length);
            debug_assert!(self.pending_samples() % samples == 0);
            self.complete(now);
        }
    }

    /// Whether a frame waits for its last samples.
    pub(crate) fn is_frame_begun(&self) -> bool {
        self.pending_samples() % self.shape.samples != 0
    }

    /// Counts what has no results because the stream ended.
    pub(crate) fn end(&mut self) {
        self.ledger.tail_items.add(self.pending_samples() as u64);
        self.ledger.publish();
    }

    /// Ends the batch at the end of the frame that is begun: the next sample is behind a gap.
    pub(crate) fn end_at_gap(&mut self, now: Instant) {
        if self.pending_samples() % self.shape.samples == 0 {
            self.complete(now);
        } else {
            self.ends_soon = true;
        }
    }

    /// Returns the most samples that wait inside.
    pub(crate) fn samples_held(&self) -> usize {
        self.slots.len() * self.settings.frames * self.shape.samples + self.shape.history / 2
    }

    /// Samples that wait for their batch to be complete.
    fn pending_samples(&self) -> usize {
        let there = self.filling.map_or(self.carried.len(), |slot| self.slots[slot].samples());
        there - self.shape.history
    }

    /// Looks what the device has finished, and completes a batch that waited too long for samples.
    pub(crate) fn look(&mut self, now: Instant) {
        if self.filling_since.is_some_and(|since| now >= since + self.settings.wait_max) {
            self.complete(now);
        }
        if self.session.is_none() || !self.pace.begin(now) {
            return;
        }
        for slot in 0..self.slots.len() - 1 {
            let (at, is_owed) = match (self.slots[slot].state, self.slots[slot].owed) {
                (_, Some(at)) => (at, true),
                (State::Submitted(at), None) => (at, false),
                _ => continue,
            };
            let Some(session) = &mut self.session else { return };
            match session.poll(slot) {
                Ok(false) => {
                    self.slots[slot].unfinished = Some(now);
                    continue;
                }
                Ok(true) if is_owed => {
                    session.release(slot);
                    self.slots[slot].owed = None;
                }
                Ok(true) => {
                    self.slots[slot].state = State::Ready;
                    self.ledger.record_latency(now.saturating_duration_since(at));
                }
                Err(_) => return self.lose(Cause::Lost),
            }
            self.pace.finished(at, self.slots[slot].unfinished, now);
        }
        if self.health == Health::Stalled && self.slots.iter().all(|slot| slot.owed.is_none()) {
            self.health = Health::Well;
        }
        self.give_up(now);
    }

    /// Takes the oldest batch back from a device that should have finished it.
    fn give_up(&mut self, now: Instant) {
        let Some(&slot) = self.order.front() else { return };
        let State::Submitted(at) = self.slots[slot].state else { return };
        let overdue = self.pace.is_overdue(at, now, self.settings.stall_after);
        if overdue || self.health == Health::Stalled {
            self.health = Health::Stalled;
            self.slots[slot].state = State::Host(Cause::Stall);
            self.slots[slot].owed = Some(at);
        }
    }

    /// Ends the use of the device. Every batch under way is calculated here.
    fn lose(&mut self, cause: Cause) {
        self.session = None;
        self.health = Health::Gone(cause);
        self.ledger.is_gone.set(1.0);
        for slot in &mut self.slots {
            slot.owed = None;
            if matches!(slot.state, State::Submitted(_) | State::Ready) {
                slot.state = State::Host(cause);
            }
        }
    }

    /// Writes results of the oldest batches into `out`, whole frames; returns their number.
    pub(crate) fn give(&mut self, out: &mut [f32]) -> usize {
        let words = self.shape.words;
        let mut made = 0;
        while made < out.len() / words {
            let Some(&slot) = self.order.front() else { break };
            let left = self.slots[slot].frames() - self.given;
            let count = left.min(out.len() / words - made);
            let to = &mut out[made * words..(made + count) * words];
            match self.slots[slot].state {
                State::Ready => self.give_ready(slot, to),
                State::Host(cause) => self.give_host(slot, to, cause),
                State::Submitted(_) | State::Free | State::Filling => break,
            }
            made += count;
            self.given += count;
            if count == left {
                self.end_batch(slot);
            }
        }
        made
    }

    fn give_ready(&mut self, slot: usize, to: &mut [f32]) {
        let Self { session, given, .. } = self;
        let session = session.as_mut().expect("a batch that is ready has its session");
        if *given == 0 {
            let every = self.settings.check_every;
            self.returned += 1;
            self.checking = every > 0 && self.returned % every == 0;
        }
        let words = self.shape.words;
        let place = *given * words..*given * words + to.len();
        let items = self.slots[slot].items(*given, to.len() / words, self.shape);
        if self.checking {
            self.host.give(&self.slots[slot], *given, to);
            if !self.host.agree(&self.slots[slot], &session.results(slot)[place], to) {
                self.lose(Cause::Wrong);
                self.ledger.of(Cause::Wrong).add(items);
                return;
            }
            self.ledger.checked_items.add(items);
        } else {
            to.copy_from_slice(&session.results(slot)[place]);
        }
        self.ledger.device_items.add(items);
        self.ledger.from_device_bytes.add(size_of_val(to) as u64);
    }

    fn give_host(&mut self, slot: usize, to: &mut [f32], cause: Cause) {
        self.host.give(&self.slots[slot], self.given, to);
        let frames = to.len() / self.shape.words;
        let items = self.slots[slot].items(self.given, frames, self.shape);
        self.ledger.of(cause).add(items);
    }

    fn end_batch(&mut self, slot: usize) {
        if self.slots[slot].state == State::Ready {
            if let Some(session) = &mut self.session {
                session.release(slot);
            }
        }
        self.slots[slot].state = State::Free;
        self.host.forget();
        self.given = 0;
        self.order.pop_front();
    }

    /// Whether no batch is complete and under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the time after which a look is worth while; `None` if only samples or room help.
    pub(crate) fn next_look(&mut self, now: Instant) -> Option<Duration> {
        let whole = self.pending_samples() >= self.shape.samples;
        let wait = self.filling_since.filter(|_| whole).map(|since| {
            (since + self.settings.wait_max).saturating_duration_since(now).max(LOOK_MIN)
        });
        let device = self.order.front().and_then(|slot| match self.slots[*slot].state {
            State::Submitted(at) => Some(self.pace.next(at, now)),
            _ => None,
        });
        let owed = self.slots.iter().any(|slot| slot.owed.is_some()).then_some(LOOK_MAX);
        let device = self.pace.plan([device, owed].into_iter().flatten().min(), now);
        [wait, device].into_iter().flatten().min()
    }
}
