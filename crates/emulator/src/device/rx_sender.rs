//! From a channel's packet buffer to the port: batches of data packets within the credit window.

use super::fabric::HostAddress;
use super::out_stream::OutStream;
use super::outbox::Outbox;
use super::radio_block::RadioChannel;
use super::rx_chain::RxSource;
use super::rx_channel::NextPacket;
use super::rx_watch::{RxBand, RxWatcher};
use crate::antenna::Sc16;
use crate::time::DeviceClock;
use millstream_wire::Epid;
use millstream_wire::chdr::{DataRepr, SC16_LEN, Width};

/// The bytes of one train: the limit of one segmented send.
const TRAIN_BYTES: usize = 65_507;
/// The samples that are discarded at a time.
const WASTE_SAMPLES: usize = 512;
/// The packets of one train, the limit of every kernel with segmentation.
const TRAIN_PACKETS: usize = 64;
/// Packets with a shorter interval wait for each other, as long as they fit a train: a call for
/// each would take most of a core at 100 MS/s. A network card's interrupts are moderated likewise.
const GATHER_S: f64 = 50e-6;
/// The share of the packet buffer that may wait for that.
const GATHER_SHARE: u64 = 4;
/// The trains sent before the port is polled again.
const TRAINS_PER_TURN: usize = 8;

/// Builds and sends the packets of one channel.
pub(crate) struct RxSender {
    source: RxSource,
    /// The buffer for samples that the port has no space for. Allocated once.
    waste: Box<[Sc16]>,
    prepared_rate_hz: f64,
    stalled: bool,
    /// The time for which packets wait for each other, seconds.
    gather_s: f64,
    /// Packets consist of samples that were processed at their time.
    is_chain: bool,
    /// Sees what is sent.
    pub watcher: Option<Box<dyn RxWatcher>>,
}

/// The arguments of one call of the sender.
pub(crate) struct SendStep<'a> {
    pub channel: &'a mut RadioChannel,
    pub out: &'a mut OutStream,
    pub keeper: &'a DeviceClock,
    /// The number of samples that have passed.
    pub now: u64,
    /// The endpoint that sends.
    pub src_epid: Epid,
    /// The address of the stream's destination; `None` sends nothing.
    pub to: Option<HostAddress>,
    pub width: Width,
    pub outbox: &'a mut Outbox,
    /// Only known if the channel has a watcher.
    pub band: RxBand,
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// More packets are due now.
    Again,
    /// The next packet is complete when this many samples have passed.
    AtTick(u64),
    /// Credit, a command or the buffer's overflow is the next event.
    Idle,
}

/// A train under construction.
#[derive(Debug, Default)]
struct PacketTrain {
    bytes: usize,
    packets: u64,
    /// Size of every packet except perhaps the last.
    packet_bytes: usize,
}

impl RxSender {
    /// Returns a sender for the samples of `source`.
    pub fn new(source: RxSource) -> Self {
        Self {
            is_chain: matches!(source, RxSource::Chain(_)),
            source,
            waste: vec![Sc16::default(); WASTE_SAMPLES].into_boxed_slice(),
            prepared_rate_hz: 0.0,
            stalled: false,
            gather_s: GATHER_S,
            watcher: None,
        }
    }

    /// Its source.
    pub fn source(&mut self) -> &mut RxSource {
        &mut self.source
    }

    /// Makes each packet leave by itself when it is complete, as from hardware.
    #[cfg(test)]
    pub fn gather_nothing(&mut self) {
        self.gather_s = 0.0;
    }

    /// Passes a new rate to the antenna.
    pub fn prepare(&mut self, rate_hz: f64) {
        if rate_hz != self.prepared_rate_hz {
            self.prepared_rate_hz = rate_hz;
            self.source.prepare(rate_hz);
        }
    }

    /// Returns how many samples the antenna has replaced by zeros so far.
    pub fn starved_samples(&self) -> u64 {
        self.source.starved_samples()
    }

    /// Sends the complete packets, as far as the window allows.
    pub fn send_due(&mut self, mut turn: SendStep<'_>) -> SendResult {
        for _ in 0..TRAINS_PER_TURN {
            let Some(packet) = turn.next_packet() else { return SendResult::Idle };
            let due = turn.due(packet, self.gather_s);
            if due > self.ready(&turn) {
                return SendResult::AtTick(due);
            }
            let Some(to) = turn.to else { return self.stall(&turn) };
            if !turn.outbox.keep_in_step(turn.out, turn.src_epid, to) {
                return self.stall(&turn);
            }
            let allowed = turn.out.packets_allowed(turn.packet_bytes(packet));
            if allowed == 0 {
                return self.stall(&turn);
            }
            self.stalled = false;
            self.send(&mut turn, packet, allowed, to);
        }
        SendResult::Again
    }

    /// Returns the packet at the head of a channel's buffer if it is complete, for a stream within
    /// the device; otherwise when it will be.
    pub fn complete_packet(
        &self,
        channel: &RadioChannel,
        now: u64,
    ) -> Result<NextPacket, SendResult> {
        let packet = channel.rx.next_packet(channel.packet_samples()).ok_or(SendResult::Idle)?;
        let heard = if self.is_chain { now.min(channel.rx.head_heard()) } else { now };
        if packet.end > heard { Err(SendResult::AtTick(packet.end)) } else { Ok(packet) }
    }

