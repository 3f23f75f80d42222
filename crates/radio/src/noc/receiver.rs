//! A stream from a block without time or commands.

use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::Width;
use millstream_wire::chdr::{DataRepr, Packet, SC16_LEN};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};

use crate::RadioError;
use crate::convert::{Converter, HostSample, Wire};
use crate::deadline::deadline;
use crate::error::io_error;
use crate::stream::{Credit, StreamPath, open_rx};

/// What a call received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockReceived {
    /// Samples written to the caller's slice; without a gap between them.
    pub samples: usize,
    /// Time of the first sample, ticks, for a block that sends times (a timed playback).
    pub time_ticks: Option<u64>,
    /// Packets missing directly before the first sample, modulo 2¹⁶.
    pub lost_packets: u16,
    /// The burst has ended with the last of the samples.
    pub end_of_burst: bool,
}

/// The counters of a stream's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockCounters {
    /// Data packets received.
    pub packets: u64,
    /// Data packets that never came, modulo 2¹⁶ at each gap.
    pub lost_packets: u64,
    /// Data packets that came twice or late; dropped.
    pub stale: u64,
    /// Datagrams from senders other than the device; ignored.
    pub foreign: u64,
    /// Datagrams from the device that could not be decoded; ignored.
    pub malformed: u64,
}

/// Samples of a lent datagram that the caller has not received.
#[derive(Debug, Clone, Copy)]
struct UnreadPart {
    index: usize,
    at: usize,
    end: usize,
    flow_bytes: usize,
    time_ticks: Option<u64>,
    lost_packets: u16,
    eob: bool,
}

/// A receive stream from the output of a block.
pub struct BlockReceiver {
    port: Port,
    path: StreamPath,
    credit: Credit,
    converter: Converter,
    /// The datagrams lent by the port: the index of the next, and their number.
    batch: (usize, usize),
    unread: Option<UnreadPart>,
    next_seq: u16,
    counters: BlockCounters,
}

impl BlockReceiver {
    /// Routes and opens the stream to `port`. [`crate::Device::block_receiver`] does this.
    ///
    /// # Errors
    /// [`RadioError::Silent`] when the handshake fails.
    pub fn open(mut port: Port, path: StreamPath) -> Result<Self, RadioError> {
        let mut credit = Credit::new(&port.rx.capabilities(), path.frame_bytes);
        open_rx(&mut port, &path, &mut credit)?;
        Ok(Self {
            port,
            path,
            credit,
            converter: Converter::new(Wire::Sc16),
            batch: (0, 0),
            unread: None,
            next_seq: 0,
            counters: BlockCounters::default(),
        })
    }

    /// Returns the most samples of a packet on the path.
    pub fn samples_per_packet(&self) -> usize {
        let timed = DataRepr { timestamp: Some(0), ..DataRepr::default() };
        let room = self.path.frame_bytes.saturating_sub(timed.header_len(self.path.width));
        // Whole words, which is what blocks can make.
        let word = self.path.width.bytes() / SC16_LEN;
        room / SC16_LEN / word * word
    }

    /// Returns the counters of the port.
    pub fn counters(&self) -> &BlockCounters {
        &self.counters
    }

    /// Receives samples until the slice is full, a packet is missing, a burst ends, or `timeout`
    /// has passed.
    ///
    /// # Errors
    /// [`RadioError::Io`] when the system refuses.
    pub fn recv<T: HostSample>(
        &mut self,
        out: &mut [T],
        timeout: Duration,
    ) -> Result<BlockReceived, RadioError> {
        let until = deadline(timeout);
        let mut received = BlockReceived::default();
        while received.samples < out.len() && !received.end_of_burst {
            let Some(part) = self.unread else {
                if !self.advance(until)? {
                    break;
                }
                continue;
            };
            if received.samples == 0 {
                received.time_ticks = part.time_ticks;
                received.lost_packets = part.lost_packets;
            } else if part.lost_packets > 0 {
                break;
            }
            let room = &mut out[received.samples..];
            let count = room.len().min((part.end - part.at) / SC16_LEN);
            let payload = self.port.rx.datagram(part.index).payload;
            let bytes = &payload[part.at..part.at + count * SC16_LEN];
            self.converter.to_user(bytes, &mut room[..count], T::scale_from(Wire::Sc16));
            received.samples += count;
            let at = part.at + count * SC16_LEN;
            if at < part.end {
                // The time is that of the packet's first sample, and the gap has been reported.
                let rest = UnreadPart { at, lost_packets: 0, time_ticks: None, ..part };
                self.unread = Some(rest);
                break;
            }
            self.unread = None;
            received.end_of_burst = part.eob;
            self.release(part.flow_bytes)?;
        }
        Ok(received)
    }

