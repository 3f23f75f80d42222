//! Register reads and writes with acknowledgement and bounded repetition.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use millstream_link::port::{Port, PortTx};
use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, Op, SEQ_MODULUS};
use millstream_wire::{Epid, Width};

use super::Registers;
use super::events::ChannelEvents;
use super::pump::ControlReceiver;
use crate::deadline::OpenDeadline;
use crate::error::io_error;
use crate::rpc::ClaimLoss;
use crate::{Clock, RadioError};

/// The time limit for the acknowledgement of one attempt.
const ACK_TIMEOUT: Duration = Duration::from_millis(200);

/// The attempts of an access that may be repeated.
const TRIES: u32 = 5;

/// The longest control packet, bytes, at the largest width.
const PACKET_BYTES: usize = 256;

/// Counts of unexpected events on the control port.
#[derive(Debug, Default)]
pub struct ControlCounters {
    /// Datagrams from senders other than the device.
    pub foreign: AtomicU64,
    /// Datagrams from the device that could not be decoded.
    pub malformed: AtomicU64,
    /// Acknowledgements without a pending access (of one given up, or duplicates).
    pub stray_acks: AtomicU64,
    /// Asynchronous messages of unknown meaning.
    pub unknown_messages: AtomicU64,
    /// Asynchronous messages that came again; each is handled once.
    pub repeated_messages: AtomicU64,
    /// Asynchronous messages that never came, by the device's sequence numbers.
    pub missed_messages: AtomicU64,
    /// Accesses that were repeated.
    pub retries: AtomicU64,
}

/// The control endpoint of this host. One access is outstanding at a time.
///
/// A [`ControlReceiver`] takes acknowledgements and asynchronous messages, either on a thread that
/// ends when the last owner drops the client, or where the caller runs it.
pub struct Control {
    shared: Arc<ControlState>,
    /// Locked for the length of an access.
    turn: Mutex<OutstandingAccess>,
    pump: Option<JoinHandle<()>>,
    clock: Clock,
}

/// The state of the accesses, of which one is outstanding at a time.
#[derive(Default)]
struct OutstandingAccess {
    /// The sequence number of the next access.
    ctrl_seq: u8,
    /// No access begins after this.
    deadline: Option<OpenDeadline>,
}

pub(super) struct ControlState {
    pub device: SocketAddrV4,
    pub width: Width,
    /// This host's control endpoint.
    pub epid: Epid,
    /// The device's control endpoint.
    pub peer: Epid,
    pub sender: Mutex<ControlSender>,
    pub waiting: Mutex<PendingAccess>,
    pub answered: Condvar,
    pub channels: Mutex<Vec<(u16, u8, Arc<ChannelEvents>)>>,
    pub counters: ControlCounters,
    pub stop: AtomicBool,
    pub claim_loss: OnceLock<ClaimLoss>,
}

pub(super) struct ControlSender {
    tx: Box<dyn PortTx>,
    seq: u16,
}

/// A read or write of a register.
#[derive(Debug, Clone, Copy)]
struct RegisterAccess {
    port: u16,
    op: Op,
    address: u32,
    value: u32,
    /// The time of its effect.
    ticks: Option<u64>,
}

/// The access that is outstanding.
#[derive(Default)]
pub(super) struct PendingAccess {
    /// Bit s: an attempt was sent with control sequence number s.
    pub tries: u64,
    /// The control port of its register.
    pub port: u16,
    pub address: u32,
    pub answer: Option<CtrlRepr>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state is consistent at every unlock, so a panic of another thread is not a reason to
    // stop.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ControlState {
    /// Sends a control packet under the next CHDR sequence number.
    pub fn send(&self, mut repr: CtrlRepr) -> Result<(), RadioError> {
        let mut sender = lock(&self.sender);
        repr.seq = sender.seq;
        sender.seq = sender.seq.wrapping_add(1);
        let mut bytes = [0; PACKET_BYTES];
        let length = repr.emit(self.width, &mut bytes).map_err(|error| RadioError::Unusable {
            address: *self.device.ip(),
            reason: format!("a control packet to it cannot be written: {error}"),
        })?;
        sender.tx.send(&bytes[..length], self.device).map_err(io_error("send to", self.device))
    }
}

impl Control {
    /// Takes over the port whose endpoint is `epid`, routed to the device's control endpoint
    /// `peer`. A new thread receives.
    ///
    /// # Errors
    /// [`RadioError::Io`] when no thread can be started.
    pub fn new(
        port: Port,
        device: SocketAddrV4,
        width: Width,
        epid: Epid,
        peer: Epid,
    ) -> Result<Self, RadioError> {
        let (mut control, receiver) = Self::without_thread(port.tx, device, width, epid, peer);
        let rx = port.rx;
        let pump = thread::Builder::new()
            .name("radio-control".into())
            .spawn(move || receiver.run(rx))
            .map_err(io_error("start the control thread for", device))?;
        control.pump = Some(pump);
        Ok(control)
    }

    /// Does the same without a thread: the caller passes datagrams to the receiver.
    pub fn without_thread(
        tx: Box<dyn PortTx>,
        device: SocketAddrV4,
        width: Width,
        epid: Epid,
        peer: Epid,
    ) -> (Self, ControlReceiver) {
        let shared = Arc::new(ControlState {
            device,
            width,
            epid,
            peer,
            sender: Mutex::new(ControlSender { tx, seq: 0 }),
            waiting: Mutex::default(),
            answered: Condvar::new(),
            channels: Mutex::default(),
            counters: ControlCounters::default(),
            stop: AtomicBool::new(false),
            claim_loss: OnceLock::new(),
        });
        let receiver = ControlReceiver::new(Arc::clone(&shared));
        (Self { shared, turn: Mutex::default(), pump: None, clock: Clock::MACHINE }, receiver)
    }

