//! A stream to a block without time or reports.

use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::Width;
use millstream_wire::chdr::{DataRepr, Packet, SC16_LEN, round_to_word};
use millstream_wire::mgmt::Op;
use millstream_wire::regs::sep::{ISTRM_CTRL_STATUS, ItemSize, StreamCtrl};
use millstream_wire::stream::{CommandOp, CommandRepr, PACKETS_UNLIMITED, StatusRepr};

use crate::RadioError;
use crate::convert::{Converter, HostSample, Wire};
use crate::deadline::deadline;
use crate::error::io_error;
use crate::opening::silent;
use crate::stream::StreamPath;
use crate::topology::{Management, connect};
use crate::tx::report_period;

/// The time limit for the device's answer to an INIT, and the attempts.
const INIT_TIMEOUT: Duration = Duration::from_millis(200);
const TRIES: u32 = 5;

/// The bits of a count of packets in a report.
const COUNT_BITS: u32 = 40;

/// A transmit stream to the input of a block.
///
/// The device takes samples as fast as the block does; [`BlockSender::finish`] tells whether it
/// took all of them.
pub struct BlockSender {
    port: Port,
    path: StreamPath,
    converter: Converter,
    /// The device's buffer: bytes, and packets.
    capacity: (u64, u64),
    /// Packets and bytes sent, and those that the device has taken, since the opening.
    sent: (u64, u64),
    taken: (u64, u64),
    seq: u16,
    samples_per_packet: usize,
    packet: Vec<u8>,
}

impl BlockSender {
    /// Routes and opens the stream from `port`. [`crate::Device::block_sender`] does this.
    ///
    /// # Errors
    /// [`RadioError::Silent`] when the handshake fails, [`RadioError::Unusable`] for a buffer in
    /// which no packet fits.
    pub fn open(mut port: Port, path: StreamPath) -> Result<Self, RadioError> {
        let mut management =
            Management::new(&mut port, path.device, path.width, path.epid).on(path.clock);
        connect(&mut management, path.entry_port, &path.endpoint)?;
        let format = StreamCtrl { payload: ItemSize::Bits16, ..StreamCtrl::default() };
        let write = Op::CfgWrite { address: ISTRM_CTRL_STATUS, value: format.to_word() };
        let select = [Op::SelDest(path.endpoint.port)];
        let hops: [&[Op]; 3] = [&[Op::Nop], &select, &[write, Op::Return]];
        management.transact("the format of a stream", &hops)?;
        let header_bytes = DataRepr::default().header_len(path.width);
        let room = path.frame_bytes.saturating_sub(header_bytes) / SC16_LEN;
        let word = path.width.bytes() / SC16_LEN;
        let mut sender = Self {
            port,
            path,
            converter: Converter::new(Wire::Sc16),
            capacity: (0, 0),
            sent: (0, 0),
            taken: (0, 0),
            seq: 0,
            samples_per_packet: (room / word * word).max(word),
            packet: vec![0; path.frame_bytes.max(header_bytes + path.width.bytes())],
        };
        // The answer to the first INIT tells the window, by which the second one asks for reports.
        sender.init(0, PACKETS_UNLIMITED.into(), u64::from(u32::MAX))?;
        let (bytes, packets) = sender.capacity;
        sender.init(
            1,
            report_period(packets.min(PACKETS_UNLIMITED.into())),
            report_period(bytes),
        )?;
        let packet_bytes = sender.flow_bytes(sender.samples_per_packet);
        if packets == 0 || bytes < packet_bytes {
            let reason = format!(
                "the buffer of its endpoint {} takes {bytes} bytes in {packets} packets, and not \
                 one packet of {packet_bytes} bytes",
                path.endpoint.instance
            );
            return Err(RadioError::Unusable { address: *path.device.ip(), reason });
        }
        Ok(sender)
    }

    /// Returns the samples of a full packet.
    pub fn samples_per_packet(&self) -> usize {
        self.samples_per_packet
    }

    /// Sends samples; with `end_of_burst` the burst ends with the last of them. Returns the number
    /// that was sent: fewer than there are when the device had no room within `timeout`.
    ///
    /// # Errors
    /// [`RadioError::Io`] when the system refuses.
    pub fn send<T: HostSample>(
        &mut self,
        samples: &[T],
        end_of_burst: bool,
        timeout: Duration,
    ) -> Result<usize, RadioError> {
        let until = deadline(timeout);
        let mut sent = 0;
        while sent < samples.len() {
            let count = (samples.len() - sent).min(self.samples_per_packet);
            while !self.has_room(self.flow_bytes(count)) {
                if !self.hear(until)? {
                    return Ok(sent);
                }
            }
            let eob = end_of_burst && sent + count == samples.len();
            self.send_packet(&samples[sent..sent + count], eob)?;
            sent += count;
        }
        Ok(sent)
    }

