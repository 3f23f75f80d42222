//! Register accesses, each of which awaits its answer without blocking.
//!
//! ```text
//! begin ─▶ attempt ─▶ answer ───────────────▶ outcome
//!             ▲  └──▶ time-out ─▶ last one? ─▶ silent
//!             └───────── no ◀──────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, Op, Protocol};

use super::client::{Control, ControlState, lock};
use super::numbers::SequenceNumbers;
use crate::RadioError;
use crate::deadline::deadline_after;

/// The time limit for the acknowledgement of one attempt.
const ACK_TIMEOUT: Duration = Duration::from_millis(200);

/// The attempts of an access that may be repeated.
const TRIES: u32 = 5;

/// The accesses for which there is memory at first: one per stream and thread is usual.
const USUAL: usize = 8;

/// A read or write of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterAccess {
    port: u16,
    op: Op,
    address: u32,
    value: u32,
    /// The time of its effect.
    ticks: Option<u64>,
    attempts: u32,
}

impl RegisterAccess {
    /// Reads a register of the block at `port`.
    pub fn read(port: u16, address: u32) -> Self {
        Self { port, op: Op::Read, address, value: 0, ticks: None, attempts: TRIES }
    }

    /// Writes a register; the write may be repeated without harm.
    pub fn write(port: u16, address: u32, value: u32) -> Self {
        Self { op: Op::Write, value, ..Self::read(port, address) }
    }

    /// Writes a register once, because a second write would have a second effect.
    pub fn write_once(port: u16, address: u32, value: u32) -> Self {
        Self { attempts: 1, ..Self::write(port, address, value) }
    }

    /// Does it with effect at the device's time `ticks`.
    pub fn at(self, ticks: u64) -> Self {
        Self { ticks: Some(ticks), ..self }
    }

    fn outcome(&self, answer: &CtrlRepr) -> Result<u32, RadioError> {
        let status = match answer.status {
            ControlStatus::Ok | ControlStatus::Warning => return Ok(answer.data.first()),
            ControlStatus::CommandError => "command error",
            ControlStatus::TimeError => "time error",
        };
        let what = if self.op == Op::Read { "a read" } else { "a write" };
        Err(RadioError::Refused { what, port: self.port, address: self.address, status })
    }
}

/// The accesses that are outstanding.
#[derive(Debug)]
pub(super) struct OutstandingAccesses {
    /// The sequence number of the next attempt.
    ctrl_seq: u8,
    /// The name of the next access.
    id: u64,
    accesses: Vec<PendingAccess>,
}

/// An access that is outstanding.
#[derive(Debug)]
struct PendingAccess {
    id: u64,
    /// The control sequence numbers of its attempts.
    tries: SequenceNumbers,
    op: Op,
    /// The control port of its register.
    port: u16,
    address: u32,
    answer: Option<CtrlRepr>,
}

impl Default for OutstandingAccesses {
    fn default() -> Self {
        Self { ctrl_seq: 0, id: 0, accesses: Vec::with_capacity(USUAL) }
    }
}

impl OutstandingAccesses {
    /// Adds an access without attempts, and returns its name.
    fn add(&mut self, access: &RegisterAccess) -> u64 {
        let id = self.id;
        self.id += 1;
        let (tries, answer) = (SequenceNumbers::default(), None);
        let RegisterAccess { port, op, address, .. } = *access;
        self.accesses.push(PendingAccess { id, tries, op, port, address, answer });
        id
    }

    fn remove(&mut self, id: u64) {
        self.accesses.retain(|access| access.id != id);
    }

    /// Returns the sequence number for another attempt: none that an answer may still have.
    fn number(&mut self, id: u64, protocol: Protocol) -> u8 {
        let last = (protocol.sequence_modulus() - 1) as u8;
        let after = |number: u8| if number >= last { 0 } else { number + 1 };
        let mut number = self.ctrl_seq;
        for _ in 0..last {
            if !self.accesses.iter().any(|access| access.tries.contains(number)) {
                break;
            }
            number = after(number);
        }
        self.ctrl_seq = after(number);
        if let Some(access) = self.accesses.iter_mut().find(|access| access.id == id) {
            access.tries.insert(number);
        }
        number
    }

