//! A source that runs in its own thread, ahead of the clock.

use super::{Antenna, Sc16};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, channel, sync_channel,
};
use std::thread::JoinHandle;
use std::time::Duration;

/// The samples that are handed over at once.
const CHUNK_SAMPLES: usize = 1 << 14;
/// The lead of the source, seconds.
const AHEAD_S: f64 = 0.25;
/// The largest lead, chunks (32 MiB): at the highest rates no generator is fast enough anyway.
const AHEAD_CHUNKS_MAX: usize = 512;
/// Jumps in time up to this length are received as a gap; after a longer one the source continues.
const GAP_MAX_S: f64 = 1.0;
/// The time limit for the first samples after a change of rate, as the source has just begun.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Writes the next samples of a signal; runs in the source's thread.
pub(super) type SignalGenerator = Box<dyn FnMut(&mut [Sc16]) + Send>;

/// Makes the generator for a rate in Hz; returns `None` for a rate at which the signal is not
/// possible.
pub(super) type MakeGenerator = Box<dyn FnMut(f64) -> Option<SignalGenerator> + Send>;

/// An antenna fed by a generator through a bounded queue.
///
/// The content follows the stream, not the timestamp: the generator cannot go back. A gap of up to
/// a second is skipped exactly, so an overrun loses the signal of that time.
pub(super) struct LiveAntenna {
    make: MakeGenerator,
    source: Option<Source>,
    rate_hz: f64,
    /// The timestamp of the source's next sample, once there was one.
    next_tick: Option<u64>,
    /// Samples of the source still to be discarded.
    skip: u64,
    starved: u64,
}

/// The running generator.
struct Source {
    full: Option<Receiver<Vec<Sc16>>>,
    empty: std::sync::mpsc::Sender<Vec<Sc16>>,
    thread: Option<JoinHandle<()>>,
    chunk: Vec<Sc16>,
    used: usize,
}

impl LiveAntenna {
    pub fn new(make: MakeGenerator) -> Self {
        Self { make, source: None, rate_hz: 0.0, next_tick: None, skip: 0, starved: 0 }
    }

    /// Discards the samples between the last one and `tick`.
    fn follow(&mut self, tick: u64) {
        let gap = self.next_tick.map_or(0, |next| tick.wrapping_sub(next));
        if gap as f64 <= GAP_MAX_S * self.rate_hz {
            self.skip += gap;
        } else {
            self.skip = 0;
        }
    }
}

impl Antenna for LiveAntenna {
    fn prepare(&mut self, rate_hz: f64) {
        self.rate_hz = rate_hz;
        self.next_tick = None;
        self.skip = 0;
        // The old thread ends before the new one starts: they may share a file.
        self.source = None;
        self.source = (self.make)(rate_hz).and_then(|generator| Source::start(generator, rate_hz));
    }

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        self.follow(tick);
        let first = self.next_tick.is_none();
        self.next_tick = Some(tick.wrapping_add(out.len() as u64));
        let got = match &mut self.source {
            Some(source) => {
                source.discard(&mut self.skip);
                if self.skip == 0 { source.read(out, first) } else { 0 }
            }
            None => 0,
        };
        out[got..].fill([0; 4]);
        self.starved += (out.len() - got) as u64;
    }

    fn starved_samples(&self) -> u64 {
        self.starved
    }
}

impl Source {
    /// Starts the thread; returns `None` when the system cannot start one.
    fn start(generator: SignalGenerator, rate_hz: f64) -> Option<Self> {
        let (full_tx, full) = sync_channel(chunks_ahead(rate_hz));
        let (empty, empty_rx) = channel();
        let thread = std::thread::Builder::new()
            .name("ms-antenna".to_owned())
            .spawn(move || generate(generator, &full_tx, &empty_rx))
            .ok()?;
        let (chunk, used) = (Vec::new(), 0);
        Some(Self { full: Some(full), empty, thread: Some(thread), chunk, used })
    }

    /// Copies samples into `out`; returns their number.
    fn read(&mut self, out: &mut [Sc16], wait: bool) -> usize {
        let mut got = 0;
        while got < out.len() && self.ensure_chunk(wait) {
            let count = (self.chunk.len() - self.used).min(out.len() - got);
            out[got..got + count].copy_from_slice(&self.chunk[self.used..self.used + count]);
            self.used += count;
            got += count;
        }
        got
    }

    /// Discards up to `count` available samples.
    fn discard(&mut self, count: &mut u64) {
        while *count > 0 && self.ensure_chunk(false) {
            let now =
                (self.chunk.len() - self.used).min(usize::try_from(*count).unwrap_or(usize::MAX));
            self.used += now;
            *count -= now as u64;
        }
    }

