//! The stream of one channel: its parts, its opening and its end.

mod command;
mod recover;
mod recv;

pub(super) use command::RxStart;
pub(crate) use command::check_length;
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::chdr::{DataRepr, SC16_LEN};

use super::books::Losses;
use super::core::RxCore;
use super::credit::Credit;
use super::meta::{RxArgs, RxCounters, RxError};
use super::opening::{self, StreamPath};
use super::rate::StreamRate;
use crate::channel::RxChannel;
use crate::control::AwaitedAccess;
use crate::convert::{Converter, Wire};
use crate::{Ledger, RadioError};

/// The longest train that one drop of a coalescing queue can take: bytes, and packets of the
/// kernel's segmentation (`UDP_MAX_SEGMENTS`).
const TRAIN_BYTES_MAX: u64 = 65_507;
const TRAIN_PACKETS_MAX: u64 = 128;

/// The time limit for packets in flight at the end of a stream.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// One channel of a [`super::RxStreamer`], on its own port or on one that streams share
/// ([`crate::SharedPort`]).
///
/// It does not depend on the kind of link. In the steady state it allocates nothing. On its own
/// port it takes no lock, and makes one system call per batch of packets, one per wait for them,
/// and one per credit report.
pub struct RxMember {
    port: Port,
    pub(super) path: StreamPath,
    pub(super) channel: RxChannel,
    converter: Converter,
    scale: f32,
    pub(super) core: RxCore,
    /// The datagrams lent by the port: the index of the next, and their number.
    batch: (usize, usize),
    /// The register access that the recovery waits for.
    access: Option<AwaitedAccess>,
    /// An error to return after the samples that came before it.
    failure: Option<RxError>,
    /// The losses in the ledger when the last sample was delivered.
    before_gap: Losses,
}

impl RxMember {
    /// Routes and opens the stream of `channel` to `port`.
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
        opening::open(&mut port, &path, &mut credit)?;
        channel.set_samples_per_packet(samples_per_packet)?;
        let packets_per_drop =
            if capabilities.coalescing { packets_per_train(samples_per_packet) } else { 1 };
        let (lengths, now) = ((samples_per_packet, channel.samples_per_word()), path.clock.now());
        let core = RxCore::new(path, lengths, packets_per_drop, credit, args, silence_max, now);
        let (batch, access, failure) = ((0, 0), None, None);
        let before_gap = Default::default();
        let (converter, scale) = (Converter::new(Wire::Sc16), args.scale);
        let mut stream = Self {
            port,
            path,
            channel,
            converter,
            scale,
            core,
            batch,
            access,
            failure,
            before_gap,
        };
        stream.look();
        stream.core.see_reports();
        Ok(stream)
    }

    /// Returns the outcome of every sample so far.
    pub fn ledger(&self) -> &Ledger {
        self.core.books().ledger()
    }

    /// Counts the last `samples` that were received as lost.
    pub(super) fn refuse(&mut self, samples: u64) {
        self.core.books_mut().refuse(samples);
    }

    /// Ends the ledger earlier, see [`super::RxStreamer::end_before`].
    pub(super) fn end_before(&mut self, received: u64, lost: u64) {
        if received + lost > 0 {
            self.core.books_mut().cut(received, lost, &self.before_gap);
        }
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> &RxCounters {
        self.core.books().counters()
    }

    /// Returns the bytes that the device may send ahead: the actual size of the receive queue, less
    /// a reserve.
    pub fn credit_window_bytes(&self) -> u64 {
        self.core.credit().capacity_bytes()
    }

    /// Returns the local address of the stream's port.
    pub fn local(&self) -> SocketAddrV4 {
        self.port.local
    }

    /// Returns the samples of a full packet.
    pub(super) fn samples_per_packet(&self) -> u32 {
        self.core.samples_per_packet()
    }

    /// Returns the rates of samples and of the radio's time when the stream was opened.
    pub(super) fn rate(&self) -> StreamRate {
        self.path.rate
    }

    /// Datagrams (or, with coalescing, trains) that the receive queue of this machine dropped.
    pub fn queue_drops(&self) -> u64 {
        self.port.rx.queue_drops()
    }

    /// Returns whether anything may still come: samples of a burst that has not ended, or the
    /// report of its end or of an error.
    pub(super) fn is_running(&self) -> bool {
        !self.core.run().is_idle() || self.core.has_report() || self.failure.is_some()
    }

    /// Returns the current time for time-outs.
    pub(super) fn now(&self) -> Instant {
        self.path.clock.now()
    }

    /// Stops, takes packets in flight off the port, and ends the ledger where the caller did; the
    /// stream can be started again.
    pub(super) fn end(&mut self) {
        let until = self.now() + FINISH_TIMEOUT;
        // The present counts stay: the rest is taken off the port, and was not expected.
        let kept = self.core.books().closed();
        let mut alive = self.core.run().is_idle() || self.stop().is_ok();
        loop {
            if let Some(held) = self.core.held() {
                let samples = (held.end - held.at) / SC16_LEN;
                alive &= self.pass(held, samples).is_ok();
            }
            self.core.drop_pending();
            self.failure = None;
            if self.core.run().is_idle() || !alive || self.now() >= until {
                break;
            }
            alive = self.advance(until).is_ok();
        }
        if alive {
            // The next user finds the radio stopped. A device without an answer has gone.
            let _ = self.channel.stop_if_started();
        }
        self.core.abandon();
        self.access = None;
        self.core.books_mut().end(kept);
    }
}

impl std::fmt::Debug for RxMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RxMember")
            .field("path", &self.path)
            .field("run", self.core.run())
            .field("counters", self.counters())
            .finish_non_exhaustive()
    }
}

/// Bytes of a sample on the wire.
pub(super) const SAMPLE_BYTES: usize = SC16_LEN;

/// Returns the most full packets that arrive in one train.
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
pub(crate) fn samples_per_packet(
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
