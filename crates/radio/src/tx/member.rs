//! The stream of one channel: its parts, its opening and its end.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::chdr::{DataRepr, SC16_LEN, round_to_word};
use millstream_wire::ctrl::CLIENT_ZERO_PORT;
use millstream_wire::regs::client_zero::PROTO_VER;

use super::channel::TxChannel;
use super::core::{QUERY_BYTES_MAX, TxCore, TxStep};
use super::filling::{Burst, Filling};
use super::ledger::TxLedger;
use super::meta::{TxArgs, TxCounters, TxError, TxEvent, TxMetadata};
use super::opening;
use super::recover::ASKS;
use super::window::CreditWindow;
use crate::RadioError;
use crate::deadline::deadline_after;
use crate::error::io_error;
use crate::stream::{StreamPath, StreamRate};

/// How long the end of a stream waits for the device to take the samples in flight, besides the
/// time to play them.
pub(super) const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the end waits for reports about packets that the device has taken, also where packets
/// were late, so that the acknowledgement may be missing.
const REPORTS_TIMEOUT: Duration = Duration::from_millis(500);
const LATE_TIMEOUT: Duration = Duration::from_millis(50);

/// One channel of a [`super::TxStreamer`], on its own port or on one that streams share
/// ([`crate::SharedPort`]).
///
/// It does not depend on the kind of link. In the steady state it allocates nothing. On its own
/// port it takes no lock, and makes one system call per train and one per report period to read
/// the credit.
pub struct TxMember {
    pub(super) port: Port,
    pub(super) path: StreamPath,
    pub(super) channel: TxChannel,
    pub(super) scale: f32,
    pub(super) samples_per_packet: usize,

    pub(super) core: TxCore,
    pub(super) async_seen: u64,
    /// Reports that were missed before the stream was opened.
    pub(super) missed_before: u64,
}

impl TxMember {
    /// Routes and opens the stream of `channel` from `port`.
    ///
    /// # Errors
    /// [`RadioError::Silent`] when the handshake fails, [`RadioError::Unusable`] for a window in
    /// which no packet fits.
    pub fn open(
        mut port: Port,
        path: StreamPath,
        channel: TxChannel,
        args: &TxArgs,
    ) -> Result<Self, RadioError> {
        let device = path.device;
        let opened = opening::open(&mut port, &path)?;
        let whole = path.rate.whole_cycles(channel.samples_per_word()).get() as usize;
        let samples_per_packet = samples_per_packet(&path, &opened.window, args, whole)?;
        let filling = Filling::new(path.width, samples_per_packet, whole);
        let core = TxCore::new(path, opened, samples_per_packet as u64, filling);
        // Reports of an earlier stream.
        let async_seen = channel.events().tx_reported();
        while channel.events().take_tx().is_some() {}
        let missed_before = channel.missed();
        let mut stream = Self {
            port,
            scale: args.scale,
            samples_per_packet,
            core,
            path,
            async_seen,
            missed_before,
            channel,
        };
        // The device does not check the number of the first command, so it is sent before it
        // matters.
        stream.query().map_err(|error| match error {
            TxError::Radio(error) => error,
            other => RadioError::Unusable { address: *device.ip(), reason: other.to_string() },
        })?;
        Ok(stream)
    }