    /// Makes a chunk with unread samples current, if one is available.
    fn ensure_chunk(&mut self, wait: bool) -> bool {
        if self.used < self.chunk.len() {
            return true;
        }
        let Some(full) = &self.full else { return false };
        let next = match full.try_recv() {
            Err(TryRecvError::Empty) if wait => full.recv_timeout(FIRST_WAIT),
            other => other.map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok(next) = next else { return false };
        let old = std::mem::replace(&mut self.chunk, next);
        self.used = 0;
        // The generator may have ended; the buffer is then not needed.
        let _ = self.empty.send(old);
        true
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // The generator's next send fails, and it ends.
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn chunks_ahead(rate_hz: f64) -> usize {
    let chunks = (AHEAD_S * rate_hz / CHUNK_SAMPLES as f64).ceil() + 2.0;
    (chunks as usize).min(AHEAD_CHUNKS_MAX)
}

/// Runs the source's thread; ends when the receiver is dropped.
fn generate(
    mut generator: SignalGenerator,
    full: &SyncSender<Vec<Sc16>>,
    empty: &Receiver<Vec<Sc16>>,
) {
    loop {
        let mut chunk = empty.try_recv().unwrap_or_default();
        chunk.resize(CHUNK_SAMPLES, [0; 4]);
        generator(&mut chunk);
        if full.send(chunk).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a counter that begins at 0 with each change of rate; it rejects rates below 1 kHz.
    fn counting() -> LiveAntenna {
        LiveAntenna::new(Box::new(|rate_hz| {
            let mut count = 0u32;
            let generator: SignalGenerator = Box::new(move |out| {
                for sample in out {
                    *sample = count.to_le_bytes();
                    count += 1;
                }
            });
            (rate_hz >= 1e3).then_some(generator)
        }))
    }

    /// Fills until all samples came from the source.
    fn read(antenna: &mut LiveAntenna, tick: u64, count: usize) -> Vec<u32> {
        let mut out = vec![[0; 4]; count];
        antenna.fill(tick, &mut out);
        out.iter().map(|sample| u32::from_le_bytes(*sample)).collect()
    }

    #[test]
    fn the_signal_begins_with_the_stream_and_has_no_hole() {
        let mut antenna = counting();
        antenna.prepare(1e6);
        assert_eq!(read(&mut antenna, 5_000, 3), [0, 1, 2]);
        let mut seen = Vec::new();
        // More than the queue holds: wait for the thread where it is behind.
        while seen.len() < 1_000_000 {
            let before = antenna.starved;
            let tick = 5_003 + seen.len() as u64;
            let part = read(&mut antenna, tick, 1_000);
            if antenna.starved == before {
                seen.extend(part);
            } else {
                std::thread::yield_now();
                let got = 1_000 - (antenna.starved - before) as usize;
                seen.extend(&part[..got]);
                antenna.next_tick = Some(5_003 + seen.len() as u64);
            }
        }
        assert!(seen.iter().zip(3..).all(|(&seen, want)| seen == want));
    }

    #[test]
    fn the_queue_is_bounded_at_any_rate() {
        for (rate_hz, chunks) in [(1e3, 3), (6.25e6, 98), (500e6, 512), (f64::MAX, 512)] {
            assert_eq!(chunks_ahead(rate_hz), chunks, "{rate_hz}");
        }
    }

    #[test]
    fn a_short_gap_is_skipped_and_a_long_one_is_not() {
        let mut antenna = counting();
        antenna.prepare(1e6);
        assert_eq!(read(&mut antenna, 0, 2), [0, 1]);
        // Within the first chunk, so nothing depends on the thread's speed.
        assert_eq!(read(&mut antenna, 102, 2), [102, 103]);
        assert_eq!(read(&mut antenna, 2_000_000, 2), [104, 105]);
        assert_eq!(read(&mut antenna, 50, 2), [106, 107], "time was set back");
    }

    #[test]
    fn a_new_rate_starts_afresh_and_an_impossible_one_is_silence() {
        let mut antenna = counting();
        antenna.prepare(1e6);
        read(&mut antenna, 0, 10);
        antenna.prepare(10.0);
        assert_eq!(read(&mut antenna, 10, 2), [0, 0]);
        assert_eq!(antenna.starved_samples(), 2);
        antenna.prepare(2e6);
        assert_eq!(read(&mut antenna, 12, 3), [0, 1, 2]);
    }
}
