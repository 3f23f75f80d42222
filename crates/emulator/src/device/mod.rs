//! The radio behind the CHDR port: every packet that arrives, and the passing of time.
//!
//! ```text
//!             ┌ Fabric ────────────────┐   ┌ Endpoint 0 ┐   ┌ RadioBlock ──────┐
//!  datagram ─▶│ transport ▶ crossbar ▶ │──▶│ Out/InStream│──▶│ registers        │
//!             │ (management packets)   │   │ TxFifo      │   │ RxChannel 0, 1   │
//!             └────────────────────────┘   ├ Endpoint 1 ┤   │ TxChannel 0, 1   │
//!                                          └─────────────┘   └──────────────────┘
//!  advance(now) ─▶ TxFifo ─▶ TxChannel ─▶ (credit, events) ─▶ Outbox
//!               ─▶ CommandFifo ─▶ RxChannel ─▶ RxSender (antenna, batches) ─▶ Outbox
//! ```
//!
//! Nothing here reads a clock or waits: time is an argument, so tests run on a simulated clock.

mod client_zero;
mod control;
mod converters;
mod emission;
mod endpoint;
mod fabric;
mod hooks;
mod in_stream;
mod out_stream;
mod outbox;
mod packets;
mod radio_block;
mod reports;
mod rx_chain;
mod rx_channel;
mod rx_sender;
mod rx_source;
mod transmit;
mod transmitted;
mod tx_channel;
mod tx_fifo;

use crate::antenna::AntennaSource;
use crate::config::CHANNELS;
use crate::converter::Duc;
use crate::counters::Counters;
use crate::front_end::FrontEnd;
use crate::mailbox::DeviceCommand;
use crate::personality::{BlockKind, Personality};
use crate::scene::SceneReceiver;
use crate::time::DeviceClock;
use crate::tx_out::Recorder;
use control::CommandFifo;
use emission::Emission;
use endpoint::Endpoint;
use fabric::Fabric;
use millstream_link::port::{Capabilities, PortTx};
use millstream_wire::regs::radio::async_msg::Event;
use outbox::Outbox;
use radio_block::RadioBlock;
use rx_channel::RxEvent;
use rx_sender::{RxSender, SendResult, SendStep};
use rx_source::RxSource;
use std::sync::Arc;
use transmitted::TransmittedSamples;
use tx_fifo::TxFifo;

pub(crate) use transmit::queue_bytes_wanted;

/// The ticks that loopback channels process at once: samples transmitted in them are received
/// before the next ticks are processed.
const STRIDE_TICKS: u64 = 1 << 13;

/// The most ticks that loopback channels process in strides; of more, which have passed while this
/// process was stopped, those in the middle are skipped at once and counted.
const CATCH_UP_TICKS: u64 = 1 << 24;

/// The state of the radio.
pub(crate) struct EmulatedDevice {
    personality: &'static Personality,
    keeper: DeviceClock,
    front_end: FrontEnd,
    fabric: Fabric,
    /// Those of the channels, then those without one.
    endpoints: Box<[Endpoint]>,
    radio: RadioBlock,
    radio_commands: CommandFifo,
    senders: [RxSender; CHANNELS],
    emissions: [Emission; CHANNELS],
    /// The channels have been advanced to this tick.
    ran_to: u64,
    /// The tick of the next requested call.
    wanted_tick: u64,
    outbox: Outbox,
    /// Sequence numbers of control packets to the host: of the packets, and of the messages.
    control_seq: u16,
    message_seq: u8,
}

/// The parts of a device.
pub(crate) struct DeviceParts {
    pub personality: &'static Personality,
    pub keeper: DeviceClock,
    pub sources: [AntennaSource; CHANNELS],
    /// What the channels hear in place of `sources`.
    pub scenes: Option<[SceneReceiver; CHANNELS]>,
    /// The recorders of transmitted samples.
    pub recorders: [Option<Recorder>; CHANNELS],
    pub rx_buffer_samples: u64,
    pub tx_buffer_samples: u64,
    /// The actual capacity of the port's receive queue.
    pub queue: Capabilities,
    pub tx: Box<dyn PortTx>,
    pub counters: Arc<Counters>,
}

