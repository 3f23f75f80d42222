//! The radio behind the CHDR port: every packet that arrives, and the passing of time.
//!
//! ```text
//!             ┌ Fabric ────────────────┐   ┌ Endpoint 0 ┐   ┌ Radios ──────────┐
//!  datagram ─▶│ transport ▶ crossbar ▶ │──▶│ Out/InStream│──▶│ registers        │
//!             │ (management packets)   │   │ TxFifo      │   │ RxChannel 0, 1   │
//!             └────────────────────────┘   ├ Endpoint 1 ┤   │ TxChannel 0, 1   │
//!                                          └─────────────┘   └──────────────────┘
//!  advance(now) ─▶ TxFifo ─▶ TxChannel ─▶ (credit, events) ─▶ Outbox
//!               ─▶ CommandFifo ─▶ RxChannel ─▶ RxSender (antenna, batches) ─▶ Outbox
//! ```
//!
//! `blocks` has those beside the radio, whose ports have endpoints of their own.
//!
//! Nothing here reads a clock or waits: time is an argument, so tests run on a simulated clock.

mod block_controls;
mod blocks;
mod client_zero;
mod control;
mod converters;
mod emission;
mod endpoint;
mod epid_table;
mod fabric;
mod gain_timeline;
mod in_stream;
mod messages;
mod operations;
mod out_stream;
mod outbox;
mod packets;
mod radio_block;
mod reports;
mod requests;
mod rx_chain;
mod rx_channel;
mod rx_sender;
mod rx_turn;
mod rx_watch;
mod stream_blocks;
mod transmissions;
mod transmit;
mod transmitted;
mod tx_channel;
mod tx_fifo;

use crate::antenna::{AntennaSource, Sc16};
use crate::counters::Counters;
use crate::mailbox::DeviceCommand;
use crate::personality::{BlockKind, FrontEndKind, Image};
use crate::scene::SceneReceiver;
use crate::time::DeviceClock;
use crate::tx_out::Recorder;
use block_controls::BlockControl;
use blocks::StreamBlock;
use emission::Emission;
use endpoint::Endpoint;
use fabric::Fabric;
use millstream_link::port::{Capabilities, PortTx};
use millstream_wire::chdr::{MAX_LEN, SC16_LEN};
use millstream_wire::regs::radio::async_msg::Event;
use outbox::Outbox;
use radio_block::{RadioBlock, Radios};
use requests::Waiting;
use rx_chain::RxSource;
use rx_channel::RxEvent;
use rx_sender::{RxSender, SendResult, SendStep};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tx_fifo::TxFifo;

pub(crate) use fabric::{HostAddress, RemoteRoute};
pub use rx_watch::{RxBand, RxWatcher};
pub(crate) use transmit::queue_bytes_wanted;

/// The samples that fit the buffer of an endpoint of a block beside the radio.
const BLOCK_BUFFER_SAMPLES: u64 = 1 << 14;

/// The ticks that loopback channels process at once: samples transmitted in them are received
/// before the next ticks are processed.
const STRIDE_TICKS: u64 = 1 << 13;

/// The most ticks that loopback channels process in strides; of more, which have passed while this
/// process was stopped, those in the middle are skipped at once and counted.
const CATCH_UP_TICKS: u64 = 1 << 24;

/// The state of the radio.
pub(crate) struct EmulatedDevice {
    image: Image,
    keeper: DeviceClock,
    fabric: Fabric,
    /// Those of the channels, then those without one.
    endpoints: Box<[Endpoint]>,
    radio: Radios,
    /// By number of the block in the image; `None` for blocks of the channels.
    stream_blocks: Box<[Option<Box<dyn StreamBlock>>]>,
    /// A packet between two endpoints of the device.
    passing: Box<[Sc16]>,
    senders: Box<[RxSender]>,
    emissions: Box<[Emission]>,
    /// The channels have been advanced to this tick.
    ran_to: u64,
    /// The tick of the next requested call.
    wanted_tick: u64,
    outbox: Outbox,
    /// The control registers of the blocks, by number.
    controls: Box<[BlockControl]>,
    /// What waits before the control endpoint.
    waiting: VecDeque<Waiting>,
}

