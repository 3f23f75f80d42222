//! Reads the samples of a recording to its end.

use super::power::Power;
use crate::live::{self, Live};
use anyhow::Context;
use millstream_dsp::chunks::Chunks;
use millstream_flow::SC16_SCALE;
use std::io::Read;
use std::time::{Duration, Instant};

/// Bytes read at once, a multiple of every sample's size.
const BLOCK: usize = 1 << 20;

/// The layout of samples in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawLayout {
    /// Floats of 32 bits; otherwise integers of 16, 32767 being 1.
    pub floats: bool,
    /// Values of one moment: I and Q, or one.
    pub values: usize,
}

impl RawLayout {
    /// Bytes of one moment.
    pub fn sample_bytes(self) -> usize {
        self.values * if self.floats { 4 } else { 2 }
    }

    fn count(self, bytes: &[u8], power: &mut Power) {
        let int = |low, high| f32::from(i16::from_le_bytes([low, high])) * SC16_SCALE;
        let float = |bytes: [u8; 4]| f32::from_le_bytes(bytes);
        match (self.floats, self.values) {
            (false, 1) => {
                power.add(bytes.in_chunks::<2>().0.iter().map(|&[a, b]| [int(a, b), 0.0]));
            }
            (false, _) => {
                let parts = bytes.in_chunks::<4>().0.iter();
                power.add(parts.map(|&[a, b, c, d]| [int(a, b), int(c, d)]));
            }
            (true, 1) => power.add(bytes.in_chunks::<4>().0.iter().map(|&one| [float(one), 0.0])),
            (true, _) => {
                let parts = bytes.in_chunks::<8>().0.iter();
                power.add(
                    parts.map(|&[a, b, c, d, e, f, g, h]| {
                        [float([a, b, c, d]), float([e, f, g, h])]
                    }),
                );
            }
        }
    }
}

/// Reads to the end, and sums up. `bytes` is the length, where it is known.
pub fn power(
    mut source: impl Read,
    layout: RawLayout,
    bytes: Option<u64>,
) -> anyhow::Result<Power> {
    let (mut power, mut block) = (Power::default(), Vec::with_capacity(BLOCK));
    let (mut live, begun, mut done) = (Live::seldom(), Instant::now(), 0_u64);
    loop {
        block.clear();
        source.by_ref().take(BLOCK as u64).read_to_end(&mut block).context("cannot read")?;
        layout.count(&block, &mut power);
        done += block.len() as u64;
        if block.len() < BLOCK {
            let rest = block.len() % layout.sample_bytes();
            anyhow::ensure!(
                rest == 0,
                "the last sample has {rest} of {} bytes: the data is not complete, or has another \
                 format",
                layout.sample_bytes()
            );
            return Ok(power);
        }
        let now = Instant::now();
        if now - begun > Duration::from_secs(1) {
            live.show(now, || {
                let left = bytes.map(|all| live::left(now - begun, done, all));
                let all = bytes.map(|all| format!(" of {}", all / 1_000_000));
                let (all, left) = (all.unwrap_or_default(), left.unwrap_or_default());
                format!("reading samples: {}{all} MB{left}", done / 1_000_000)
            });
        }
    }
}
