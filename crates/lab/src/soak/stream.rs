//! The streams of a round: one direction, or both in one thread.

use super::books::Books;
use super::round::{RoundPlan, TX_BUFFER_SAMPLES};
use crate::Direction;
use millstream_radio::{
    Cause, Device, RadioError, RxArgs, RxError, RxEvent, RxMetadata, RxStreamer, TxArgs, TxError,
    TxEvent, TxMetadata, TxStreamer,
};
use std::time::{Duration, Instant};

/// The receive queue of a stream, bytes: a small window, so that its credit is renewed often.
const QUEUE_BYTES: usize = 256 << 10;
/// The same at a high rate.
const QUEUE_BYTES_FAST: usize = 2 << 20;
/// One wait.
const TURN: Duration = Duration::from_millis(20);
/// The same where both directions share a thread.
const TURN_BOTH: Duration = Duration::from_millis(1);
/// Packets of a call.
const BLOCK_PACKETS: usize = 8;
/// Time from the command to the start of several channels, seconds: a busy machine is in time, and
/// so is a command whose requests are lost and repeated.
const LEAD_S: f64 = 1.5;
/// Streams without progress for this long hang.
const HANG: Duration = Duration::from_secs(20);
/// Longest wait for the radio to transmit what it holds: twice the time of its buffer and more.
const THROUGH_MAX: Duration = Duration::from_secs(5);
/// The value of transmitted samples.
const LEVEL: [i16; 2] = [1000, -1000];