/// The parts of a device.
pub(crate) struct DeviceParts {
    pub image: Image,
    pub front_end: FrontEndKind,
    pub keeper: DeviceClock,
    /// The antenna of each channel.
    pub sources: Vec<AntennaSource>,
    /// What the channels hear in place of `sources`; none, or one for each channel.
    pub scenes: Vec<SceneReceiver>,
    /// The recorders of the samples that the first channels transmit.
    pub recorders: Vec<Box<dyn Recorder>>,
    pub rx_buffer_samples: u64,
    pub tx_buffer_samples: u64,
    /// The actual capacity of the receive queue of a port.
    pub queue: Capabilities,
    /// The transmit half of each link's port.
    pub links: Vec<Box<dyn PortTx>>,
    pub counters: Arc<Counters>,
}

impl EmulatedDevice {
    /// Returns a radio in the state after power-on.
    pub fn new(parts: DeviceParts) -> Self {
        let image = parts.image;
        let shares = image.receivers();
        let sizes =
            |samples, blocks| transmit::sizes(samples, &parts.queue, shares, image.width, blocks);
        let of_channels =
            sizes(parts.tx_buffer_samples, 1 + usize::from(image.has(BlockKind::Duc)));
        let of_blocks = sizes(parts.tx_buffer_samples.min(BLOCK_BUFFER_SAMPLES), 1);
        let duc = image.dsp_map(BlockKind::Duc);
        let emissions = emission::of(&parts.sources, parts.recorders, duc);
        let endpoint = |index: u16| {
            let index = usize::from(index);
            let heard = match emissions.get(index) {
                Some(emission) => !emission.is_unheard(),
                None => image.takes_data(index),
            };
            let (size, window) = if index < image.channels { of_channels } else { of_blocks };
            let fifo = TxFifo::new(size, heard);
            let index = index as u16;
            Endpoint::new(index, image.width, window, fifo)
        };
        let ddc = image.dsp_map(BlockKind::Ddc);
        let mut scenes = parts.scenes.into_iter();
        let sender = |source| {
            let scene = scenes.next();
            RxSender::new(RxSource::new(source, scene, parts.rx_buffer_samples, ddc))
        };
        Self {
            keeper: parts.keeper,
            fabric: Fabric::new(parts.links.len(), image.endpoints),
            endpoints: (0..image.endpoints).map(endpoint).collect(),
            stream_blocks: stream_blocks::of(&image),
            passing: vec![Sc16::default(); MAX_LEN / SC16_LEN].into(),
            radio: Radios::new(&image, parts.front_end, parts.rx_buffer_samples),
            senders: parts.sources.into_iter().map(sender).collect(),
            emissions,
            ran_to: 0,
            wanted_tick: u64::MAX,
            outbox: Outbox::new(parts.links, image.width, parts.counters),
            controls: vec![BlockControl::default(); image.blocks.len()].into(),
            waiting: VecDeque::new(),
            image,
        }
    }

    /// Executes a command of the management side.
    pub fn execute(&mut self, order: DeviceCommand) {
        match order {
            DeviceCommand::Time(keeper) => {
                self.keeper = keeper;
                for (sender, endpoint) in self.senders.iter_mut().zip(&*self.endpoints) {
                    if endpoint.out.is_on() {
                        sender.prepare(keeper.clock().rate_hz());
                    }
                }
            }
            DeviceCommand::FrontEnd(number, front_end) => {
                if let Some(block) = self.radio.blocks.get_mut(number) {
                    block.settings = front_end;
                }
            }
            DeviceCommand::DeviceId(id) => self.fabric.device_id = id,
            DeviceCommand::Route(route) => self.fabric.route(route),
            DeviceCommand::Speak(generation) => {
                self.image.generation = generation;
                self.radio.speak(generation);
            }
            DeviceCommand::PowerCycle(keeper) => {
                self.silence();
                self.keeper = keeper;
                self.fabric.reset();
                self.radio.reset();
                self.controls.fill(BlockControl::default());
                self.waiting.clear();
                self.stream_blocks.iter_mut().flatten().for_each(|block| block.reset());
                self.senders.iter_mut().for_each(|sender| sender.source().clear());
                self.reset_converters();
                self.endpoints.iter_mut().for_each(Endpoint::reset);
            }
        }
    }

