//! From the endpoints' buffers to transmission: samples, credit, and reports to the host.

use super::EmulatedDevice;
use super::client_zero::MTU_BYTES;
use super::emission::Emission;
use super::endpoint::CreditWindow;
use super::radio_block::RadioChannel;
use super::tx_channel::{LatePolicy, TxStep};
use super::tx_fifo::{FifoSize, Leaving, TxPacket};
use crate::tx_out::BurstEnd;
use millstream_dsp::chunks::Chunks;
use millstream_link::port::Capabilities;
use millstream_wire::Epid;
use millstream_wire::chdr::{Packet, SC16_LEN, Width};
use millstream_wire::regs::radio as regs;
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr, StreamCondition};

/// The share of the socket's queue that the bytes of packets may take, in tenths: the kernel
/// charges a large datagram with up to 2.2 times its length.
const QUEUE_TENTHS: usize = 3;
/// The kernel's additional charge for a datagram of any length, bytes, rounded up.
const DATAGRAM_BYTES: usize = 1280;

/// The least length of a packet of samples unless the host requests short ones, bytes: a datagram
/// that fills an MTU of 1500 has 1472.
const PACKET_BYTES_USUAL: usize = 1024;

/// The ticks between the time of a sample and its way out of the radio core, whose messages have
/// the time then.
const OUTPUT_TICKS: u64 = 2;

/// Returns the buffer size and the window of every endpoint, for the port's receive queue, which is
/// shared by `shares` of them.
///
/// A host fills its window whether the device thread runs or not, and all endpoints share one
/// queue, which must never overflow: a UDP host does not recover from a lost packet when its window
/// is closed. So the window is the smaller capacity of the buffer and the queue.
/// As in hardware it is one byte smaller than the buffer. A queue that counts datagrams limits
/// their number; a host that counts only bytes is limited in those, as if its packets had the usual
/// length. An eighth of the queue is for everything else. Each of the `blocks` behind an endpoint
/// has room for the largest packet.
pub(super) fn sizes(
    buffer_samples: u64,
    queue: &Capabilities,
    shares: usize,
    width: Width,
    blocks: usize,
) -> (FifoSize, CreditWindow) {
    let word = width.bytes();
    let behind_bytes = blocks * MTU_BYTES;
    let bytes = (buffer_samples as usize * SC16_LEN).next_multiple_of(word);
    let (most, packets, bytes_in_queue, cautious_bytes) = match queue.recv_queue_datagrams {
        Some(datagrams) => {
            let share = datagrams * 7 / 8 / shares;
            // Every packet may be late, which is reported, and the host acknowledges each report by
            // a packet to the same queue: half of it is for those. Hosts that count only bytes, as
            // UHD does, send packets as long as the path carries.
            (share, share / 2, usize::MAX, share * PACKET_BYTES_USUAL)
        }
        None => {
            let share = queue.recv_queue_bytes / shares;
            let packets = share * (10 - 2 * QUEUE_TENTHS) / 10 / DATAGRAM_BYTES;
            (packets, packets, share * QUEUE_TENTHS / 10, usize::MAX)
        }
    };
    let (most, packets) = (most.clamp(4, 0xff_ffff), packets.clamp(4, 0xff_ffff));
    let window = (bytes - 1).min(bytes_in_queue);
    let cautious_bytes = window.min(cautious_bytes) as u64;
    let most = most.min((bytes + behind_bytes) / word);
    (
        // Commands are accepted even if a host does not count them.
        FifoSize { bytes, behind_bytes, packets: most + 4 },
        CreditWindow { bytes: window as u64, cautious_bytes, packets: packets as u32 },
    )
}

/// Returns the bytes of receive queue to request from the system, so that it does not limit the
/// window of any of `shares` endpoints.
pub(crate) fn queue_bytes_wanted(buffer_samples: u64, shares: usize) -> usize {
    const LEAST: usize = 8 << 20;
    let bytes = buffer_samples as usize * SC16_LEN;
    (bytes * shares * 10 / QUEUE_TENTHS).clamp(LEAST, 1 << 30)
}

