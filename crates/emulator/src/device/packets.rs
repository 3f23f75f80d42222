//! The packets received by the CHDR port, by packet type.

use super::EmulatedDevice;
use super::client_zero::{self, CONTROL_ENDPOINTS, RegisterRequest};
use super::out_stream::StatusTaken;
use super::radio_block::{NoRegister, Written};
use crate::config::CHANNELS;
use crate::personality::BlockKind;
use millstream_wire::chdr::{Packet, PacketType, Width};
use millstream_wire::ctrl::{CLIENT_ZERO_PORT, ControlStatus, CtrlRepr, DataWords, Op, block_port};
use millstream_wire::mgmt::MgmtRepr;
use millstream_wire::stream::StatusRepr;
use std::net::SocketAddrV4;

impl EmulatedDevice {
    /// Takes a datagram that arrived at `now_ns`. Any content costs at most one count.
    pub fn receive(&mut self, datagram: &[u8], source: SocketAddrV4, now_ns: u64) {
        self.counters().chdr_datagrams.inc();
        let Ok(packet) = Packet::parse(datagram, Width::W64) else {
            return self.counters().chdr_malformed.inc();
        };
        let now = self.keeper.clock().tick_at(now_ns);
        match packet.kind() {
            PacketType::Management => self.take_management(&packet, source),
            PacketType::Control => self.take_control(&packet, now),
            PacketType::StreamStatus => self.take_status(&packet),
            PacketType::StreamCommand => self.take_command(&packet, now),
            PacketType::Data | PacketType::TimedData => self.take_data(&packet, now),
        }
    }

    fn take_management(&mut self, packet: &Packet<'_>, source: SocketAddrV4) {
        let Ok(request) = MgmtRepr::parse(packet) else {
            return self.counters().management_malformed.inc();
        };
        let Ok(outcome) = self.fabric.execute(request, source, &mut self.endpoints) else {
            return self.counters().management_malformed.inc();
        };
        match outcome.reply {
            Some(reply) => {
                self.counters().management_packets.inc();
                self.outbox.send(source, |buffer| reply.emit(Width::W64, buffer));
            }
            None => self.counters().management_unanswered.inc(),
        }
        if let Some((index, command)) = outcome.command {
            // The stream begins soon, so the antenna can prepare.
            if let Some(sender) = self.senders.get_mut(index) {
                sender.prepare(self.keeper.clock().rate_hz());
            }
            if let Some(to) = self.host(command.dst_epid) {
                self.outbox.send(to, |buffer| command.emit(Width::W64, buffer));
            }
        }
    }

    fn take_control(&mut self, packet: &Packet<'_>, now: u64) {
        let Ok(request) = CtrlRepr::parse(packet) else {
            return self.counters().control_malformed.inc();
        };
        let endpoint = self.fabric.endpoint_of(request.dst_epid);
        if !endpoint.is_some_and(|index| self.endpoints[index].has_control()) {
            return self.counters().chdr_unroutable.inc();
        }
        // The host's answer to an asynchronous message.
        if request.is_ack {
            return;
        }
        if request.dst_port == CLIENT_ZERO_PORT {
            return self.execute_client_zero(&request);
        }
        let number = request.dst_port.checked_sub(block_port(CONTROL_ENDPOINTS, 0));
        let block = number.and_then(|number| self.personality.blocks.get(usize::from(number)));
        match block.map(|block| block.kind) {
            Some(BlockKind::Radio) => {
                if self.radio_commands.push(request) {
                    self.run_radio_commands(now);
                } else {
                    self.counters().control_overflows.inc();
                }
            }
            Some(kind) => self.execute_converter(kind, &request, now),
            None => self.counters().chdr_unroutable.inc(),
        }
    }

    /// Executes and acknowledges the radio's requests that are due, in order.
    pub(super) fn run_radio_commands(&mut self, now: u64) {
        let timestamp = self.keeper.timestamp_of(now);
        while let Some(request) = self.radio_commands.pop_due(timestamp) {
            // Commands must find the channels at the present tick, not at that of the last call.
            self.run_channels(now);
            let answer = match request.op {
                Op::Sleep => Ok(0),
                Op::Read => self.radio.read(request.address, timestamp),
                Op::Write => self.write_radio(&request, now),
                _ => Err(NoRegister),
            };
            self.acknowledge(&request, answer);
        }
    }

    fn write_radio(&mut self, request: &CtrlRepr, now: u64) -> Result<u32, NoRegister> {
        let value = request.data.first();
        if self.radio.write(request.address, value, now)? == Written::CommandLost {
            self.counters().rx_command_overflows.inc();
        }
        Ok(value)
    }

    fn execute_client_zero(&mut self, request: &CtrlRepr) {
        let value = request.data.first();
        let answer = match request.op {
            Op::Sleep => Some(0),
            Op::Read => client_zero::read(self.personality, request.address),
            Op::Write => client_zero::write(self.personality, request.address, value).map(|what| {
                if what == RegisterRequest::ResetRadioData {
                    self.radio.channels.iter_mut().for_each(|channel| channel.rx.reset());
                    self.senders.iter_mut().for_each(|sender| sender.source().clear());
                    (0..CHANNELS).for_each(|channel| self.drop_waiting(channel));
                }
                value
            }),
            _ => None,
        };
        self.acknowledge(request, answer.ok_or(NoRegister));
    }

    pub(super) fn acknowledge(&mut self, request: &CtrlRepr, answer: Result<u32, NoRegister>) {
        self.counters().control_requests.inc();
        let (status, value) = match answer {
            Ok(value) => (ControlStatus::Ok, value),
            Err(NoRegister) => {
                self.counters().control_bad_registers.inc();
                (ControlStatus::CommandError, 0)
            }
        };
        // The number of requested words; only the first one has a meaning.
        let mut words = [0; millstream_wire::ctrl::MAX_DATA_WORDS];
        words[0] = value;
        let words = words.get(..request.data.len()).unwrap_or(&words);
        let data = DataWords::new(words).unwrap_or(DataWords::one(value));
        self.send_control(request.ack(0, status, data));
    }

    fn take_status(&mut self, packet: &Packet<'_>) {
        let Ok(status) = StatusRepr::parse(packet) else {
            return self.counters().stream_malformed.inc();
        };
        let Some(index) = self.fabric.endpoint_of(status.dst_epid) else {
            return self.counters().chdr_unroutable.inc();
        };
        let out = &mut self.endpoints[index].out;
        if status.src_epid != out.dst_epid {
            return self.counters().chdr_unexpected.inc();
        }
        match out.take_status(&status) {
            Ok(taken) => {
                let excess = taken == StatusTaken::Excess;
                self.counters().rx_status_packets.inc();
                self.counters().rx_status_excess.add(u64::from(excess));
            }
            Err(_) => self.counters().rx_status_invalid.inc(),
        }
    }
}
