//! The receive streamer: its parts, its opening and its end.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::chdr::{DataRepr, SC16_LEN};
use millstream_wire::regs::radio::RX_CMD_SLOTS;

use super::chain::PendingCommand;
use super::credit::Credit;
use super::expectation::Expectation;
use super::handshake::{self, StreamPath};
use super::losses::Losses;
use super::meta::{RxArgs, RxCounters, RxError, RxEvent};
use super::rate::StreamRate;
use super::recover::Recovery;
use super::reorder::{ReorderBuffer, ReorderWindow};
use super::tracker::Tracker;
use crate::channel::RxChannel;
use crate::convert::{Converter, Wire};
use crate::{Ledger, RadioError};

/// The longest GRO batch that one drop of a coalescing queue can take: bytes, and packets of the
/// kernel's segmentation (`UDP_MAX_SEGMENTS`).
const TRAIN_BYTES_MAX: u64 = 65_507;
const TRAIN_PACKETS_MAX: u64 = 128;

/// The time limit for packets in flight at the end of a stream.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// A receive stream of one channel, on its own port.
///
/// It does not depend on the kind of link. In the steady state it allocates nothing, takes no lock,
/// and makes one system call per batch of packets, one per wait for them, and one per credit
/// report.
pub struct RxStreamer {
    pub(super) port: Port,
    pub(super) path: StreamPath,
    pub(super) channel: RxChannel,
    pub(super) converter: Converter,
    pub(super) scale: f32,
    pub(super) samples_per_packet: u32,

    pub(super) credit: Credit,
    pub(super) tracker: Tracker,
    pub(super) expectation: Expectation,
    pub(super) losses: Losses,
    pub(super) ledger: Ledger,
    pub(super) counters: RxCounters,

    /// The datagrams lent by the port: the index of the next, and their number.
    pub(super) batch: (usize, usize),
    /// Packets that came early.
    pub(super) aside: ReorderBuffer,
    /// The packet whose samples are being delivered.
    pub(super) held: Option<UnreadSamples>,
    /// The report to return before any further samples.
    pub(super) pending: Option<Pending>,
    /// An error to return after the samples that came before it.
    pub(super) failure: Option<RxError>,

    pub(super) run: StreamState,
    /// Captures that the radio has queued after the current one.
    pub(super) chain: VecDeque<PendingCommand>,
    /// The newest packet was the last of a run, and only the newest run follows.
    pub(super) ended: bool,
    pub(super) run_ended: bool,
    /// Runs that began, and were stopped before any of their packets came: each has a separate end,
    /// behind that of the run before them.
    pub(super) ends_due: u32,
    /// A run began and was stopped before any of its packets came: the time of an overrun does not
    /// show how much the device had sent before the newest start.
    pub(super) lost_run: bool,
    /// The number of set-ups of the stream since that packet.
    pub(super) setups: u64,
    /// The time of a start whose first packet has not come.
    pub(super) awaited: Option<u64>,
    pub(super) recovery: Option<Recovery>,
    /// A member of a group restarts only together with the others.
    pub(super) in_group: bool,
    /// A member has to restart, after this number of attempts.
    pub(super) restart_wanted: Option<u32>,
    /// The number of times that the device's clock was set back.
    pub(super) epoch: u64,
    pub(super) late_commands_seen: u64,
    pub(super) overruns_seen: u64,
    /// The device's time since which overruns belong to the current run, ticks.
    pub(super) run_ticks: u64,

    pub(super) silence_max: Duration,
    /// The time of the last packet, moved forward by the time in which the port was not polled.
    pub(super) last_heard: Instant,
    pub(super) last_look: Instant,
    /// The current batch contained a packet from the device.
    pub(super) heard: bool,
    pub(super) last_idle: Instant,
    /// The device's time at the last check of the silence, and at the first in this run, ticks.
    pub(super) silence_ticks: Option<u64>,
    pub(super) first_silence: Option<u64>,
}