impl EmulatedDevice {
    /// Accepts a packet of samples that arrived at tick `now`.
    pub(super) fn accept_data(&mut self, packet: &Packet<'_>, now: u64) {
        let header = packet.header();
        let Some(index) = self.fabric.endpoint_of(header.dst_epid) else {
            return self.counters().chdr_unroutable.inc();
        };
        let endpoint = &mut self.endpoints[index];
        if !self.image.takes_data(index) || !endpoint.input.has_begun() {
            return self.counters().chdr_unexpected.inc();
        }
        // Bytes behind the last whole sample are dropped.
        let samples = packet.payload().in_chunks().0;
        let counters = self.outbox.counters();
        counters.tx_packets.inc();
        counters.tx_bytes.add(packet.payload().len() as u64);
        if endpoint.fifo.has_room(packet.flow_len()) {
            let count = samples.len() as u64;
            let timestamp = match self.emissions.get_mut(index) {
                Some(emission) => emission.time_of(packet.timestamp(), count, header.eob),
                None => packet.timestamp(),
            };
            let queued = TxPacket { arrived: now, timestamp, samples: count, eob: header.eob };
            let number = Some((packet.kind(), header.seq));
            endpoint.fifo.push_samples(queued, number, packet.flow_len(), samples);
        } else {
            // The next packet will show the host that this one is missing.
            counters.tx_overflow_packets.inc();
            counters.tx_overflow_samples.add(samples.len() as u64);
        }
        self.pass(index);
        if index >= self.image.channels {
            self.run_sink(index);
        }
    }

    /// Accepts a stream command, which stays in its place among the packets.
    pub(super) fn accept_command(&mut self, packet: &Packet<'_>, now: u64) {
        let command = match CommandRepr::parse(packet) {
            Ok(command) => Some(command),
            Err(millstream_wire::Error::UnknownOp) => None,
            Err(_) => return self.counters().stream_malformed.inc(),
        };
        let header = packet.header();
        let Some(index) = self.fabric.endpoint_of(header.dst_epid) else {
            return self.counters().chdr_unroutable.inc();
        };
        if !self.image.takes_data(index) {
            return self.counters().chdr_unexpected.inc();
        }
        let endpoint = &mut self.endpoints[index];
        if command.is_some_and(|command| command.op == CommandOp::Init) {
            endpoint.input.begin();
        } else if !endpoint.input.has_begun() {
            return self.counters().chdr_unexpected.inc();
        }
        if !endpoint.fifo.push_command(header.seq, command, packet.flow_len()) {
            return self.counters().tx_overflow_packets.inc();
        }
        self.pass(index);
        self.run_receiver_of(index, now);
    }

    /// Passes packets out of the buffer of an endpoint, as far as there is room behind it. As in
    /// hardware they are counted there, numbers are compared there, and packets that came twice or
    /// out of order pass all the same.
    pub(super) fn pass(&mut self, index: usize) {
        while let Some((what, flow_bytes)) = self.endpoints[index].fifo.pass() {
            let (endpoint, flow_bytes) = (&mut self.endpoints[index], flow_bytes as u64);
            let causes = match what {
                Leaving::Samples { number } => endpoint.input.consume(number, flow_bytes),
                Leaving::Command { seq, command } => {
                    endpoint.input.execute(seq, command.as_ref(), flow_bytes)
                }
            };
            for cause in causes.into_iter().flatten() {
                let status = self.endpoints[index].report(cause);
                let is_error = status.status != StreamCondition::Ok;
                self.counters().tx_sequence_errors.add(u64::from(is_error));
                self.send_status(&status);
            }
        }
    }

    /// Advances what takes the packets of an endpoint to tick `now`.
    fn run_receiver_of(&mut self, index: usize, now: u64) {
        if index < self.image.channels {
            self.run_transmitter(index, now);
        } else {
            self.run_sink(index);
        }
    }

    /// Advances the transmit side of a channel to tick `now`.
    pub(super) fn run_transmitter(&mut self, channel: usize, now: u64) {
        loop {
            let head = self.endpoints[channel].fifo.head();
            let policy = self.policy(channel);
            let tx = &mut self.radio.channels[channel].tx;
            let Some(step) = tx.step(&self.keeper, policy, head, now) else { break };
            self.carry_out(channel, step);
        }
    }