    /// Waits until the device has taken everything; returns false if it has not within `timeout`,
    /// which also means that packets were lost.
    ///
    /// # Errors
    /// [`RadioError::Io`] when the system refuses.
    pub fn finish(mut self, timeout: Duration) -> Result<bool, RadioError> {
        let until = deadline(timeout);
        let wanted = self.sent;
        // Between two reports the device is asked. Its answer may count the question.
        if self.taken != wanted {
            self.command(2, CommandOp::Ping, 0, 0)?;
            let bytes = round_to_word(CommandRepr::packet_len(self.path.width), self.path.width);
            self.sent = (self.sent.0 + 1, self.sent.1 + bytes as u64);
        }
        while self.taken.0 < wanted.0 {
            if !self.hear(until)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn flow_bytes(&self, samples: usize) -> u64 {
        let repr = DataRepr { payload_len: samples * SC16_LEN, ..DataRepr::default() };
        round_to_word(repr.packet_len(self.path.width), self.path.width) as u64
    }

    fn has_room(&self, flow_bytes: u64) -> bool {
        let packets = self.sent.0.saturating_sub(self.taken.0);
        let bytes = self.sent.1.saturating_sub(self.taken.1);
        packets < self.capacity.1 && bytes + flow_bytes <= self.capacity.0
    }

    fn send_packet<T: HostSample>(&mut self, samples: &[T], eob: bool) -> Result<(), RadioError> {
        let payload_len = samples.len() * SC16_LEN;
        let repr = DataRepr {
            dst_epid: self.path.endpoint.epid,
            seq: self.seq,
            eob,
            payload_len,
            ..DataRepr::default()
        };
        let at = repr.emit(self.path.width, &mut self.packet).expect("the buffer is that long");
        let place = &mut self.packet[at..at + payload_len];
        self.converter.to_wire(samples, place, T::scale_to(Wire::Sc16));
        let device = self.path.device;
        let packet = &self.packet[..at + payload_len];
        self.port.tx.send(packet, device).map_err(io_error("send to", device))?;
        self.seq = self.seq.wrapping_add(1);
        let flow_bytes = self.flow_bytes(samples.len());
        self.sent = (self.sent.0 + 1, self.sent.1 + flow_bytes);
        Ok(())
    }

    /// Takes reports; returns false at the deadline.
    fn hear(&mut self, until: Instant) -> Result<bool, RadioError> {
        let device = self.path.device;
        let left = until.saturating_duration_since(Instant::now());
        let count = self.port.rx.recv_batch(left).map_err(io_error("receive from", device))?;
        for index in 0..count {
            let datagram = self.port.rx.datagram(index);
            let packet = Packet::parse(datagram.payload, self.path.width);
            let status = packet.and_then(|packet| StatusRepr::parse(&packet));
            if let Ok(status) = status {
                if datagram.source == device && status.dst_epid == self.path.epid {
                    self.note(&status);
                }
            }
        }
        Ok(count > 0 && Instant::now() < until)
    }

    /// Takes over a report. Its counts never lie behind those of an earlier one, nor ahead of what
    /// was sent: others are older, or wrong.
    fn note(&mut self, status: &StatusRepr) {
        let packets = status.capacity_packets;
        let packets = if packets == PACKETS_UNLIMITED { u64::MAX } else { packets.into() };
        self.capacity = (status.capacity_bytes, packets);
        let mask = (1 << COUNT_BITS) - 1;
        let more = status.count_packets.wrapping_sub(self.taken.0) & mask;
        let taken = (self.taken.0 + more, status.count_bytes);
        if taken.0 <= self.sent.0 && (self.taken.1..=self.sent.1).contains(&taken.1) {
            self.taken = taken;
        }
    }

    /// Sends an INIT and waits for the answer, which has the window.
    fn init(&mut self, seq: u16, packets: u64, bytes: u64) -> Result<(), RadioError> {
        for _ in 0..TRIES {
            self.capacity = (0, 0);
            self.command(seq, CommandOp::Init, packets, bytes)?;
            let until = Instant::now() + INIT_TIMEOUT;
            while self.hear(until)? && self.capacity == (0, 0) {}
            if self.capacity != (0, 0) {
                return Ok(());
            }
        }
        Err(silent(self.path.device, "the opening of a stream", TRIES, INIT_TIMEOUT))
    }

    fn command(
        &mut self,
        seq: u16,
        op: CommandOp,
        packets: u64,
        bytes: u64,
    ) -> Result<(), RadioError> {
        let mut buffer = [0; CommandRepr::packet_len(Width::W512)];
        let (dst_epid, src_epid) = (self.path.endpoint.epid, self.path.epid);
        let command = CommandRepr { dst_epid, seq, src_epid, op, op_data: 0, packets, bytes };
        let length = command.emit(self.path.width, &mut buffer).expect("the buffer is that long");
        let device = self.path.device;
        self.port.tx.send(&buffer[..length], device).map_err(io_error("send to", device))
    }
}

impl std::fmt::Debug for BlockSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (instance, sent, taken) = (self.path.endpoint.instance, self.sent, self.taken);
        write!(f, "stream to endpoint {instance}: {sent:?} sent, {taken:?} taken")
    }
}