    /// Removes that packet; writes its samples, the first of which has the time `timestamp`.
    pub fn take_packet(
        &mut self,
        channel: &mut RadioChannel,
        packet: NextPacket,
        timestamp: u64,
        out: &mut [Sc16],
    ) {
        channel.rx.take(packet);
        self.source.fill(timestamp, out);
        if !self.is_chain {
            channel.rx_gain.apply(packet.tick, 1, out);
        }
    }

    /// Sends a train that begins with `first`, of at most `allowed` packets.
    fn send(&mut self, turn: &mut SendStep<'_>, first: NextPacket, allowed: u64, to: HostAddress) {
        let mut train =
            PacketTrain { packet_bytes: turn.packet_bytes(first), ..PacketTrain::default() };
        let allowed = allowed.min(TRAIN_PACKETS as u64);
        let mut next = Some(first);
        while let Some(packet) = next {
            let bytes = turn.packet_bytes(packet);
            let fits = packet.end <= self.ready(turn)
                && train.packets < allowed
                && bytes <= train.packet_bytes
                && train.bytes + bytes <= TRAIN_BYTES;
            if !fits {
                break;
            }
            self.write(turn, packet, bytes, to);
            train.bytes += bytes;
            train.packets += 1;
            // Only the last packet of a train may be shorter than the others.
            next = if bytes == train.packet_bytes { turn.next_packet() } else { None };
        }
        let counters = turn.outbox.counters();
        counters.rx_packets.add(train.packets);
        counters.rx_bytes.add(train.bytes as u64 - train.packets * turn.header_bytes() as u64);
        turn.outbox.depart(to.link);
    }

    /// Returns the tick before which the samples of the head are there.
    fn ready(&self, turn: &SendStep<'_>) -> u64 {
        if self.is_chain { turn.now.min(turn.channel.rx.head_heard()) } else { turn.now }
    }

    /// Writes one packet into the send buffer.
    fn write(
        &mut self,
        turn: &mut SendStep<'_>,
        packet: NextPacket,
        bytes: usize,
        to: HostAddress,
    ) {
        let timestamp = turn.keeper.timestamp_of(packet.tick);
        let stale = turn.channel.stale_header.take();
        let repr = DataRepr {
            dst_epid: turn.out.dst_epid,
            seq: turn.out.send_data(bytes),
            timestamp: turn.channel.has_time().then(|| stale.unwrap_or(timestamp)),
            eob: packet.eob || stale.is_some(),
            eov: false,
            payload_len: packet.samples as usize * SC16_LEN,
        };
        turn.channel.rx.take(packet);
        let SendStep { channel, outbox, band, .. } = turn;
        let written = outbox.write_data(to, &repr, None, |at, samples| {
            self.source.fill(timestamp.wrapping_add(at as u64), samples);
            if !self.is_chain {
                channel.rx_gain.apply(packet.tick + at as u64, 1, samples);
            }
            if let Some(watcher) = &mut self.watcher {
                watcher.sent(*band, samples);
            }
        });
        if !written {
            self.lose(timestamp, packet.samples as usize);
        }
    }

    /// Takes the samples of a packet that cannot be sent, as if it had been.
    fn lose(&mut self, timestamp: u64, samples: usize) {
        for at in (0..samples).step_by(WASTE_SAMPLES) {
            let count = WASTE_SAMPLES.min(samples - at);
            self.source.fill(timestamp.wrapping_add(at as u64), &mut self.waste[..count]);
        }
    }

    fn stall(&mut self, turn: &SendStep<'_>) -> SendResult {
        if !self.stalled {
            self.stalled = true;
            turn.outbox.counters().rx_credit_stalls.inc();
        }
        SendResult::Idle
    }
}

impl SendStep<'_> {
    fn next_packet(&self) -> Option<NextPacket> {
        self.channel.rx.next_packet(self.channel.packet_samples())
    }

    /// Returns the tick at which the packet at the head is sent: with those behind it, if they come
    /// soon.
    fn due(&self, packet: NextPacket, gather_s: f64) -> u64 {
        let clock = self.keeper.clock();
        let soon = (clock.rate_hz() * clock.time_scale() * gather_s) as u64;
        let packets = (TRAIN_BYTES / self.packet_bytes(packet)).min(TRAIN_PACKETS);
        let train = packets as u64 * (packet.end - packet.tick);
        let most = soon.min(train).min(self.channel.rx.buffer_ticks() / GATHER_SHARE);
        let gathered = packet.end.max(packet.tick + most);
        // The last packet of a burst does not wait.
        gathered.min(self.channel.rx.head_end().max(packet.end))
    }

    fn header_bytes(&self) -> usize {
        let timestamp = self.channel.has_time().then_some(0);
        DataRepr { timestamp, ..DataRepr::default() }.header_len(self.width)
    }

    fn packet_bytes(&self, packet: NextPacket) -> usize {
        self.header_bytes() + packet.samples as usize * SC16_LEN
    }
}
