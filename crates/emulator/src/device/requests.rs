//! Control requests to the blocks, and their acknowledgements.

use super::client_zero::{CONTROL_ENDPOINTS, RegisterWrite};
use super::messages::Unsolicited;
use super::operations::{self, Access};
use super::radio_block::NoRegister;
use super::{EmulatedDevice, client_zero};
use crate::personality::{Block, BlockKind};
use millstream_wire::chdr::Packet;
use millstream_wire::ctrl::{CLIENT_ZERO_PORT, CtrlRepr, DataWords, block_port};
use millstream_wire::mgmt::MgmtRepr;
use millstream_wire::regs::radio::FRONT_END_BASE;

/// The packets that wait before an endpoint; further ones are lost, as in the queue of a transport.
const WAITING_MAX: usize = 1024;

/// A packet that waits before the control endpoint, because a command FIFO behind it is full.
#[derive(Debug)]
pub(crate) enum Waiting {
    Control(CtrlRepr),
    Management(Box<MgmtRepr>),
}

impl EmulatedDevice {
    /// Accepts a control packet.
    pub(super) fn accept_control(&mut self, packet: &Packet<'_>, now: u64) {
        let Ok(request) = self.image.generation.protocol.parse(packet) else {
            return self.counters().control_malformed.inc();
        };
        let endpoint = self.fabric.endpoint_of(request.dst_epid);
        if !endpoint.is_some_and(|index| self.endpoints[index].has_control()) {
            return self.counters().chdr_unroutable.inc();
        }
        if !self.waiting.is_empty() || !self.accept(&request, now) {
            self.wait(Waiting::Control(request));
        }
    }

    /// Queues a packet behind those that wait before the control endpoint.
    pub(super) fn wait(&mut self, packet: Waiting) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(packet);
        } else {
            self.counters().control_overflows.inc();
        }
    }

    /// Accepts the packets before the control endpoint, as far as there is space behind it.
    pub(super) fn accept_waiting(&mut self, now: u64) {
        while let Some(packet) = self.waiting.pop_front() {
            match packet {
                Waiting::Management(packet) => self.manage(0, *packet),
                Waiting::Control(request) => {
                    if !self.accept(&request, now) {
                        return self.waiting.push_front(packet);
                    }
                }
            }
        }
    }

    /// Passes a packet to its block; returns false when that has no space for it.
    fn accept(&mut self, request: &CtrlRepr, now: u64) -> bool {
        if request.dst_port == CLIENT_ZERO_PORT {
            self.execute_client_zero(request, now);
            return true;
        }
        let Some(number) = request.dst_port.checked_sub(block_port(CONTROL_ENDPOINTS, 0)) else {
            // The endpoint's own port sends back what it gets.
            let (dst_epid, src_epid) = (request.src_epid, self.endpoints[0].epid);
            self.send_control(CtrlRepr { dst_epid, src_epid, ..*request });
            return true;
        };
        match self.image.blocks.get(usize::from(number)).copied() {
            Some(Block { kind: BlockKind::Radio, first, .. }) => {
                let block = self.radio.block_of(first);
                if request.is_ack {
                    self.accept_acknowledgement(block, now);
                    return true;
                }
                let accepted = self.radio.blocks[block].commands.push(*request);
                self.run_radio_commands(block, now);
                return accepted;
            }
            _ if request.is_ack => {}
            Some(block) if block.kind.has_channels() => {
                self.execute_converter(&block, request, now);
            }
            Some(_) => self.execute_stream_block(number.into(), request),
            None => self.serve(request, |_, _| Err(NoRegister)),
        }
        true
    }

    /// Accepts the host's acknowledgement of a message of a radio block.
    fn accept_acknowledgement(&mut self, block: usize, now: u64) {
        match self.release_sender(block, now) {
            Ok(()) => self.send_next_message(block),
            Err(Unsolicited) => self.radio.blocks[block].fall_silent(),
        }
    }

    /// Executes and acknowledges the requests to a radio block that are due, in order.
    pub(super) fn run_radio_commands(&mut self, block: usize, now: u64) {
        let timestamp = self.keeper.timestamp_of(now);
        self.radio.blocks[block].run_board(timestamp);
        while !self.radio.is_stalled(block) {
            let Some(request) = self.radio.blocks[block].next_request(timestamp) else { break };
            // Commands must find the channels at the present tick, not at that of the last call.
            self.run_channels(now);
            let done = self.perform(&request, |device, access| match access {
                // The time changes with the cycle.
                Access::Read(address) => {
                    let cycle = now.next_multiple_of(device.radio.cycle.into());
                    let timestamp = device.keeper.timestamp_of(cycle);
                    device.radio.read(block, address, timestamp)
                }
                Access::Write(address, value) if address >= FRONT_END_BASE => {
                    let data = DataWords::one(value);
                    device.radio.blocks[block].write_board(&CtrlRepr { address, data, ..request });
                    Ok(value)
                }
                Access::Write(address, value) => {
                    device.radio.write(block, address, value, now)?;
                    let due = request.timestamp.and_then(|due| device.keeper.tick_of(due, now));
                    device.radio.note_gain(block, address, value, due.unwrap_or(now));
                    Ok(value)
                }
            });
            if done.is_err() {
                self.radio.blocks[block].fall_silent();
            }
            self.radio.blocks[block].run_board(timestamp);
        }
    }

    fn execute_client_zero(&mut self, request: &CtrlRepr, now: u64) {
        self.serve(request, |device, access| match access {
            Access::Read(address) => {
                client_zero::read(&device.image, &device.controls, device.fabric.device_id, address)
                    .ok_or(NoRegister)
            }
            Access::Write(address, value) => {
                match client_zero::write(&device.image, address).ok_or(NoRegister)? {
                    RegisterWrite::None => {}
                    RegisterWrite::Control(number) => device.control_block(number, value, now),
                }
                Ok(value)
            }
        });
    }

    /// Executes and acknowledges a request to a block whose missing registers read as 0 and take
    /// any value.
    pub(super) fn serve(
        &mut self,
        request: &CtrlRepr,
        mut registers: impl FnMut(&mut Self, Access) -> Result<u32, NoRegister>,
    ) {
        let lenient = |device: &mut Self, access| {
            registers(device, access).or_else(|NoRegister| {
                device.counters().control_bad_registers.inc();
                Ok(0)
            })
        };
        let done = self.perform(request, lenient);
        debug_assert_eq!(done, Ok(()));
    }

    /// Executes and acknowledges a request to a block.
    ///
    /// # Errors
    /// [`NoRegister`]: there is no acknowledgement.
    fn perform(
        &mut self,
        request: &CtrlRepr,
        mut registers: impl FnMut(&mut Self, Access) -> Result<u32, NoRegister>,
    ) -> Result<(), NoRegister> {
        let protocol = self.image.generation.protocol;
        let outcome = operations::execute(protocol, request, |access| registers(self, access));
        if outcome.is_err() {
            self.counters().control_bad_registers.inc();
        }
        self.counters().control_requests.inc();
        let (status, words) = outcome?;
        // With the time of the request.
        self.send_control(CtrlRepr {
            src_epid: self.endpoints[0].epid,
            dst_port: request.src_port,
            src_port: request.dst_port,
            timestamp: request.timestamp,
            ..request.ack(0, status, words)
        });
        Ok(())
    }
}
