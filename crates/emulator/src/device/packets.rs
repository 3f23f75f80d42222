//! The packets received by the CHDR port, by packet type.

use super::client_zero::{self, CONTROL_ENDPOINTS, RegisterRequest};
use super::operations::{self, Access};
use super::out_stream::StatusTaken;
use super::radio_block::{NoRegister, Written};
use super::{EmulatedDevice, HostAddress};
use crate::personality::{Block, BlockKind};
use millstream_wire::chdr::{Packet, PacketType};
use millstream_wire::ctrl::{CLIENT_ZERO_PORT, ControlStatus, CtrlRepr, block_port};
use millstream_wire::mgmt::MgmtRepr;
use millstream_wire::stream::StatusRepr;

/// Where the registers of a request are.
#[derive(Debug, Clone, Copy)]
enum Target {
    ClientZero,
    /// The radio block with this number among the radios.
    Radio(usize),
    Converter(Block),
    /// The block with this number in the image.
    Stream(usize),
}

impl EmulatedDevice {
    /// Takes a datagram that arrived at `now_ns`. Any content costs at most one count.
    pub fn receive(&mut self, datagram: &[u8], source: HostAddress, now_ns: u64) {
        self.counters().chdr_datagrams.inc();
        let Ok(packet) = Packet::parse(datagram, self.image.width) else {
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

    fn take_management(&mut self, packet: &Packet<'_>, source: HostAddress) {
        let Ok(request) = MgmtRepr::parse(packet) else {
            return self.counters().management_malformed.inc();
        };
        let Ok(outcome) = self.fabric.execute(request, source, &mut self.endpoints) else {
            return self.counters().management_malformed.inc();
        };
        match outcome.reply {
            Some(mut reply) => {
                reply.version = self.image.generation.protocol.version();
                self.counters().management_packets.inc();
                self.outbox.send(source, |width, buffer| reply.emit(width, buffer));
            }
            None => self.counters().management_unanswered.inc(),
        }
        if let Some((index, command)) = outcome.command {
            if self.local_of(index).is_some() {
                self.endpoints[index].out.connect();
            }
            // The stream begins soon, so the antenna can prepare.
            if let Some(sender) = self.senders.get_mut(index) {
                sender.prepare(self.keeper.clock().rate_hz());
            }
            if self.endpoints[index].out.is_local() {
                return;
            }
            if let Some(to) = self.host(command.dst_epid) {
                self.outbox.send(to, |width, buffer| command.emit(width, buffer));
            }
        }
    }

    fn take_control(&mut self, packet: &Packet<'_>, now: u64) {
        let Ok(request) = self.image.generation.protocol.parse(packet) else {
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
            return self.execute_request(Target::ClientZero, &request, now);
        }
        let number = request.dst_port.checked_sub(block_port(CONTROL_ENDPOINTS, 0));
        match number.and_then(|number| self.image.blocks.get(usize::from(number))).copied() {
            Some(Block { kind: BlockKind::Radio, first, .. }) => {
                let block = self.radio.block_of(first);
                let words = self.image.generation.protocol.credit_words(&request);
                if self.radio.blocks[block].commands.push(request, words) {
                    self.run_radio_commands(block, now);
                } else {
                    self.counters().control_overflows.inc();
                }
            }
            Some(block) if block.kind.has_channels() => {
                self.execute_request(Target::Converter(block), &request, now);
            }
            Some(_) => {
                let number = number.map_or(0, usize::from);
                self.execute_request(Target::Stream(number), &request, now);
                self.take_waiting(number);
            }
            None => self.counters().chdr_unroutable.inc(),
        }
    }

    /// Executes and acknowledges the requests to a radio block that are due, in order.
    pub(super) fn run_radio_commands(&mut self, block: usize, now: u64) {
        let timestamp = self.keeper.timestamp_of(now);
        while let Some(request) = self.radio.blocks[block].commands.pop_due(timestamp) {
            // Commands must find the channels at the present tick, not at that of the last call.
            self.run_channels(now);
            self.execute_request(Target::Radio(block), &request, now);
        }
    }

    /// Executes and acknowledges a request.
    fn execute_request(&mut self, target: Target, request: &CtrlRepr, now: u64) {
        let protocol = self.image.generation.protocol;
        let (status, words) = operations::execute(protocol, request, |access| match target {
            Target::ClientZero => self.access_client_zero(access),
            Target::Radio(block) => self.access_radio(block, access, now),
            Target::Converter(block) => {
                self.access_converter(&block, access, request.timestamp, now)
            }
            Target::Stream(number) => self.access_stream_block(number, access),
        });
        self.counters().control_requests.inc();
        if status != ControlStatus::Ok {
            self.counters().control_bad_registers.inc();
        }
        self.send_control(request.ack(0, status, words));
    }

    fn access_radio(&mut self, block: usize, access: Access, now: u64) -> Result<u32, NoRegister> {
        match access {
            Access::Read(address) => {
                // The time changes with the cycle.
                let cycle = now.next_multiple_of(self.radio.cycle.into());
                self.radio.read(block, address, self.keeper.timestamp_of(cycle))
            }
            Access::Write(address, value) => {
                if self.radio.write(block, address, value, now)? == Written::CommandLost {
                    self.counters().rx_command_overflows.inc();
                }
                Ok(value)
            }
        }
    }

    fn access_client_zero(&mut self, access: Access) -> Result<u32, NoRegister> {
        match access {
            Access::Read(address) => client_zero::read(&self.image, address).ok_or(NoRegister),
            Access::Write(address, value) => {
                let what = client_zero::write(&self.image, address, value).ok_or(NoRegister)?;
                if let RegisterRequest::ResetData(number) = what {
                    self.reset_data(number);
                }
                Ok(value)
            }
        }
    }

    /// Drops the samples in block `number`, and stops it.
    fn reset_data(&mut self, number: usize) {
        let Block { kind, first, inputs, .. } = self.image.blocks[number];
        if let Some(block) = &mut self.stream_blocks[number] {
            block.stop();
            (first..first + usize::from(inputs)).for_each(|endpoint| self.drop_waiting(endpoint));
        }
        if kind == BlockKind::Radio {
            for channel in first..first + usize::from(inputs) {
                self.radio.channels[channel].rx.reset();
                self.senders[channel].source().clear();
                self.drop_waiting(channel);
            }
        }
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