    /// Takes an acknowledgement; returns false when no access awaits it.
    pub fn acknowledge(&mut self, repr: &CtrlRepr) -> bool {
        let awaits = |access: &&mut PendingAccess| {
            access.tries.contains(repr.ctrl_seq)
                && (access.port, access.op) == (repr.dst_port, repr.op)
                && access.address == repr.address
                && (access.op != Op::Read || !repr.data.is_empty())
                && access.answer.is_none()
        };
        let access = self.accesses.iter_mut().find(awaits);
        access.map(|access| access.answer = Some(*repr)).is_some()
    }

    fn answer(&self, id: u64) -> Option<&CtrlRepr> {
        self.accesses.iter().find(|access| access.id == id)?.answer.as_ref()
    }
}

/// An access whose answer is awaited.
///
/// Dropping it gives it up: it is then unknown whether a write happened.
pub(crate) struct AwaitedAccess {
    shared: Arc<ControlState>,
    access: RegisterAccess,
    id: u64,
    /// The attempts so far; the last one counts as lost after `until`.
    attempts: u32,
    until: Instant,
}

impl Control {
    /// Begins an access: its first attempt is sent.
    ///
    /// # Errors
    /// [`RadioError::Io`], [`RadioError::OpenTooSlow`].
    pub(crate) fn begin(&self, access: RegisterAccess) -> Result<AwaitedAccess, RadioError> {
        let shared = Arc::clone(self.shared());
        let id = lock(&shared.outstanding).add(&access);
        let until = self.clock().now();
        let mut awaited = AwaitedAccess { shared, access, id, attempts: 0, until };
        self.attempt(&mut awaited)?;
        Ok(awaited)
    }

    /// Returns the outcome of an access if it is known by now; an attempt whose time is over is
    /// repeated.
    pub(crate) fn poll(&self, awaited: &mut AwaitedAccess) -> Option<Result<u32, RadioError>> {
        let answer = lock(&awaited.shared.outstanding).answer(awaited.id).copied();
        if let Some(answer) = answer {
            return Some(awaited.access.outcome(&answer));
        }
        if self.clock().now() < awaited.until {
            return None;
        }
        let RegisterAccess { op, attempts, .. } = awaited.access;
        if awaited.attempts < attempts {
            awaited.shared.counters.retries.fetch_add(1, Ordering::Relaxed);
            return self.attempt(awaited).err().map(Err);
        }
        let what = if op == Op::Read { "a register read" } else { "a register write" };
        let (address, wait_ms) = (self.device(), ACK_TIMEOUT.as_millis() as u64);
        let claim_lost = self.claim_lost();
        Some(Err(RadioError::Silent { address, what, attempts, wait_ms, claim_lost }))
    }

    /// Waits for the answer to an access, until its attempt counts as lost, and no longer than
    /// `until`; it may return earlier.
    pub(crate) fn wait(&self, awaited: &AwaitedAccess, until: Option<Instant>) {
        let until = until.map_or(awaited.until, |until| until.min(awaited.until));
        if self.clock().is_simulated() {
            return self.clock().sleep(self.clock().left(until));
        }
        let outstanding = lock(&awaited.shared.outstanding);
        let left = self.clock().left(until);
        if outstanding.answer(awaited.id).is_none() && !left.is_zero() {
            drop(awaited.shared.answered.wait_timeout(outstanding, left));
        }
    }

    fn attempt(&self, awaited: &mut AwaitedAccess) -> Result<(), RadioError> {
        self.check_deadline()?;
        let RegisterAccess { port, op, address, value, ticks, .. } = awaited.access;
        let protocol = awaited.shared.protocol;
        let ctrl_seq = lock(&awaited.shared.outstanding).number(awaited.id, protocol);
        let (data, read_words) = match (protocol, op) {
            (Protocol::V2, Op::Read) => (DataWords::NONE, 1),
            _ => (DataWords::one(value), 0),
        };
        awaited.attempts += 1;
        awaited.shared.send(CtrlRepr {
            dst_epid: awaited.shared.peer,
            src_epid: awaited.shared.epid,
            dst_port: port,
            src_port: port,
            ctrl_seq,
            address,
            op,
            data,
            read_words,
            timestamp: ticks,
            ..CtrlRepr::default()
        })?;
        awaited.until = deadline_after(self.clock().now(), ACK_TIMEOUT);
        Ok(())
    }
}

impl Drop for AwaitedAccess {
    fn drop(&mut self) {
        lock(&self.shared.outstanding).remove(self.id);
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
