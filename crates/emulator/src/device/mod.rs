//! The radio behind the CHDR port: every packet that arrives, and the passing of time.
//!
//! ```text
//!             ┌ Fabric ────────────────┐   ┌ Endpoint 0 ┐   ┌ RadioBlock ──────┐
//!  datagram ─▶│ transport ▶ crossbar ▶ │──▶│ Out/InStream│──▶│ registers        │
//!             │ (management packets)   │   │ TxFifo      │   │ RxChannel 0, 1   │
//!             └────────────────────────┘   ├ Endpoint 1 ┤   │ TxChannel 0, 1   │
//!                                          └─────────────┘   └──────────────────┘
//!  advance(now) ─▶ TxFifo ─▶ TxChannel ─▶ (credit, events) ─▶ Outbox
//!               ─▶ CommandFifo ─▶ RxChannel ─▶ RxSender (antenna, trains) ─▶ Outbox
//! ```
//!
//! Nothing here reads a clock or waits: time is an argument, so tests run on a simulated one.

mod client_zero;
mod control;
mod endpoint;
mod fabric;
mod hooks;
mod in_stream;
mod out_stream;
mod outbox;
mod packets;
mod radio_block;
mod rx_channel;
mod rx_sender;
mod transmit;
mod tx_channel;
mod tx_fifo;

use crate::antenna::Antenna;
use crate::config::CHANNELS;
use crate::counters::Counters;
use crate::mailbox::Order;
use crate::time::Timekeeper;
use control::CommandFifo;
use endpoint::Endpoint;
use fabric::Fabric;
use millstream_link::port::PortTx;
use millstream_wire::Epid;
use millstream_wire::chdr::Width;
use millstream_wire::ctrl::{CtrlRepr, DataWords, Op};
use millstream_wire::regs::radio as regs;
use millstream_wire::regs::radio::async_msg::Event;
use outbox::Outbox;
use radio_block::RadioBlock;
use rx_channel::RxEvent;
use rx_sender::{Next, RxSender, Turn};
use std::net::SocketAddrV4;
use std::sync::Arc;
use tx_fifo::TxFifo;

pub(crate) use transmit::queue_bytes_wanted;

/// The state of the radio.
pub(crate) struct Device {
    keeper: Timekeeper,
    fabric: Fabric,
    endpoints: [Endpoint; CHANNELS],
    radio: RadioBlock,
    radio_commands: CommandFifo,
    senders: [RxSender; CHANNELS],
    outbox: Outbox,
    /// Sequence numbers of control packets to the host: of the packets, and of the messages.
    control_seq: u16,
    message_seq: u8,
}

/// What a device is made of.
pub(crate) struct Parts {
    pub keeper: Timekeeper,
    pub antennas: [Box<dyn Antenna>; CHANNELS],
    pub rx_buffer_samples: u64,
    pub tx_buffer_samples: u64,
    /// What the port's receive queue really holds, bytes.
    pub recv_queue_bytes: usize,
    pub tx: Box<dyn PortTx>,
    pub counters: Arc<Counters>,
}

impl Device {
    /// A radio as after power-on.
    pub fn new(parts: Parts) -> Self {
        let (size, window) = transmit::sizes(parts.tx_buffer_samples, parts.recv_queue_bytes);
        let endpoint = |index| Endpoint::new(index as u16, window, TxFifo::new(size, false));
        Self {
            keeper: parts.keeper,
            fabric: Fabric::new(),
            endpoints: std::array::from_fn(endpoint),
            radio: RadioBlock::new(parts.rx_buffer_samples),
            radio_commands: CommandFifo::default(),
            senders: parts.antennas.map(RxSender::new),
            outbox: Outbox::new(parts.tx, parts.counters),
            control_seq: 0,
            message_seq: 0,
        }
    }

    /// Carries out an order of the management side.
    pub fn obey(&mut self, order: Order) {
        match order {
            Order::Time(keeper) => {
                self.keeper = keeper;
                for (sender, endpoint) in self.senders.iter_mut().zip(&self.endpoints) {
                    if endpoint.out.is_on() {
                        sender.prepare(keeper.clock().rate_hz());
                    }
                }
            }
            Order::DeviceId(id) => self.fabric.device_id = id,
            Order::Reset(keeper) => {
                self.keeper = keeper;
                self.fabric.reset();
                self.radio.reset();
                self.radio_commands.clear();
                self.endpoints.iter_mut().for_each(Endpoint::reset);
            }
        }
    }