    /// Drops the waiting samples. The stream continues: their space is granted to the host again,
    /// and its commands are executed.
    pub(super) fn drop_waiting(&mut self, channel: usize) {
        while self.endpoints[channel].fifo.head().is_some() {
            let dropped = self.let_go(channel);
            self.endpoints[channel].fifo.note_flushed(dropped);
        }
    }

    /// Ends every burst and empties the buffers; ticks may restart after that.
    pub(super) fn silence(&mut self) {
        self.endpoints.iter_mut().for_each(|endpoint| endpoint.fifo.flush());
        self.radio.channels.iter_mut().for_each(|channel| channel.tx.restart());
        self.emissions.iter_mut().for_each(Emission::restart);
        self.ran_to = 0;
    }

    /// Returns the next tick at which the transmit side of a channel must run.
    pub(super) fn next_transmit_event(&self, channel: usize) -> Option<u64> {
        let endpoint = &self.endpoints[channel];
        let head = endpoint.fifo.head();
        // In the middle of a burst the only work is credit, which is sent once per period.
        let patience = match head {
            Some(head) if endpoint.fifo.is_plain() => {
                let (bytes, packets) = endpoint.input.until_report();
                let packets = packets.saturating_mul(head.samples);
                (bytes / SC16_LEN as u64).min(packets).min(endpoint.fifo.samples())
            }
            _ => 0,
        };
        self.radio.channels[channel].tx.next_event(&self.keeper, head, patience)
    }

    fn carry_out(&mut self, channel: usize, step: TxStep) {
        let counters = self.outbox.counters();
        match step {
            TxStep::Send { tick, count, ticks, begins, follows, done, ack } => {
                counters.tx_samples.add(count);
                counters.tx_bursts.add(u64::from(begins));
                counters.tx_burst_acks.add(u64::from(ack));
                let fifo = &mut self.endpoints[channel].fifo;
                let emission = &mut self.emissions[channel];
                if begins {
                    emission.begin(self.radio.channels[channel].tx.interpolation());
                }
                let RadioChannel { rx, tx_gain, .. } = &mut self.radio.channels[channel];
                rx.transmissions.note(tick..tick + ticks);
                emission.send((&self.keeper, tx_gain), tick, follows, fifo.head_samples(count));
                fifo.advance(count);
                if done {
                    self.let_go(channel);
                }
                if ack {
                    self.emissions[channel].end(BurstEnd::EndOfBurst);
                    let last = (tick + ticks).saturating_sub(1);
                    self.report(channel, Event::TxBurstAck, last + OUTPUT_TICKS);
                }
            }
            TxStep::Underflow { tick } => {
                counters.tx_underflows.inc();
                self.emissions[channel].end(BurstEnd::Underflow);
                self.report(channel, Event::TxUnderrun, tick + OUTPUT_TICKS);
            }
            TxStep::Late { tick } => {
                let dropped = self.let_go(channel);
                let counters = self.counters();
                counters.tx_late_packets.inc();
                counters.tx_late_samples.add(dropped);
                self.report(channel, Event::TxLate, tick);
            }
            TxStep::Skip => {
                let dropped = self.let_go(channel);
                self.counters().tx_skipped_samples.add(dropped);
            }
        }
    }

    /// Removes the packet at the head; returns the number of its samples that were left.
    pub(super) fn let_go(&mut self, channel: usize) -> u64 {
        let left = self.endpoints[channel].fifo.pop();
        self.pass(channel);
        left
    }

    fn policy(&self, channel: usize) -> LatePolicy {
        match self.radio.channels[channel].register(regs::TX_ERR_POLICY) {
            regs::TX_POLICY_NEXT_BURST => LatePolicy::NextBurst,
            _ => LatePolicy::NextPacket,
        }
    }

