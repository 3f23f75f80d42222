//! Blocks beside the radio in the device: their requests, and the packets to and from them.

use super::blocks::{self, BlockPacket, StreamBlock};
use super::operations::Access;
use super::radio_block::NoRegister;
use super::rx_sender::SendResult;
use super::tx_fifo::TxPacket;
use super::{EmulatedDevice, HostAddress};
use crate::personality::{Block, Image};
use millstream_wire::chdr::{DataRepr, SC16_LEN, round_to_word};
use millstream_wire::ctrl::CtrlRepr;

/// The packets of a block that are sent before the port is polled again.
const PACKETS_PER_TURN: usize = 64;

/// The share of a buffer after which a stream within the device continues.
const LOCAL_SHARE: u64 = 4;

/// Returns the blocks of an image that have endpoints of their own, by number.
pub(super) fn of(image: &Image) -> Box<[Option<Box<dyn StreamBlock>>]> {
    let new = |block: &Block| {
        blocks::new(block.kind, block.inputs.max(block.outputs).into(), image.width)
    };
    image.blocks.iter().map(new).collect()
}

impl EmulatedDevice {
    /// Executes and acknowledges a request to block `number`.
    pub(super) fn execute_stream_block(&mut self, number: usize, request: &CtrlRepr) {
        self.serve(request, |device, access| {
            let generation = device.image.generation;
            let block = device.stream_blocks[number].as_mut().ok_or(NoRegister)?;
            match access {
                Access::Read(address) => Ok(block.read(address, generation)),
                Access::Write(address, value) => {
                    block.write(address, value);
                    Ok(value)
                }
            }
        });
        // Space for a recording may have come.
        let block = self.image.blocks[number];
        for endpoint in block.first..block.first + usize::from(block.inputs) {
            self.run_sink(endpoint);
        }
    }

    /// Passes the packets that wait at an endpoint to its block, as far as it takes them.
    pub(super) fn run_sink(&mut self, index: usize) {
        let Some((number, port)) = self.image.block_behind(index) else { return };
        while let Some(packet) = self.endpoints[index].fifo.head() {
            let Some(block) = &mut self.stream_blocks[number] else { break };
            let fifo = &mut self.endpoints[index].fifo;
            let taken = block.take(port, fifo.head_samples(packet.samples)) as u64;
            fifo.advance(taken);
            if taken < packet.samples {
                break;
            }
            self.let_go(index);
        }
    }

    /// Sends the packets at the output of a block, as far as they are taken.
    pub(super) fn send_blocks_packets(&mut self, index: usize, now: u64) -> SendResult {
        let Some((number, port)) = self.image.block_behind(index) else { return SendResult::Idle };
        if !self.endpoints[index].out.is_on() {
            return SendResult::Idle;
        }
        for _ in 0..PACKETS_PER_TURN {
            let block = self.stream_blocks[number].as_ref();
            let Some(packet) = block.and_then(|block| block.next_packet(port)) else {
                return SendResult::Idle;
            };
            let host = self.fabric.host(self.endpoints[index].out.dst_epid);
            let sent = match (self.endpoints[index].out.is_local(), host) {
                (true, _) => {
                    if !self.pass_packet(index, (number, port), packet, now) {
                        return SendResult::AtTick(now + self.local_step());
                    }
                    true
                }
                (false, Some(host)) => self.send_packet(index, (number, port), packet, host),
                (false, None) => false,
            };
            if !sent {
                return SendResult::Idle;
            }
        }
        SendResult::Again
    }