    /// Brings the radio to `now_ns`: executes what is due, sends what is complete. The instant at
    /// which it wants to be called again.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        let now = self.keeper.clock().tick_at(now_ns);
        self.run_channels(now);
        self.run_radio_commands(now);
        let due = self.radio_commands.waits_for();
        // What is due never, or only after the host sets the time, has no deadline.
        let due = due.and_then(|due| self.keeper.tick_of(due, now));
        let mut deadline_ns = due.map_or(u64::MAX, |tick| self.deadline_ns(tick));
        for channel in 0..CHANNELS {
            let next = match self.send_samples(channel, now) {
                Next::Again => Some(now),
                Next::AtTick(tick) => Some(tick),
                Next::Idle => None,
            };
            let event = self.radio.channels[channel].rx.next_event(&self.keeper);
            let transmit = self.next_transmit_event(channel);
            if let Some(tick) = [next, event, transmit].into_iter().flatten().min() {
                deadline_ns = deadline_ns.min(self.deadline_ns(tick).max(now_ns));
            }
        }
        deadline_ns
    }

    /// Counts what the port below lost, and what the antennas could not deliver.
    pub fn note_losses(&mut self, queue_drops: u64) {
        let starved = self.senders.iter().map(RxSender::starved_samples).sum();
        let flushed = self.endpoints.iter().map(|endpoint| endpoint.fifo.flushed_samples()).sum();
        let gaps = self.radio.channels.iter().map(|channel| channel.tx.gap_samples()).sum();
        let counters = self.counters();
        counters.queue_drops.set(queue_drops);
        counters.rx_starved_samples.set(starved);
        counters.tx_flushed_samples.set(flushed);
        counters.tx_gap_samples.set(gaps);
    }

    fn counters(&self) -> &Counters {
        self.outbox.counters()
    }

    fn deadline_ns(&self, tick: u64) -> u64 {
        self.keeper.clock().deadline_ns(tick)
    }

    /// Brings all channels to tick `now`.
    fn run_channels(&mut self, now: u64) {
        for channel in 0..CHANNELS {
            self.run_transmitter(channel, now);
            self.run_receiver(channel, now);
        }
    }

    fn run_receiver(&mut self, channel: usize, now: u64) {
        while let Some(event) = self.radio.channels[channel].rx.advance(&self.keeper, now) {
            match event {
                RxEvent::Started { .. } => self.counters().rx_commands.inc(),
                RxEvent::Late { tick } => {
                    self.counters().rx_late_commands.inc();
                    self.report(channel, Event::RxLateCommand, tick);
                }
                RxEvent::Overrun { tick } => {
                    self.counters().rx_overruns.inc();
                    self.report(channel, Event::RxOverrun, tick);
                }
            }
        }
    }

    fn send_samples(&mut self, channel: usize, now: u64) -> Next {
        let endpoint = &mut self.endpoints[channel];
        let to = self.fabric.host(endpoint.out.dst_epid);
        self.senders[channel].turn(Turn {
            channel: &mut self.radio.channels[channel],
            out: &mut endpoint.out,
            keeper: &self.keeper,
            now,
            src_epid: endpoint.epid,
            to,
            outbox: &mut self.outbox,
        })
    }

    /// Sends an asynchronous message to where the host asked for it (facts section 10).
    fn report(&mut self, channel: usize, event: Event, tick: u64) {
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
            // Nobody asked to be told, or the session that did is over.
            return;
        }
        let port = registers.register(port) as u16 & 0x3ff;
        let message = CtrlRepr {
            dst_epid,
            src_epid: self.endpoints[0].epid,
            dst_port: port,
            src_port: port,
            ctrl_seq: self.message_seq,
            timestamp: Some(self.keeper.timestamp_of(tick)),
            address: registers.register(address) & 0xf_ffff,
            op: Op::Write,
            data: DataWords::one(event.code()),
            ..CtrlRepr::default()
        };
        self.message_seq = (self.message_seq + 1) % millstream_wire::ctrl::SEQ_MODULUS;
        if self.send_control(message) {
            self.counters().async_messages.inc();
        }
    }

    /// Sends a control packet with the next sequence number; false when its host is unknown.
    fn send_control(&mut self, packet: CtrlRepr) -> bool {
        let Some(to) = self.host(packet.dst_epid) else { return false };
        let packet = CtrlRepr { seq: self.control_seq, ..packet };
        self.control_seq = self.control_seq.wrapping_add(1);
        self.outbox.send(to, |buffer| packet.emit(Width::W64, buffer));
        true
    }

    /// Where a host endpoint lives; counts when nobody knows.
    fn host(&self, epid: Epid) -> Option<SocketAddrV4> {
        let host = self.fabric.host(epid);
        if host.is_none() {
            self.counters().chdr_unroutable.inc();
        }
        host
    }
}

#[cfg(test)]
mod test_bench;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tx_tests;