    /// Advances the radio to `now_ns`: executes due commands, sends complete packets. Returns the
    /// instant of the next requested call.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        let now = self.keeper.clock().tick_at(now_ns);
        self.run_channels(now);
        (0..self.radio.blocks.len()).for_each(|block| self.run_radio_commands(block, now));
        self.accept_waiting(now);
        let due = self.radio.blocks.iter().filter_map(RadioBlock::waits_for);
        // A tick that is never reached, or only after the host sets the time, has no deadline.
        let due = due.filter_map(|due| self.keeper.tick_of(due, now)).min();
        let mut deadline_ns = due.map_or(u64::MAX, |tick| self.deadline_ns(tick));
        for endpoint in self.image.channels..self.endpoints.len() {
            let next = match self.send_blocks_packets(endpoint, now) {
                SendResult::Again => now,
                SendResult::AtTick(tick) => tick,
                SendResult::Idle => continue,
            };
            deadline_ns = deadline_ns.min(self.deadline_ns(next).max(now_ns));
        }
        for channel in 0..self.image.channels {
            let next = match self.send_samples(channel, now) {
                SendResult::Again => Some(now),
                SendResult::AtTick(tick) => Some(tick),
                SendResult::Idle => None,
            };
            let event = self.radio.channels[channel].rx.next_event(&self.keeper);
            let event = event.into_iter().chain(self.next_step(channel, now)).min();
            let transmit = self.next_transmit_event(channel);
            if let Some(tick) = [next, event, transmit].into_iter().flatten().min() {
                deadline_ns = deadline_ns.min(self.deadline_ns(tick).max(now_ns));
            }
        }
        self.wanted_tick = self.keeper.clock().tick_at(deadline_ns);
        deadline_ns
    }

    /// Counts the losses of the port, and the samples that the antennas could not deliver.
    pub fn note_losses(&mut self, queue_drops: u64) {
        let starved = self.senders.iter().map(RxSender::starved_samples).sum();
        let flushed = self.endpoints.iter().map(|endpoint| endpoint.fifo.flushed_samples()).sum();
        let waiting = self.endpoints.iter().map(|endpoint| endpoint.fifo.samples()).sum();
        let gaps = self.radio.channels.iter().map(|channel| channel.tx.gap_samples()).sum();
        let unwritten = self.emissions.iter().map(Emission::lost_samples).sum();
        let counters = self.counters();
        counters.tx_out_lost_samples.set(unwritten);
        counters.queue_drops.set(queue_drops);
        counters.rx_starved_samples.set(starved);
        counters.tx_flushed_samples.set(flushed);
        counters.tx_waiting_samples.set(waiting);
        counters.tx_gap_samples.set(gaps);
    }

    /// Counts datagrams that came during a power failure.
    pub fn note_unheard(&self, datagrams: usize) {
        self.counters().chdr_unheard.add(datagrams as u64);
    }

    /// Counts a failed poll of the port.
    pub fn note_deaf(&self) {
        self.counters().chdr_receive_errors.inc();
    }

    /// Clears all state, as after a power failure; `keeper` has the time after it.
    pub fn power_cycle(&mut self, keeper: DeviceClock) {
        self.counters().reboots.inc();
        self.execute(DeviceCommand::PowerCycle(keeper));
    }

    /// Returns the instant at which the device's time is `timestamp`; now if that has passed.
    pub fn instant_of(&self, timestamp: u64, now_ns: u64) -> u64 {
        let clock = self.keeper.clock();
        let tick = self.keeper.tick_of(timestamp, clock.tick_at(now_ns));
        tick.map_or(now_ns, |tick| clock.deadline_ns(tick))
    }

    /// Sends packets that faults delayed and that are due; returns the time until the next.
    pub fn release(&mut self) -> Option<Duration> {
        self.outbox.release()
    }

    /// Ends the device; all transmitted samples are in its files afterwards.
    pub fn close(&mut self, queue_drops: u64) {
        for recorder in self.emissions.iter_mut().filter_map(|one| one.recorder.as_mut()) {
            recorder.close();
        }
        self.note_losses(queue_drops);
    }

    fn counters(&self) -> &Counters {
        self.outbox.counters()
    }

    fn deadline_ns(&self, tick: u64) -> u64 {
        self.keeper.clock().deadline_ns(tick)
    }

    /// Advances all channels to tick `now`.
    fn run_channels(&mut self, now: u64) {
        if self.emissions.iter().any(|emission| emission.air.is_some()) {
            if now.saturating_sub(self.ran_to) > CATCH_UP_TICKS {
                self.stride_to(self.ran_to + CATCH_UP_TICKS / 2);
                let behind_gap = now - CATCH_UP_TICKS / 2;
                self.counters().loopback_skipped_samples.add(behind_gap - self.ran_to);
                self.run_to(behind_gap);
            }
            self.stride_to(now);
        } else {
            self.run_to(now);
        }
    }

    /// Advances loopback channels to tick `to`, a stride at a time.
    fn stride_to(&mut self, to: u64) {
        while self.ran_to + STRIDE_TICKS < to {
            self.run_to(self.ran_to + STRIDE_TICKS);
        }
        self.run_to(to);
    }

    /// Transmits the samples before tick `now`, then lets the receivers read them.
    fn run_to(&mut self, now: u64) {
        for channel in 0..self.image.channels {
            self.run_transmitter(channel, now);
            if let Some(air) = &mut self.emissions[channel].air {
                air.pass(now);
            }
        }
        for channel in 0..self.image.channels {
            self.run_receiver(channel, now);
            self.run_chain(channel, now);
        }
        self.ran_to = self.ran_to.max(now);
    }

    fn run_receiver(&mut self, channel: usize, now: u64) {
        let patience = self.radio.channels[channel].rx.buffer_ticks() / 2;
        while let Some(event) = self.radio.channels[channel].rx.advance(&self.keeper, now) {
            match event {
                RxEvent::Started { .. } => self.counters().rx_commands.inc(),
                RxEvent::Late { tick } => {
                    self.counters().rx_late_commands.inc();
                    self.report(channel, Event::RxLateCommand, tick);
                }
                RxEvent::Overrun { tick } => {
                    self.counters().rx_overruns.inc();
                    // A buffer that filled while this thread did not run: packets were due, and the
                    // host may have granted credit.
                    let own = tick.saturating_sub(self.wanted_tick) > patience;
                    self.counters().rx_overruns_own.add(u64::from(own));
                    self.report(channel, Event::RxOverrun, tick);
                }
            }
        }
        self.radio.channels[channel].rx.transmissions.forget_before(now);
    }

    fn send_samples(&mut self, channel: usize, now: u64) -> SendResult {
        if self.endpoints[channel].out.is_local() {
            return self.pass_samples(channel, now);
        }
        let band = self.band(channel);
        let endpoint = &mut self.endpoints[channel];
        let to = self.fabric.host(endpoint.out.dst_epid);
        self.senders[channel].send_due(SendStep {
            channel: &mut self.radio.channels[channel],
            out: &mut endpoint.out,
            keeper: &self.keeper,
            now,
            src_epid: endpoint.epid,
            to,
            width: self.image.width,
            outbox: &mut self.outbox,
            band,
        })
    }
}

#[cfg(test)]
mod converters_tests;
#[cfg(test)]
mod exchanges_tests;
#[cfg(test)]
mod loopback_tests;
#[cfg(test)]
mod protocol_tests;
#[cfg(test)]
mod stream_blocks_tests;
#[cfg(test)]
pub(crate) mod test_bench;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;
#[cfg(test)]
mod tx_tests;