/// Why streams cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    #[error(transparent)]
    Rx(#[from] RxError),
    #[error(transparent)]
    Tx(#[from] TxError),
    #[error(transparent)]
    Radio(#[from] RadioError),
    #[error("the command that starts several channels came {LEAD_S} s after it was sent, too late")]
    LateStart,
}

/// The streams.
pub(super) struct Streams {
    rx: Option<Receiving>,
    tx: Option<Sending>,
    /// The newest samples from and to the radio, and when they came.
    progress: [(u64, Instant); 2],
    /// The longest time without any.
    longest: Duration,
}

impl Streams {
    /// Opens them and starts the reception.
    pub fn open(device: &Device, plan: &RoundPlan) -> Result<Self, StreamError> {
        let rx = plan.way.has(Direction::Rx);
        let rx = rx.then(|| Receiving::open(device, plan)).transpose()?;
        let tx = plan.way.has(Direction::Tx);
        let tx = tx.then(|| Sending::open(device, plan)).transpose()?;
        let (progress, longest) = ([(0, Instant::now()); 2], Duration::ZERO);
        Ok(Self { rx, tx, progress, longest })
    }

    /// Receives and sends once, and waits a little if there is nothing to do.
    pub fn step(&mut self) -> Result<(), StreamError> {
        let both = self.rx.is_some() && self.tx.is_some();
        if let Some(rx) = &mut self.rx {
            rx.step(if both { TURN_BOTH } else { TURN })?;
        }
        if let Some(tx) = &mut self.tx {
            tx.step(if both { Duration::ZERO } else { TURN })?;
        }
        let now = Instant::now();
        for (last, samples) in self.progress.iter_mut().zip([
            self.rx.as_ref().map(Receiving::delivered),
            self.tx.as_ref().map(Sending::transmitted),
        ]) {
            // A direction without a stream never hangs.
            self.longest = self.longest.max(samples.map_or(Duration::ZERO, |_| now - last.1));
            if samples != Some(last.0) {
                *last = (samples.unwrap_or(0), now);
            }
        }
        Ok(())
    }

    /// Forgets how long the streams went without progress so far.
    pub fn forget_pauses(&mut self) {
        self.progress.iter_mut().for_each(|(_, last)| *last = Instant::now());
        self.longest = Duration::ZERO;
    }

    /// The longest time without progress in a step, seconds.
    pub fn longest_s(&self) -> f64 {
        self.longest.as_secs_f64()
    }

    /// Samples of the first channel so far, of the direction that is behind.
    pub fn least(&self) -> u64 {
        let rx = self.rx.as_ref().map_or(u64::MAX, Receiving::delivered);
        rx.min(self.tx.as_ref().map_or(u64::MAX, Sending::transmitted))
    }

    /// Whether a direction has not moved for long.
    pub fn hangs(&self) -> bool {
        self.progress.iter().any(|(_, last)| last.elapsed() > HANG)
    }

    /// Ends them in order; false when that takes too long.
    pub fn end(&mut self) -> Result<bool, StreamError> {
        let until = Instant::now() + HANG;
        if let Some(tx) = &mut self.tx {
            while !tx.end()? {
                if Instant::now() > until {
                    return Ok(false);
                }
                if let Some(rx) = &mut self.rx {
                    rx.step(Duration::ZERO)?;
                }
            }
        }
        let through = Instant::now() + THROUGH_MAX;
        while self.tx.as_mut().is_some_and(|tx| !tx.is_through()) && Instant::now() < through {
            match &mut self.rx {
                Some(rx) => rx.step(TURN_BOTH)?,
                None => std::thread::sleep(TURN_BOTH),
            }
        }
        let Some(rx) = &mut self.rx else { return Ok(true) };
        rx.stop()?;
        while rx.is_running() {
            if Instant::now() > until {
                return Ok(false);
            }
            rx.step(TURN)?;
        }
        Ok(true)
    }

    /// Closes them; the books of both directions.
    pub fn close(self) -> (Option<Books>, Option<Books>) {
        let Self { rx, tx, .. } = self;
        (rx.map(Receiving::close), tx.map(Sending::close))
    }
}

struct Receiving {
    stream: RxStreamer,
    blocks: Vec<Vec<[i16; 2]>>,
    packet: u64,
    wrong: u64,
}

impl Receiving {
    fn open(device: &Device, plan: &RoundPlan) -> Result<Self, StreamError> {
        let queue_bytes = if plan.rate_hz > 1e6 { QUEUE_BYTES_FAST } else { QUEUE_BYTES };
        let args = |channel| {
            let args = RxArgs::new(channel).with_samples_per_packet(plan.packet_samples);
            args.with_recv_queue_bytes(queue_bytes)
        };
        let all: Vec<_> = (0..plan.channels).map(args).collect();
        let mut stream = device.rx_group(&all)?;
        let several = plan.channels > 1;
        let at = several.then(|| device.time_ticks()).transpose()?;
        stream.start_continuous(at.map(|now| now + lead_ticks(device)))?;
        let block = vec![[0; 2]; plan.packet_samples as usize * BLOCK_PACKETS];
        let packet = u64::from(plan.packet_samples);
        Ok(Self { stream, blocks: vec![block; plan.channels], packet, wrong: 0 })
    }

    fn delivered(&self) -> u64 {
        self.stream.members()[0].ledger().delivered
    }

    fn is_running(&self) -> bool {
        self.stream.is_running()
    }

    fn stop(&mut self) -> Result<(), RxError> {
        self.stream.stop()
    }

    fn step(&mut self, wait: Duration) -> Result<(), StreamError> {
        let RxMetadata { samples, time_ticks, event, .. } = match &mut self.blocks[..] {
            [only] => self.stream.recv(only, wait)?,
            [first, second] => self.stream.recv_all(&mut [first, second], wait)?,
            _ => return Ok(()),
        };
        if event == RxEvent::LateCommand && self.delivered() == 0 {
            return Err(StreamError::LateStart);
        }
        let (Some(ticks), RxEvent::None) = (time_ticks, event) else { return Ok(()) };
        for block in &self.blocks {
            let wrong = block[..samples].iter().zip(ticks as u32..);
            self.wrong += wrong.filter(|(sample, tick)| ramp(**sample) != *tick).count() as u64;
        }
        Ok(())
    }

    fn close(mut self) -> Books {
        // The device may have received a start that it could not acknowledge: its samples belong
        // to no stream.
        let stray = self.stream.counters().stray;
        let (wrong_samples, packet) = (self.wrong, self.packet);
        self.stream.end();
        let sum = self.stream.ledger();
        let mut lost = sum.lost_by_name();
        let alignment = lost.remove(Cause::Alignment.name()).unwrap_or(0);
        let unsent = [Cause::DeviceOverrun, Cause::LateCommand, Cause::ClockJump];
        let unsent: u64 = unsent.into_iter().map(|cause| sum.lost(cause)).sum();
        let sent = sum.expected - unsent;
        let stray = stray * packet + sum.after_end;
        // A channel that stops only because another one overran sends nothing meanwhile.
        let restarts = sum.lost(Cause::DeviceOverrun) > 0;
        let unsure = sum.lost(Cause::Unknown) + if restarts { alignment } else { 0 };
        Books {
            expected: sum.expected,
            delivered: sum.delivered,
            lost,
            alignment,
            balances: self.stream.ledgers().all(|ledger| ledger.balance().is_ok()),
            radio_samples: (sent - unsure, sent + stray),
            wrong_samples,
            ..Books::default()
        }
    }
}

/// The time in a sample of the antenna `ramp`, its low 32 bits.
fn ramp([low, high]: [i16; 2]) -> u32 {
    u32::from(high as u16) << 16 | u32::from(low as u16)
}

fn lead_ticks(device: &Device) -> u64 {
    (device.tick_rate_hz() * LEAD_S) as u64
}

struct Sending {
    stream: TxStreamer,
    block: Vec<[i16; 2]>,
    /// Samples of the block that are still to be sent: whole packets are, so that a lost packet is
    /// a known number of samples.
    left: usize,
    /// The start of several channels.
    at: Option<u64>,
    lead_ticks: u64,
    /// The burst came late, and stays so until it ends.
    is_late: bool,
    /// Ends of bursts that the radio has transmitted since the last end, of all channels.
    acknowledged: usize,
    /// The last call, and the longest time between two.
    last: Instant,
    away: Duration,
}

impl Sending {
    fn open(device: &Device, plan: &RoundPlan) -> Result<Self, StreamError> {
        let all: Vec<_> = (0..plan.channels)
            .map(|channel| TxArgs::new(channel).with_samples_per_packet(plan.packet_samples))
            .collect();
        let stream = device.tx_group(&all)?;
        let at = (plan.channels > 1).then(|| device.time_ticks()).transpose()?;
        Ok(Self {
            stream,
            block: vec![LEVEL; plan.packet_samples as usize * BLOCK_PACKETS],
            left: 0,
            at: at.map(|now| now + lead_ticks(device)),
            lead_ticks: lead_ticks(device),
            is_late: false,
            acknowledged: 0,
            last: Instant::now(),
            away: Duration::ZERO,
        })
    }

    fn transmitted(&self) -> u64 {
        self.stream.members()[0].ledger().transmitted
    }

    fn step(&mut self, wait: Duration) -> Result<(), StreamError> {
        let now = Instant::now();
        self.away = self.away.max(now - self.last);
        self.last = now;
        if self.is_late {
            return self.begin_again();
        }
        if self.left == 0 {
            self.left = self.block.len();
        }
        Ok(self.send_rest(wait)?)
    }

    /// Ends the burst, and lets the next one start at a time that is to come.
    fn begin_again(&mut self) -> Result<(), StreamError> {
        if self.end()? {
            let several = self.stream.members().len() > 1;
            let now = self.stream.time_ticks()?;
            (self.is_late, self.at) = (false, several.then_some(now + self.lead_ticks));
        }
        Ok(())
    }

    fn send_rest(&mut self, wait: Duration) -> Result<(), TxError> {
        let meta = self.at.take().map_or(TxMetadata::now(), TxMetadata::at);
        let rest = &self.block[self.block.len() - self.left..];
        let sent = self.stream.send(rest, meta, wait)?;
        if sent.samples == 0 {
            // The start was not used.
            self.at = meta.time_ticks;
        }
        self.left -= sent.samples;
        self.listen()
    }

    /// Ends the burst behind a whole packet; false if it has to be called again.
    fn end(&mut self) -> Result<bool, TxError> {
        if self.left > 0 {
            self.send_rest(TURN)?;
            return Ok(false);
        }
        // Those of earlier bursts are in by now.
        self.acknowledged = 0;
        self.stream.end_burst(TURN)?;
        Ok(!self.stream.is_in_burst())
    }

    /// Whether the radio has transmitted the end on every channel.
    fn is_through(&mut self) -> bool {
        self.listen().is_err() || self.acknowledged >= self.stream.members().len()
    }

    fn listen(&mut self) -> Result<(), TxError> {
        while let Some((_, event)) = self.stream.poll_event()? {
            self.is_late |= matches!(event, TxEvent::Late { .. });
            self.acknowledged += usize::from(matches!(event, TxEvent::BurstAck { .. }));
        }
        Ok(())
    }

    fn close(mut self) -> Books {
        let padding = self.stream.counters().padding;
        let rate_hz = self.stream.rate_hz();
        // The end of an open burst takes a sample more on each channel.
        let is_open = self.stream.is_in_burst();
        let open = if is_open { self.stream.members().len() as u64 } else { 0 };
        self.stream.end(None);
        let sum = self.stream.ledger();
        let mut lost = sum.lost_by_name();
        let (unknown, repeated) = (sum.unknown, sum.repeated);
        if unknown.samples > 0 {
            lost.insert("unknown", unknown.samples);
        }
        let least = sum.transmitted + padding + repeated.min;
        let surely = unknown.samples - unknown.lost_max;
        let most = least + open + unknown.samples - unknown.lost_min;
        Books {
            expected: sum.accepted,
            delivered: sum.transmitted,
            lost,
            balances: self.stream.ledgers().all(|ledger| ledger.balance().is_ok()),
            radio_samples: (least + surely, most.saturating_add(repeated.max - repeated.min)),
            away_s: self.away.as_secs_f64(),
            ahead_s: TX_BUFFER_SAMPLES as f64 / rate_hz,
            ..Books::default()
        }
    }
}
