//! Control packets to the host: asynchronous messages, and the way of answers.

use super::messages::{Message, Unsolicited};
use super::{EmulatedDevice, HostAddress};
use millstream_wire::Epid;
use millstream_wire::ctrl::{CLIENT_ZERO_PORT, CtrlRepr, DataWords, Op, Protocol};
use millstream_wire::regs::radio as regs;
use millstream_wire::regs::radio::async_msg::Event;

impl EmulatedDevice {
    /// Sends an asynchronous message to the destination set by the host, when those of its block
    /// before it have been acknowledged. A receiver waits until its own is.
    pub(super) fn report(&mut self, channel: usize, event: Event, tick: u64) {
        let block = self.radio.block_of(channel);
        let port = channel - self.radio.blocks[block].first();
        self.radio.blocks[block].messages.offer(Message { port, event, tick });
        self.send_next_message(block);
    }

    /// Sends the next message of a block, unless one waits for its acknowledgement.
    pub(super) fn send_next_message(&mut self, block: usize) {
        let protocol = self.image.generation.protocol;
        while let Some((message, ctrl_seq)) = self.radio.blocks[block].messages.next(protocol) {
            if self.send_message(block, message, ctrl_seq) {
                return;
            }
            // Client zero acknowledges what is for no host.
            let done = self.release_sender(block, message.tick);
            debug_assert_eq!(done, Ok(()));
        }
    }

    /// Lets a block and its receiver go on behind an acknowledged message.
    ///
    /// # Errors
    /// [`Unsolicited`] when no message waits for an acknowledgement.
    pub(super) fn release_sender(&mut self, block: usize, now: u64) -> Result<(), Unsolicited> {
        if let Some(port) = self.radio.blocks[block].messages.acknowledge()? {
            let channel = self.radio.blocks[block].first() + port;
            self.radio.channels[channel].rx.release(now);
        }
        Ok(())
    }

    /// Sends a message; returns false when no host has requested any.
    fn send_message(&mut self, block: usize, message: Message, ctrl_seq: u8) -> bool {
        let Message { port, event, tick } = message;
        let radio = &self.radio.blocks[block];
        let registers = &self.radio.channels[radio.first() + port];
        let (way, epid, dst_port, address) = match event {
            Event::RxLateCommand | Event::RxOverrun => {
                (regs::RX_ERR_PORT, regs::RX_ERR_REM_EPID, regs::RX_ERR_REM_PORT, regs::RX_ERR_ADDR)
            }
            Event::TxUnderrun | Event::TxLate | Event::TxBurstAck => {
                (regs::TX_ERR_PORT, regs::TX_ERR_REM_EPID, regs::TX_ERR_REM_PORT, regs::TX_ERR_ADDR)
            }
        };
        if registers.register(way) as u16 == CLIENT_ZERO_PORT {
            return false;
        }
        let message = CtrlRepr {
            dst_epid: Epid(registers.register(epid) as u16),
            src_epid: self.endpoints[0].epid,
            dst_port: registers.register(dst_port) as u16 & 0x3ff,
            src_port: radio.port,
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
        true
    }

    /// Sends a control packet with the next sequence number; returns false when its host is
    /// unknown, and the packet lost.
    pub(super) fn send_control(&mut self, packet: CtrlRepr) -> bool {
        let packet = CtrlRepr { seq: self.endpoints[0].next_control_seq(), ..packet };
        let Some(to) = self.host(packet.dst_epid) else { return false };
        let protocol = self.image.generation.protocol;
        self.outbox.send(to, |width, buffer| {
            let length = protocol.emit(&packet, width, buffer)?;
            Ok(match protocol {
                Protocol::V1 => cut_padding(&packet, length, buffer),
                Protocol::V2 => length,
            })
        });
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

/// Removes the padding behind an even number of data words: radios send none. Returns the length.
fn cut_padding(packet: &CtrlRepr, length: usize, buffer: &mut [u8]) -> usize {
    let length = if packet.data.len() % 2 == 0 { length - 4 } else { length };
    // The length field of the CHDR header.
    buffer[2..4].copy_from_slice(&(length as u16).to_le_bytes());
    length
}