    /// Measures time-outs by `clock`. In a simulation an access sleeps until its answer has come.
    #[must_use]
    pub fn on(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Returns this host's control endpoint.
    pub fn epid(&self) -> Epid {
        self.shared.epid
    }

    /// Returns the device's CHDR address.
    pub fn device(&self) -> SocketAddrV4 {
        self.shared.device
    }

    /// Sets the claim under which this host commands the device.
    pub fn set_claim(&self, loss: ClaimLoss) {
        // A device has one claim for its life; a second call changes nothing.
        let _ = self.shared.claim_loss.set(loss);
    }

    /// Returns the reason if that claim was lost: the device has then forgotten this host.
    pub fn claim_lost(&self) -> Option<String> {
        self.shared.claim_loss.get()?.reason()
    }

    /// Returns the counts of the control port.
    pub fn counters(&self) -> &ControlCounters {
        &self.shared.counters
    }

    /// Sets the time after which new accesses fail; `None` removes it.
    pub fn set_deadline(&self, deadline: Option<OpenDeadline>) {
        lock(&self.turn).deadline = deadline;
    }

    /// Returns the messages about a channel of the block at `port`, from now on.
    pub fn watch(&self, port: u16, channel: u8) -> Arc<ChannelEvents> {
        let events = Arc::new(ChannelEvents::default());
        lock(&self.shared.channels).push((port, channel, Arc::clone(&events)));
        events
    }

    /// Reads a register of the block at `port`.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Refused`].
    pub fn read(&self, port: u16, address: u32) -> Result<u32, RadioError> {
        let access = RegisterAccess { port, op: Op::Read, address, value: 0, ticks: None };
        self.access(access, TRIES, ACK_TIMEOUT)
    }

    /// Writes a register; the write may be repeated without harm.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Refused`].
    pub fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        let access = RegisterAccess { port, op: Op::Write, address, value, ticks: None };
        self.access(access, TRIES, ACK_TIMEOUT).map(drop)
    }

    /// Writes a register once, because a second write would have a second effect. After
    /// [`RadioError::Silent`] it is unknown whether the write happened.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Refused`].
    pub fn write_once(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        let access = RegisterAccess { port, op: Op::Write, address, value, ticks: None };
        self.access(access, 1, ACK_TIMEOUT).map(drop)
    }

    /// Writes a register with effect at the device's time `ticks`, for blocks that acknowledge such
    /// a write before its time, as DDC and DUC do. It is sent once, because a copy that comes late
    /// would have a second effect.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Refused`].
    pub fn write_at(
        &self,
        port: u16,
        address: u32,
        value: u32,
        ticks: u64,
    ) -> Result<(), RadioError> {
        let access = RegisterAccess { port, op: Op::Write, address, value, ticks: Some(ticks) };
        self.access(access, 1, ACK_TIMEOUT).map(drop)
    }

    fn access(
        &self,
        access: RegisterAccess,
        attempts: u32,
        wait: Duration,
    ) -> Result<u32, RadioError> {
        let RegisterAccess { port, op, address, value, ticks } = access;
        let mut turn = lock(&self.turn);
        *lock(&self.shared.waiting) = PendingAccess { port, address, ..PendingAccess::default() };
        for attempt in 0..attempts {
            if attempt > 0 {
                self.shared.counters.retries.fetch_add(1, Ordering::Relaxed);
            }
            turn.deadline.map_or(Ok(()), |deadline| deadline.check(self.address()))?;
            lock(&self.shared.waiting).tries |= 1 << turn.ctrl_seq;
            self.shared.send(CtrlRepr {
                dst_epid: self.shared.peer,
                src_epid: self.shared.epid,
                dst_port: port,
                src_port: port,
                ctrl_seq: turn.ctrl_seq,
                address,
                op,
                data: DataWords::one(value),
                timestamp: ticks,
                ..CtrlRepr::default()
            })?;
            turn.ctrl_seq = (turn.ctrl_seq + 1) % SEQ_MODULUS;
            if let Some(answer) = self.wait(self.clock.now() + wait) {
                return outcome(&answer, op, port, address);
            }
        }
        let what = if op == Op::Read { "a register read" } else { "a register write" };
        let wait_ms = wait.as_millis() as u64;
        Err(RadioError::Silent { address: self.shared.device, what, attempts, wait_ms })
    }

    fn wait(&self, until: Instant) -> Option<CtrlRepr> {
        let mut waiting = lock(&self.shared.waiting);
        loop {
            if let Some(answer) = waiting.answer.take() {
                waiting.tries = 0;
                return Some(answer);
            }
            let left = self.clock.left(until);
            if left.is_zero() {
                return None;
            }
            if self.clock.is_simulated() {
                drop(waiting);
                self.clock.sleep(left);
                waiting = lock(&self.shared.waiting);
                continue;
            }
            let woken = self.shared.answered.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Registers for Control {
    fn address(&self) -> Ipv4Addr {
        *self.shared.device.ip()
    }

    fn read(&self, port: u16, address: u32) -> Result<u32, RadioError> {
        Self::read(self, port, address)
    }

    fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        Self::write(self, port, address, value)
    }
}

fn outcome(answer: &CtrlRepr, op: Op, port: u16, address: u32) -> Result<u32, RadioError> {
    let status = match answer.status {
        ControlStatus::Ok | ControlStatus::Warning => return Ok(answer.data.first()),
        ControlStatus::CommandError => "command error",
        ControlStatus::TimeError => "time error",
    };
    let what = if op == Op::Read { "a read" } else { "a write" };
    Err(RadioError::Refused { what, port, address, status })
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(pump) = self.pump.take() {
            // The thread's panic has been reported already.
            let _ = pump.join();
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