/// Samples of a lent datagram that the caller has not yet received.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnreadSamples {
    /// The place of the packet.
    pub place: PacketSource,
    /// The offset of the next sample in it, and the end of the samples.
    pub at: usize,
    pub end: usize,
    /// Time of the next sample.
    pub ticks: Option<u64>,
    /// Its length in flow control, bytes.
    pub flow_bytes: usize,
    /// The burst is over with this packet.
    pub ends_burst: bool,
    /// The event to report behind it.
    pub then: RxEvent,
}

/// The place of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum PacketSource {
    /// In the batch that the port lends, by its index.
    Lent(usize),
    /// In the reorder buffer, by its place.
    Aside(usize),
}

/// A report without samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub event: RxEvent,
    pub ticks: Option<u64>,
    pub ends_burst: bool,
    /// The next event to report.
    pub then: RxEvent,
}

impl Pending {
    /// Returns a report without a following one.
    pub fn new(event: RxEvent, ticks: Option<u64>, ends_burst: bool) -> Self {
        Self { event, ticks, ends_burst, then: RxEvent::None }
    }
}

/// The command that the device executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    Idle,
    Continuous,
    /// The number of samples still to come.
    Finite(u64),
    /// Stopped, with the time; the end of the burst, and of those in the chain, has not come yet.
    Stopping(Instant),
}

impl RxStreamer {
    /// Routes and opens the stream of `channel` to `port`. [`crate::Device::rx_stream`] does this.
    ///
    /// # Errors
    /// [`RadioError::Silent`] when the handshake fails, [`RadioError::Unusable`] when the device
    /// refuses it.
    pub fn open(
        mut port: Port,
        path: StreamPath,
        channel: RxChannel,
        args: &RxArgs,
        silence_max: Duration,
    ) -> Result<Self, RadioError> {
        channel.check_usable()?;
        let samples_per_packet = samples_per_packet(&path, channel.samples_per_word(), args)?;
        let capabilities = port.rx.capabilities();
        let packet_bytes = packet_bytes(&path, samples_per_packet);
        let mut credit = Credit::new(&capabilities, packet_bytes);
        channel.stop_if_started()?;
        handshake::open(&mut port, &path, &mut credit)?;
        channel.set_samples_per_packet(samples_per_packet)?;
        let packets_per_drop =
            if capabilities.coalescing { packets_per_train(samples_per_packet) } else { 1 };
        let now = path.clock.now();
        Ok(Self {
            port,
            path,
            converter: Converter::new(Wire::Sc16),
            scale: args.scale,
            samples_per_packet,
            credit,
            tracker: Tracker::new(samples_per_packet.into(), path.rate.ticks(1)),
            expectation: Expectation::default(),
            losses: Losses::new(samples_per_packet.into(), packets_per_drop),
            ledger: Ledger::default(),
            counters: RxCounters::default(),
            batch: (0, 0),
            aside: ReorderBuffer::new(
                ReorderWindow::new(args.reorder_window, path.rate, samples_per_packet.into()),
                path.frame_bytes,
            ),
            held: None,
            pending: None,
            failure: None,
            run: StreamState::Idle,
            chain: VecDeque::with_capacity(RX_CMD_SLOTS as usize + 1),
            ended: false,
            run_ended: false,
            ends_due: 0,
            lost_run: false,
            setups: 0,
            awaited: None,
            recovery: None,
            in_group: false,
            restart_wanted: None,
            epoch: 0,
            late_commands_seen: channel.events().late_commands(),
            overruns_seen: channel.events().overruns(),
            run_ticks: 0,
            silence_max,
            last_heard: now,
            last_look: now,
            heard: false,
            last_idle: now,
            silence_ticks: None,
            first_silence: None,
            channel,
        })
    }

