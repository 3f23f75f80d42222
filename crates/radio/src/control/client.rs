//! The client of a device's registers.

use millstream_link::port::{Port, PortTx};
use millstream_wire::ctrl::{CtrlRepr, Protocol};
use millstream_wire::{Epid, Width};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use super::Registers;
use super::access::{OutstandingAccesses, RegisterAccess};
use super::events::ChannelEvents;
use super::pump::ControlReceiver;
use crate::deadline::OpenDeadline;
use crate::error::io_error;
use crate::rpc::ClaimLoss;
use crate::{Clock, RadioError};

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

/// The control endpoint of this host. Of the accesses that wait for their answer, one is
/// outstanding at a time; the restart of each receive stream may have another one.
///
/// A [`ControlReceiver`] takes acknowledgements and asynchronous messages, either on a thread that
/// ends when the last owner drops the client, or where the caller runs it.
pub struct Control {
    shared: Arc<ControlState>,
    /// Locked for the length of an access that waits for its answer.
    turn: Mutex<()>,
    /// No access begins after this.
    deadline: Mutex<Option<OpenDeadline>>,
    pump: Option<JoinHandle<()>>,
    clock: Clock,
}

pub(super) struct ControlState {
    pub device: SocketAddrV4,
    pub width: Width,
    pub protocol: Protocol,
    /// This host's control endpoint.
    pub epid: Epid,
    /// The device's control endpoint.
    pub peer: Epid,
    pub sender: Mutex<ControlSender>,
    pub outstanding: Mutex<OutstandingAccesses>,
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
        let length = self.protocol.emit(&repr, self.width, &mut bytes).map_err(|error| {
            RadioError::Unusable {
                address: *self.device.ip(),
                reason: format!("a control packet to it cannot be written: {error}"),
            }
        })?;
        sender.tx.send(&bytes[..length], self.device).map_err(io_error("send to", self.device))
    }
}

impl Control {
    /// Takes over the port whose endpoint is `epid`, routed to the device's control endpoint
    /// `peer`; the device speaks `protocol`. A new thread receives.
    ///
    /// # Errors
    /// [`RadioError::Io`] when no thread can be started.
    pub fn new(
        port: Port,
        device: SocketAddrV4,
        (width, protocol): (Width, Protocol),
        epid: Epid,
        peer: Epid,
    ) -> Result<Self, RadioError> {
        let layout = (width, protocol);
        let (mut control, receiver) = Self::without_thread(port.tx, device, layout, epid, peer);
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
        (width, protocol): (Width, Protocol),
        epid: Epid,
        peer: Epid,
    ) -> (Self, ControlReceiver) {
        let shared = Arc::new(ControlState {
            device,
            width,
            protocol,
            epid,
            peer,
            sender: Mutex::new(ControlSender { tx, seq: 0 }),
            outstanding: Mutex::default(),
            answered: Condvar::new(),
            channels: Mutex::default(),
            counters: ControlCounters::default(),
            stop: AtomicBool::new(false),
            claim_loss: OnceLock::new(),
        });
        let receiver = ControlReceiver::new(Arc::clone(&shared));
        let (turn, deadline, clock) = (Mutex::default(), Mutex::default(), Clock::MACHINE);
        (Self { shared, turn, deadline, pump: None, clock }, receiver)
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

    /// Returns the protocol that the device speaks.
    pub fn protocol(&self) -> Protocol {
        self.shared.protocol
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
        *lock(&self.deadline) = deadline;
    }

    /// Checks that another attempt of an access may begin.
    pub(super) fn check_deadline(&self) -> Result<(), RadioError> {
        lock(&self.deadline).map_or(Ok(()), |deadline| deadline.check(self.address()))
    }

    pub(super) fn shared(&self) -> &Arc<ControlState> {
        &self.shared
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
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
        self.access(RegisterAccess::read(port, address))
    }

    /// Writes a register; the write may be repeated without harm.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Refused`].
    pub fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        self.access(RegisterAccess::write(port, address, value)).map(drop)
    }

    /// Writes a register once, because a second write would have a second effect. After
    /// [`RadioError::Silent`] it is unknown whether the write happened.
    ///
    /// # Errors
    /// [`RadioError::Silent`], [`RadioError::Refused`].
    pub fn write_once(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
        self.access(RegisterAccess::write_once(port, address, value)).map(drop)
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
        self.access(RegisterAccess::write_once(port, address, value).at(ticks)).map(drop)
    }

    /// Waits for the outcome of an access.
    fn access(&self, access: RegisterAccess) -> Result<u32, RadioError> {
        let _turn = lock(&self.turn);
        let mut awaited = self.begin(access)?;
        loop {
            if let Some(outcome) = self.poll(&mut awaited) {
                return outcome;
            }
            self.wait(&awaited, None);
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