    /// Passes the samples that a channel has received to another endpoint of the device.
    pub(super) fn pass_samples(&mut self, channel: usize, now: u64) -> SendResult {
        let Some(to) = self.local_of(channel) else { return SendResult::Idle };
        for _ in 0..PACKETS_PER_TURN {
            let radio = &self.radio.channels[channel];
            let packet = match self.senders[channel].complete_packet(radio, now) {
                Ok(packet) => packet,
                Err(later) => return later,
            };
            let samples = packet.samples as usize;
            let timestamp = self.keeper.timestamp_of(packet.tick);
            let header = DataRepr {
                timestamp: radio.has_time().then_some(timestamp),
                eob: packet.eob,
                payload_len: samples * SC16_LEN,
                ..DataRepr::default()
            };
            if !self.has_room(to, &header) {
                return SendResult::AtTick(now + self.local_step());
            }
            let out = &mut self.passing[..samples];
            let radio = &mut self.radio.channels[channel];
            self.senders[channel].take_packet(radio, packet, timestamp, out);
            self.deliver(to, &header, now);
        }
        SendResult::Again
    }

    /// Passes a packet of a block to another endpoint of the device; returns false when there is no
    /// room for it.
    fn pass_packet(
        &mut self,
        index: usize,
        (number, port): (usize, usize),
        packet: BlockPacket,
        now: u64,
    ) -> bool {
        let BlockPacket { bytes: payload_len, timestamp, eob, .. } = packet;
        let header = DataRepr { timestamp, eob, payload_len, ..DataRepr::default() };
        let to = self.local_of(index).filter(|&to| self.has_room(to, &header));
        let (Some(to), Some(block)) = (to, &mut self.stream_blocks[number]) else { return false };
        block.fill(port, 0, &mut self.passing[..payload_len / SC16_LEN]);
        block.sent(port);
        self.deliver(to, &header, now);
        true
    }

    /// Sends a packet of a block to its host; returns false when that grants no credit.
    fn send_packet(
        &mut self,
        index: usize,
        (number, port): (usize, usize),
        packet: BlockPacket,
        to: HostAddress,
    ) -> bool {
        let Some(block) = &mut self.stream_blocks[number] else { return false };
        let endpoint = &mut self.endpoints[index];
        if !self.outbox.keep_in_step(&mut endpoint.out, endpoint.epid, to) {
            return false;
        }
        let BlockPacket { bytes: payload_len, announced, timestamp, eob } = packet;
        let dst_epid = endpoint.out.dst_epid;
        let repr = DataRepr { dst_epid, timestamp, eob, payload_len, ..DataRepr::default() };
        let bytes = repr.packet_len(self.image.width);
        if endpoint.out.packets_allowed(bytes) == 0 {
            return false;
        }
        let repr = DataRepr { seq: endpoint.out.send_data(bytes), ..repr };
        // A packet that the port has no space for is lost.
        let written = self.outbox.write_data(to, &repr, announced, |at, samples| {
            block.fill(port, at * SC16_LEN, samples);
        });
        if written {
            self.outbox.depart(to.link);
        }
        block.sent(port);
        self.counters().rx_packets.inc();
        self.counters().rx_bytes.add(payload_len as u64);
        true
    }

    /// Puts the packet whose samples have been made into the buffer of an endpoint.
    fn deliver(&mut self, to: usize, header: &DataRepr, now: u64) {
        let samples = &self.passing[..header.payload_len / SC16_LEN];
        let packet = TxPacket {
            arrived: now,
            timestamp: header.timestamp,
            samples: samples.len() as u64,
            eob: header.eob,
        };
        let flow_bytes = round_to_word(header.packet_len(self.image.width), self.image.width);
        self.endpoints[to].fifo.push_samples(packet, None, flow_bytes, samples);
        self.pass(to);
        if to >= self.image.channels {
            self.run_sink(to);
        }
    }

    fn has_room(&self, to: usize, header: &DataRepr) -> bool {
        let bytes = round_to_word(header.packet_len(self.image.width), self.image.width);
        self.image.takes_data(to) && self.endpoints[to].fifo.has_room(bytes)
    }

    /// Returns the endpoint of this device to which the crossbar routes the stream of an endpoint.
    pub(super) fn local_of(&self, index: usize) -> Option<usize> {
        self.fabric.endpoint_of(self.endpoints[index].out.dst_epid)
    }

    /// Returns the ticks after which a full buffer has room again.
    fn local_step(&self) -> u64 {
        (self.endpoints[0].fifo.capacity_samples() / LOCAL_SHARE).max(1)
    }
}