    /// Returns the outcome of every sample so far.
    pub fn ledger(&self) -> &TxLedger {
        self.core.account.ledger()
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> &TxCounters {
        &self.core.counters
    }

    /// Returns the bytes that may be in flight.
    pub fn credit_window_bytes(&self) -> u64 {
        self.core.account.window().capacity_bytes()
    }

    /// Returns the bytes that may be in flight, by the reports so far.
    pub fn in_flight_bytes(&self) -> u64 {
        self.core.account.in_flight().bytes
    }

    /// Returns the local address of the stream's port.
    pub fn local(&self) -> SocketAddrV4 {
        self.port.local
    }

    /// Returns the rates of samples and of the radio's time when the stream was opened.
    pub(super) fn rate(&self) -> StreamRate {
        self.path.rate
    }

    /// Reads the device's time, ticks.
    pub(super) fn time_ticks(&self) -> Result<u64, RadioError> {
        self.channel.time_ticks()
    }

    /// Returns whether a burst has been started and not ended.
    pub(super) fn is_in_burst(&self) -> bool {
        self.core.filling.burst != Burst::Idle
    }

    /// Returns how long the end waits for a burst whose time is still to come.
    pub(super) fn finish_time(&self) -> Duration {
        FINISH_TIMEOUT + self.still_holds(Duration::ZERO).unwrap_or_default()
    }

    /// Ends an open burst, and waits until the device has taken everything: samples that it has not
    /// taken within `timeout` are unknown.
    pub(super) fn end(&mut self, timeout: Duration) {
        let clock = self.path.clock;
        let until = deadline_after(clock.now(), timeout);
        let left = || clock.left(until);
        let alive = match self.core.filling.burst {
            Burst::Idle => Ok(true),
            Burst::Open { .. } => {
                let ended = self.send::<[i16; 2]>(&[], TxMetadata::now().ending(), left());
                ended.map(|sent| sent.end_of_burst)
            }
        };
        if alive.is_ok() {
            // A silent device shows in the ledger.
            let _ = self.drain(left());
            let _ = self.hear_all(left());
            let _ = self.ask_again(left());
        }
        self.core.account.close();
        self.core.filling.burst = Burst::Idle;
    }

    /// Waits for the device's reports about the ends of bursts. All reports sent before its answer
    /// to a register read have arrived with that answer.
    fn hear_all(&mut self, timeout: Duration) -> Result<(), TxError> {
        let late = self.core.account.may_all_be_late();
        let most = if late { LATE_TIMEOUT } else { REPORTS_TIMEOUT };
        self.wait(timeout.min(most), |stream| !stream.core.account.is_unacknowledged())?;
        if self.core.account.is_unacknowledged() {
            self.channel.time_ticks()?;
        }
        self.poll()
    }

    /// Asks once more for packets that count as lost: the network may have delivered them since,
    /// and the device reports a late one only when it has passed it.
    fn ask_again(&mut self, timeout: Duration) -> Result<(), TxError> {
        if !self.core.account.may_come_late() {
            return Ok(());
        }
        let timeout = timeout.min(REPORTS_TIMEOUT);
        for _ in 0..ASKS {
            self.query()?;
            if self.wait(timeout, |stream| !stream.core.account.is_asking())? {
                break;
            }
        }
        self.drain(timeout).map(drop)
    }

    /// Waits until the device has taken everything that was sent, see [`crate::TxStreamer::drain`].
    pub(super) fn drain(&mut self, timeout: Duration) -> Result<bool, TxError> {
        let until = self.path.clock.deadline(timeout);
        loop {
            let asks = self.core.account.is_query_worth();
            if asks {
                self.query()?;
            }
            let left = self.path.clock.left(until);
            let done = |stream: &Self| {
                // A query in flight must be answered before another one's answer can be assigned.
                stream.core.account.is_known() || !asks && stream.core.account.is_query_worth()
            };
            if !self.wait(left, done)? || self.core.account.is_known() {
                return Ok(self.core.account.is_known());
            }
        }
    }

    /// Returns the next event, if there is one.
    pub(super) fn poll_event(&mut self) -> Result<Option<TxEvent>, TxError> {
        if self.core.events.is_empty() {
            self.poll()?;
        }
        Ok(self.core.events.pop_front())
    }

    /// Returns the next event, waiting for one up to `timeout`.
    pub(super) fn next_event(&mut self, timeout: Duration) -> Result<Option<TxEvent>, TxError> {
        self.wait(timeout, |stream| !stream.core.events.is_empty())?;
        Ok(self.core.events.pop_front())
    }

    /// Takes received packets, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), TxError> {
        self.receive(Duration::ZERO)
    }