impl EmulatedDevice {
    /// Returns a radio in the state after power-on.
    pub fn new(parts: DeviceParts) -> Self {
        let (size, window) = transmit::sizes(parts.tx_buffer_samples, &parts.queue);
        let personality = parts.personality;
        let duc = || personality.has(BlockKind::Duc).then(|| Box::new(Duc::new()));
        let emissions = emissions(&parts.sources, parts.recorders.map(|one| (one, duc())));
        let endpoint = |index: u16| {
            let emission = emissions.get(usize::from(index));
            let fifo = TxFifo::new(size, emission.is_some_and(|one| !one.is_unheard()));
            Endpoint::new(index, window, fifo)
        };
        let ddc = personality.has(BlockKind::Ddc);
        let mut scenes = parts.scenes.map(<[_; _]>::into_iter);
        let sender = |source| {
            let scene = scenes.as_mut().and_then(Iterator::next);
            RxSender::new(RxSource::new(source, scene, parts.rx_buffer_samples, ddc))
        };
        Self {
            personality,
            keeper: parts.keeper,
            front_end: FrontEnd::new(true),
            fabric: Fabric::new(personality.endpoints),
            endpoints: (0..personality.endpoints).map(endpoint).collect(),
            radio: RadioBlock::new(parts.rx_buffer_samples),
            radio_commands: CommandFifo::default(),
            senders: parts.sources.map(sender),
            emissions,
            ran_to: 0,
            wanted_tick: u64::MAX,
            outbox: Outbox::new(parts.tx, parts.counters),
            control_seq: 0,
            message_seq: 0,
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
            DeviceCommand::FrontEnd(front_end) => self.front_end = front_end,
            DeviceCommand::DeviceId(id) => self.fabric.device_id = id,
            DeviceCommand::PowerCycle(keeper) => {
                self.silence();
                self.execute(DeviceCommand::Reset(keeper));
            }
            DeviceCommand::Reset(keeper) => {
                self.keeper = keeper;
                self.fabric.reset();
                self.radio.reset();
                self.front_end.reset();
                self.senders.iter_mut().for_each(|sender| sender.source().clear());
                self.reset_converters();
                self.radio_commands.clear();
                self.endpoints.iter_mut().for_each(Endpoint::reset);
            }
        }
    }

    /// Advances the radio to `now_ns`: executes due commands, sends complete packets. Returns the
    /// instant of the next requested call.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        let now = self.keeper.clock().tick_at(now_ns);
        self.run_channels(now);
        self.run_radio_commands(now);
        let due = self.radio_commands.waits_for();
        // A tick that is never reached, or only after the host sets the time, has no deadline.
        let due = due.and_then(|due| self.keeper.tick_of(due, now));
        let mut deadline_ns = due.map_or(u64::MAX, |tick| self.deadline_ns(tick));
        for channel in 0..CHANNELS {
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
        for channel in 0..CHANNELS {
            self.run_transmitter(channel, now);
            if let Some(air) = &mut self.emissions[channel].air {
                air.pass(now);
            }
        }
        for channel in 0..CHANNELS {
            self.run_receiver(channel, now);
            let rx = &mut self.radio.channels[channel].rx;
            match self.senders[channel].source() {
                RxSource::Signal(_) => {}
                RxSource::Loopback(from, buffer) => {
                    if let Some(air) = &mut self.emissions[*from].air {
                        rx.read_antenna(now, u64::MAX, |stretch| {
                            buffer.record(air, stretch.ticks);
                        });
                    }
                }
                RxSource::Chain(_) => self.run_chain(channel, now),
            }
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
    }

    fn send_samples(&mut self, channel: usize, now: u64) -> SendResult {
        let endpoint = &mut self.endpoints[channel];
        let to = self.fabric.host(endpoint.out.dst_epid);
        self.senders[channel].send_due(SendStep {
            channel: &mut self.radio.channels[channel],
            out: &mut endpoint.out,
            keeper: &self.keeper,
            now,
            src_epid: endpoint.epid,
            to,
            outbox: &mut self.outbox,
        })
    }
}

/// Returns the ways of the transmitted samples, with memory for the longest cable.
fn emissions(
    sources: &[AntennaSource; CHANNELS],
    parts: [(Option<Recorder>, Option<Box<Duc>>); CHANNELS],
) -> [Emission; CHANNELS] {
    let mut emissions = parts.map(|(recorder, duc)| Emission { duc, air: None, recorder });
    let cables = sources.iter().filter_map(|source| match source {
        AntennaSource::Loopback(cable) => Some(*cable),
        AntennaSource::Signal(_) => None,
    });
    let longest = cables.clone().map(|cable| cable.delay_samples).max().unwrap_or(0);
    for cable in cables {
        let memory = longest + 2 * STRIDE_TICKS;
        emissions[cable.channel].air = Some(TransmittedSamples::new(memory as usize));
    }
    emissions
}

#[cfg(test)]
mod converters_tests;
#[cfg(test)]
mod loopback_tests;
#[cfg(test)]
pub(crate) mod test_bench;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;
#[cfg(test)]
mod tx_tests;
