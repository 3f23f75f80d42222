//! Control packets to the host: asynchronous messages, and the way of answers.

use super::{EmulatedDevice, HostAddress};
use millstream_wire::Epid;
use millstream_wire::ctrl::{CtrlRepr, DataWords, Op};
use millstream_wire::regs::radio as regs;
use millstream_wire::regs::radio::async_msg::Event;

impl EmulatedDevice {
    /// Sends an asynchronous message to the destination set by the host.
    pub(super) fn report(&mut self, channel: usize, event: Event, tick: u64) {
        let registers = &self.radio.channels[channel];
        let (epid, port, address) = match event {
            Event::RxLateCommand | Event::RxOverrun => {
                (regs::RX_ERR_REM_EPID, regs::RX_ERR_REM_PORT, regs::RX_ERR_ADDR)
            }
            Event::TxUnderrun | Event::TxLate | Event::TxBurstAck => {
                (regs::TX_ERR_REM_EPID, regs::TX_ERR_REM_PORT, regs::TX_ERR_ADDR)
            }
        };
        let dst_epid = Epid(registers.register(epid) as u16);
        if dst_epid == Epid::NONE {
            // No host requested messages, or its session is over.
            return;
        }
        let port = registers.register(port) as u16 & 0x3ff;
        let block = self.radio.block_of(channel);
        let ctrl_seq = self.radio.blocks[block].message_seq;
        let modulus = self.image.generation.protocol.sequence_modulus();
        self.radio.blocks[block].message_seq = ((u16::from(ctrl_seq) + 1) % modulus) as u8;
        let message = CtrlRepr {
            dst_epid,
            src_epid: self.endpoints[0].epid,
            dst_port: port,
            src_port: port,
            ctrl_seq,
            timestamp: Some(self.keeper.timestamp_of(tick)),
            address: registers.register(address) & 0xf_ffff,
            op: Op::Write,
            data: DataWords::one(event.code()),
            ..CtrlRepr::default()
        };
        if self.send_control(message) {
            self.counters().async_messages.inc();
        }
    }

    /// Sends a control packet with the next sequence number; returns false when its host is
    /// unknown.
    pub(super) fn send_control(&mut self, packet: CtrlRepr) -> bool {
        let Some(to) = self.host(packet.dst_epid) else { return false };
        let packet = CtrlRepr { seq: self.control_seq, ..packet };
        self.control_seq = self.control_seq.wrapping_add(1);
        let protocol = self.image.generation.protocol;
        self.outbox.send(to, |width, buffer| protocol.emit(&packet, width, buffer));
        true
    }

    /// Returns the address of a host endpoint; counts an unknown one.
    pub(super) fn host(&self, epid: Epid) -> Option<HostAddress> {
        let host = self.fabric.host(epid);
        if host.is_none() {
            self.counters().chdr_unroutable.inc();
        }
        host
    }
}