    /// Waits until `done`, no longer than `timeout`. It also reopens a closed window, even with a
    /// zero `timeout`, so that a caller that never waits does not stall.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, TxError> {
        self.poll()?;
        let until = self.path.clock.deadline(timeout);
        loop {
            if done(self) {
                return Ok(true);
            }
            let now = self.path.clock.now();
            self.recover(now)?;
            if now >= until {
                return Ok(false);
            }
            self.receive(self.core.sleep(now, until))?;
        }
    }

    pub(super) fn receive(&mut self, timeout: Duration) -> Result<(), TxError> {
        let received = self.port.rx.recv_batch(timeout);
        let count = received.map_err(io_error("receive from", self.path.device))?;
        for index in 0..count {
            let datagram = self.port.rx.datagram(index);
            self.core.accept(datagram.payload, datagram.source);
        }
        self.give_messages();
        Ok(())
    }

    /// Gives the core the messages that the control thread stored.
    fn give_messages(&mut self) {
        self.core.miss_messages(self.channel.missed().saturating_sub(self.missed_before));
        let reported = self.channel.events().tx_reported();
        if reported == self.async_seen {
            return;
        }
        self.async_seen = reported;
        while let Some((event, time_ticks)) = self.channel.events().take_tx() {
            self.core.note_event(event, time_ticks);
        }
    }

    /// Executes the steps that are due during a silence.
    pub(super) fn recover(&mut self, now: Instant) -> Result<(), TxError> {
        let closed = self.core.room_packets() == 0;
        match self.core.recover(now, closed) {
            None => Ok(()),
            Some(TxStep::Query) => self.query(),
            Some(TxStep::Examine { silent }) => self.examine(silent),
        }
    }

    /// Finds the reason when all queries stayed without an answer.
    fn examine(&mut self, silent: Duration) -> Result<(), TxError> {
        let asked = self.path.clock.now();
        match self.channel.control().read(CLIENT_ZERO_PORT, PROTO_VER) {
            Ok(_) => {}
            Err(RadioError::Silent { .. } | RadioError::Io { .. }) => {
                return Err(TxError::DeviceSilent {
                    address: self.path.device,
                    claim_lost: self.channel.control().claim_lost(),
                    silent_ms: (silent + self.path.clock.now().duration_since(asked)).as_millis()
                        as u64,
                });
            }
            Err(error) => return Err(error.into()),
        }
        let wait = self.still_holds(silent)?;
        if wait > Duration::ZERO {
            if let Some(stall) = &mut self.core.stall {
                stall.put_off(self.path.clock.now() + wait);
            }
            return Ok(());
        }
        self.reestablish()
    }

    /// Returns how long the device has a valid reason to take no samples.
    fn still_holds(&self, silent: Duration) -> Result<Duration, TxError> {
        let timed = self.core.account.has_times();
        let ticks = timed.then(|| self.channel.time_ticks()).transpose()?;
        Ok(self.core.still_holds(silent, ticks))
    }

    /// Sets the stream up again: the device is alive, but does not answer for the stream.
    fn reestablish(&mut self) -> Result<(), TxError> {
        let opened = opening::open(&mut self.port, &self.path)?;
        self.core.reopen(opened);
        self.query()
    }

    /// Queries the device's place, if there is credit for that.
    fn query(&mut self) -> Result<(), TxError> {
        let mut query = [0; QUERY_BYTES_MAX];
        let Some(length) = self.core.query(&mut query) else { return Ok(()) };
        let device = self.path.device;
        let sent = self.port.tx.send(&query[..length], device);
        sent.map_err(io_error("send to", device)).map_err(TxError::from)
    }
}

impl std::fmt::Debug for TxMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TxMember")
            .field("path", &self.path)
            .field("burst", &self.core.filling.burst)
            .field("window", self.core.account.window())
            .field("counters", &self.core.counters)
            .finish_non_exhaustive()
    }
}

/// Returns the samples that fit the path and half the window, or fewer if requested; a multiple of
/// `whole`.
fn samples_per_packet(
    path: &StreamPath,
    window: &CreditWindow,
    args: &TxArgs,
    whole: usize,
) -> Result<usize, RadioError> {
    let timed = DataRepr { timestamp: Some(0), ..DataRepr::default() };
    let window_bytes = usize::try_from(window.packet_bytes_max()).unwrap_or(usize::MAX);
    let word = round_to_word(1, path.width);
    let room = path.frame_bytes.min(window_bytes / word * word);
    let most = room.saturating_sub(timed.header_len(path.width)) / SC16_LEN;
    let too_small = if most == 0 {
        Some(format!("{} bytes", window.capacity_bytes()))
    } else {
        (window.packets_max() == 0).then(|| format!("{} packets", window.capacity_packets()))
    };
    let reason = match too_small {
        Some(size) => format!("its transmit window of {size} is too small for a packet"),
        None if whole > most => format!(
            "the radio takes {whole} samples at a time, but a packet to it can carry only {most}: \
             raise the MTU (9000 bytes), or use another device image"
        ),
        None => {
            let wanted = args.samples_per_packet.map_or(most, |samples| samples as usize);
            return Ok((wanted.min(most) / whole * whole).max(whole));
        }
    };
    Err(RadioError::Unusable { address: *path.device.ip(), reason })
}
