//! A radio whose transmissions are recorded, with a count of each played sample.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use millstream_emulator::{CounterSnapshot, RadioConfig, RunningRadio};
use millstream_radio::Device;
use tempfile::TempDir;

use super::{PATIENCE, patient, radio};

/// A radio that records the transmissions of its first channel.
pub struct Stage {
    pub radio: RunningRadio,
    pub device: Device,
    folder: TempDir,
    /// The samples of the file that belong to an earlier transmission.
    seen: u64,
}

/// The samples that the radio has played.
pub struct Played {
    /// The number of times that each sample was played.
    pub times: Vec<u32>,
    /// Zero samples that ended bursts.
    pub padding: u64,
}

impl Played {
    /// Returns the samples that were played at least once.
    pub fn once(&self) -> u64 {
        self.times.iter().filter(|&&times| times > 0).count() as u64
    }

    /// Returns the samples that were played again.
    pub fn again(&self) -> u64 {
        self.times.iter().map(|&times| u64::from(times.saturating_sub(1))).sum()
    }
}

/// Returns samples that contain their own number; none is zero.
pub fn numbered(count: usize) -> Vec<[i16; 2]> {
    (1..=count as u32).map(|n| [n as u16 as i16, (n >> 16) as u16 as i16]).collect()
}

impl Stage {
    /// Returns a radio at this rate with this transmit buffer per channel.
    pub fn new(rate_hz: f64, tx_buffer_samples: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the file");
        let tx_out: Vec<PathBuf> = vec![folder.path().join("out.sc16")];
        let (radio, args) = radio(RadioConfig { tx_out, tx_buffer_samples, ..patient() });
        let mut device = Device::open(args).expect("the device opens");
        device.set_rate(rate_hz).expect("the rate is taken");
        Self { radio, device, folder, seen: 0 }
    }

    /// Returns the transmission since the last call, of `count` numbered samples. Waits until the
    /// radio has played everything and the file is complete.
    pub fn played(&mut self, count: usize) -> Played {
        let until = Instant::now() + PATIENCE;
        let file = std::fs::File::open(self.folder.path().join("out.sc16.part")).expect("the file");
        let mut before = None;
        loop {
            let counters = self.radio.counters();
            let length = file.metadata().expect("the file is there").len() / 4;
            let now = (counters.chdr_datagrams, length);
            let whole = length == counters.tx_samples && waiting(&counters) == 0;
            if whole && before.replace(now) == Some(now) {
                break;
            }
            assert!(Instant::now() < until, "the file has {length} samples: {counters:?}");
            sleep(Duration::from_millis(2));
        }
        let samples = before.map_or(0, |before| before.1);
        let mut bytes = vec![0; (samples - self.seen) as usize * 4];
        file.read_exact_at(&mut bytes, self.seen * 4).expect("the file can be read");
        self.seen = samples;
        let mut played = Played { times: vec![0; count], padding: 0 };
        for sample in bytes.chunks_exact(4) {
            match u32::from_le_bytes(sample.try_into().unwrap()) {
                0 => played.padding += 1,
                number => played.times[number as usize - 1] += 1,
            }
        }
        played
    }
}

/// Returns the samples that wait in the radio's buffer.
pub fn waiting(counters: &CounterSnapshot) -> u64 {
    let gone = counters.tx_samples
        + counters.tx_late_samples
        + counters.tx_skipped_samples
        + counters.tx_flushed_samples
        + counters.tx_overflow_samples;
    (counters.tx_bytes / 4).saturating_sub(gone)
}