    /// Returns the outcome of every sample so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Counts the last `samples` that were received as lost, because the caller cannot store them.
    ///
    /// # Panics
    /// When fewer were delivered.
    pub fn refuse(&mut self, samples: u64) {
        self.ledger.refuse(samples);
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> &RxCounters {
        &self.counters
    }

    /// Returns the bytes that the device may send ahead: the actual size of the receive queue, less
    /// a reserve.
    pub fn credit_window_bytes(&self) -> u64 {
        self.credit.capacity_bytes()
    }

    /// Returns the local address of the stream's port.
    pub fn local(&self) -> SocketAddrV4 {
        self.port.local
    }

    /// Returns the samples of a full packet.
    pub fn samples_per_packet(&self) -> u32 {
        self.samples_per_packet
    }

    /// Returns the sample rate, per second, when the stream was opened.
    pub fn rate_hz(&self) -> f64 {
        self.path.rate.samples_hz()
    }

    /// Returns the rates of samples and of the radio's time when the stream was opened.
    pub fn rate(&self) -> StreamRate {
        self.path.rate
    }

    /// Datagrams (or, with coalescing, GRO batches) that the receive queue of this machine dropped.
    pub fn queue_drops(&self) -> u64 {
        self.port.rx.queue_drops()
    }

    /// Returns whether anything may still come: samples of a burst that has not ended, or the
    /// report of its end or of an error.
    pub fn is_running(&self) -> bool {
        self.run != StreamState::Idle || self.pending.is_some() || self.failure.is_some()
    }

    /// Stops, takes packets in flight off the port, and returns the final ledger. The ledger ends
    /// where the caller did: later samples are [`Ledger::after_end`], and not lost.
    pub fn finish(mut self) -> Ledger {
        self.end();
        self.ledger.clone()
    }

    /// Returns the current time for time-outs.
    pub(super) fn now(&self) -> Instant {
        self.path.clock.now()
    }

    /// Stops, takes packets in flight off the port, and ends the ledger where the caller did, like
    /// [`RxStreamer::finish`]; the stream can be started again.
    pub fn end(&mut self) {
        let until = self.now() + FINISH_TIMEOUT;
        // The present counts stay: the rest is taken off the port, and was not expected.
        let mut kept = self.ledger.clone();
        kept.close();
        let mut alive = self.run == StreamState::Idle || self.stop().is_ok();
        loop {
            if let Some(held) = self.held {
                let samples = (held.end - held.at) / SC16_LEN;
                alive &= self.pass(held, samples).is_ok();
            }
            (self.pending, self.failure) = (None, None);
            if self.run == StreamState::Idle || !alive || self.now() >= until {
                break;
            }
            alive = self.advance(until).is_ok();
        }
        if alive {
            // The next user finds the radio stopped. A device without an answer has gone.
            let _ = self.channel.stop_if_started();
        }
        self.run = StreamState::Idle;
        let after = self.ledger.expected.wrapping_sub(kept.expected);
        self.expectation.add(after.wrapping_neg());
        kept.after_end = kept.after_end.wrapping_add(after);
        self.ledger = kept;
    }
}

impl Drop for RxStreamer {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for RxStreamer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RxStreamer")
            .field("path", &self.path)
            .field("run", &self.run)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Bytes of a sample on the wire.
pub(super) const SAMPLE_BYTES: usize = SC16_LEN;

/// Returns the most full packets that arrive in one GRO batch.
fn packets_per_train(samples_per_packet: u32) -> u64 {
    let packet_bytes = u64::from(samples_per_packet) * SC16_LEN as u64;
    (TRAIN_BYTES_MAX / packet_bytes).clamp(1, TRAIN_PACKETS_MAX)
}

/// Returns the bytes of a packet with time and `samples` samples.
fn packet_bytes(path: &StreamPath, samples: u32) -> usize {
    let timed = DataRepr { timestamp: Some(0), ..DataRepr::default() };
    timed.header_len(path.width) + samples as usize * SC16_LEN
}

/// Returns the samples that fit the path, or fewer if requested; whole radio words.
pub(super) fn samples_per_packet(
    path: &StreamPath,
    word: NonZeroU32,
    args: &RxArgs,
) -> Result<u32, RadioError> {
    let room = path.frame_bytes.saturating_sub(packet_bytes(path, 0));
    let most = u32::try_from(room / SC16_LEN).unwrap_or(u32::MAX);
    if word.get() > most {
        let reason = format!(
            "the radio makes {word} samples at a time, but a packet on this network can carry \
             only {most}: raise the MTU (9000 bytes), or use another device image"
        );
        return Err(RadioError::Unusable { address: *path.device.ip(), reason });
    }
    let wanted = args.samples_per_packet.unwrap_or(most).min(most);
    Ok((wanted / word * word.get()).max(word.get()))
}