    /// Returns whether to look on behind a datagram that is none of ours: a flood of these does not
    /// extend a wait.
    fn may_go_on(&self, until: Instant) -> bool {
        self.batch.0 < self.batch.1 || Instant::now() < until
    }

    /// Takes the next packet; returns false at the deadline.
    fn advance(&mut self, until: Instant) -> Result<bool, RadioError> {
        let device = self.path.device;
        if self.batch.0 == self.batch.1 {
            let left = until.saturating_duration_since(Instant::now());
            let count = self.port.rx.recv_batch(left).map_err(io_error("receive from", device))?;
            self.batch = (0, count);
            if count == 0 {
                return Ok(false);
            }
        }
        let index = self.batch.0;
        self.batch.0 += 1;
        let datagram = self.port.rx.datagram(index);
        if datagram.source != device {
            self.counters.foreign += 1;
            return Ok(self.may_go_on(until));
        }
        let packet = match Packet::parse(datagram.payload, self.path.width) {
            Ok(packet) if packet.header().dst_epid == self.path.epid => packet,
            _ => {
                self.counters.malformed += 1;
                return Ok(self.may_go_on(until));
            }
        };
        let flow_bytes = packet.flow_len();
        if let Ok(command) = CommandRepr::parse(&packet) {
            self.command(&command, flow_bytes)?;
            return Ok(true);
        }
        let Ok(data) = DataRepr::parse(&packet) else {
            self.counters.malformed += 1;
            return Ok(true);
        };
        let at = packet.header().payload_offset(packet.width());
        let lost_packets = data.seq.wrapping_sub(self.next_seq);
        if lost_packets >= 1 << 15 {
            self.counters.stale += 1;
            self.release(flow_bytes)?;
            return Ok(true);
        }
        self.next_seq = data.seq.wrapping_add(1);
        self.counters.packets += 1;
        self.counters.lost_packets += u64::from(lost_packets);
        self.credit.pass_gap(lost_packets.into(), flow_bytes, true);
        let whole = data.payload_len / SC16_LEN * SC16_LEN;
        self.unread = Some(UnreadPart {
            index,
            at,
            end: at + whole,
            flow_bytes,
            time_ticks: data.timestamp,
            lost_packets,
            eob: data.eob,
        });
        Ok(true)
    }

    /// Answers a command of the sender: its totals, or a question for ours.
    fn command(&mut self, command: &CommandRepr, flow_bytes: usize) -> Result<(), RadioError> {
        if command.op == CommandOp::Resync {
            self.credit.resync(command.packets, command.bytes);
        }
        if command.op != CommandOp::Init {
            self.credit.release(flow_bytes);
        }
        self.report()
    }

    /// Counts a packet whose buffer is free again, and reports once per period.
    fn release(&mut self, flow_bytes: usize) -> Result<(), RadioError> {
        self.credit.release(flow_bytes);
        if self.credit.is_due() { self.report() } else { Ok(()) }
    }

    fn report(&mut self) -> Result<(), RadioError> {
        let report = self.credit.report(self.path.endpoint.epid, self.path.epid);
        let mut bytes = [0; StatusRepr::packet_len(Width::W512)];
        let length = report.emit(self.path.width, &mut bytes).expect("the buffer is that long");
        let device = self.path.device;
        self.port.tx.send(&bytes[..length], device).map_err(io_error("send to", device))
    }
}

impl std::fmt::Debug for BlockReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stream from endpoint {}: {:?}", self.path.endpoint.instance, self.counters)
    }
}