    /// Sends a status, unless its session is over.
    pub(super) fn send_status(&mut self, status: &StatusRepr) {
        if status.dst_epid == Epid::NONE {
            return;
        }
        if let Some(to) = self.host(status.dst_epid) {
            self.outbox.send(to, |width, buffer| status.emit(width, buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: usize = 2;

    #[test]
    fn the_window_is_a_byte_less_than_the_default_buffer() {
        let (fifo, window) = sizes_of(64 * 1024, &queue_of(bytes_wanted(64 * 1024)));
        assert_eq!((fifo.bytes, window.bytes), (256 << 10, (256 << 10) - 1));
    }

    #[test]
    fn full_windows_of_any_packets_fit_the_queue() {
        for (samples, queue) in [(1 << 16, 8 << 20), (1 << 22, 64 << 20), (1 << 22, 200 << 10)] {
            let (fifo, window) = sizes_of(samples, &queue_of(queue));
            assert!(window.bytes < fifo.bytes as u64);
            let packets = window.packets as usize;
            let charged = window.bytes as usize * 22 / 10 + packets * DATAGRAM_BYTES;
            // The queue actually is twice the requested size (socket(7)).
            assert!(SHARES * charged <= 2 * queue, "{samples} {queue}: {charged}");
        }
    }

    #[test]
    fn a_large_buffer_gets_the_queue_it_needs() {
        for samples in [1u64 << 16, 1 << 20, 10 << 20] {
            let (fifo, window) = sizes_of(samples, &queue_of(bytes_wanted(samples)));
            assert_eq!(window.bytes, fifo.bytes as u64 - 1);
            assert_eq!(window.cautious_bytes, window.bytes);
        }
    }

    #[test]
    fn a_queue_that_counts_datagrams_limits_their_number_and_bytes_where_nobody_counts() {
        let mut queue = queue_of(0);
        queue.recv_queue_datagrams = Some(2048);
        let (fifo, window) = sizes_of(1 << 20, &queue);
        assert_eq!((window.packets as usize, fifo.packets), (2048 * 7 / 16 / SHARES, 900));
        assert_eq!(window.cautious_bytes, 896 * 1024, "for hosts that count only bytes");
        assert_eq!((window.bytes, window.packets), (fifo.bytes as u64 - 1, 448));
        let (fifo, window) = sizes_of(1 << 16, &queue);
        assert_eq!(window.cautious_bytes, fifo.bytes as u64 - 1, "a small buffer is the limit");
    }

    fn sizes_of(samples: u64, queue: &Capabilities) -> (FifoSize, CreditWindow) {
        sizes(samples, queue, SHARES, Width::W64, 2)
    }

    fn bytes_wanted(samples: u64) -> usize {
        queue_bytes_wanted(samples, SHARES)
    }

    fn queue_of(recv_queue_bytes: usize) -> Capabilities {
        let mut queue = Capabilities::new(9000, 64);
        queue.recv_queue_bytes = recv_queue_bytes;
        queue
    }

    /// The limits of [`sizes`], checked with the kernel: full windows of packets of any length wait
    /// in a socket that is not read, and none is lost.
    #[test]
    fn the_kernel_holds_full_windows() {
        use millstream_link::port::PortOptions;
        use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
        let recv_queue_bytes = bytes_wanted(64 * 1024);
        let options = PortOptions { recv_queue_bytes, ..PortOptions::default() };
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        for length in [12usize, 100, 600, 1_100, 1_472, 2_100, 4_108, 8_016] {
            let port = millstream_link::open("udp", any, &options).unwrap();
            let (_, window) = sizes_of(64 * 1024, &port.rx.capabilities());
            let by_bytes = window.bytes as usize / length.next_multiple_of(8);
            let count = SHARES * by_bytes.min(window.packets as usize);
            let sender = UdpSocket::bind(any).unwrap();
            for _ in 0..count {
                sender.send_to(&vec![0; length], port.local).unwrap();
            }
            let (mut rx, mut got) = (port.rx, 0);
            while let Ok(lent @ 1..) = rx.recv_batch(std::time::Duration::from_millis(20)) {
                got += lent;
            }
            assert_eq!((got, rx.queue_drops()), (count, 0), "{length} bytes each");
        }
    }
}
