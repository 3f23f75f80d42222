//! Samples from a file or standard input, read ahead on a thread of its own, so that a slow disk
//! starves the radio only after the buffer is empty.

mod segments;

pub use segments::{PlaybackPlan, PlaybackSegment};

use anyhow::Context;
use millstream_blocks::sigmf::SigmfRecording;
use millstream_flow::blocks::SampleFormat;
use millstream_radio::Complex32;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// Samples of a piece.
const PIECE_SAMPLES: usize = 1 << 16;

/// Largest number of waiting pieces: 4 Mi samples, a quarter of a second at 16 MS/s.
const PIECES_WAITING: usize = 64;

/// Samples in the format of their file.
#[derive(Debug)]
pub enum Samples {
    /// As on the wire.
    Sc16(Vec<[i16; 2]>),
    /// Full scale 1.
    Cf32(Vec<Complex32>),
}

impl Samples {
    fn new(format: SampleFormat) -> Self {
        match format {
            SampleFormat::Sc16 => Self::Sc16(vec![[0; 2]; PIECE_SAMPLES]),
            _ => Self::Cf32(vec![Complex32::default(); PIECE_SAMPLES]),
        }
    }

    /// Their number.
    pub fn len(&self) -> usize {
        match self {
            Self::Sc16(samples) => samples.len(),
            Self::Cf32(samples) => samples.len(),
        }
    }

    /// Sets their number; returns their memory.
    fn resize(&mut self, count: usize) -> &mut [u8] {
        match self {
            Self::Sc16(samples) => {
                samples.resize(count, [0; 2]);
                bytemuck::cast_slice_mut(samples)
            }
            Self::Cf32(samples) => {
                samples.resize(count, Complex32::default());
                bytemuck::cast_slice_mut(samples)
            }
        }
    }
}

/// A piece of a burst.
#[derive(Debug)]
pub struct Piece {
    /// Its samples.
    pub samples: Samples,
    /// Its start in samples after the first sample of all; `None` directly after the piece before.
    pub offset_samples: Option<u64>,
    /// Whether the burst ends with it.
    pub ends_burst: bool,
}

/// The consumer's end of the reading thread.
pub struct Playback {
    pieces: Receiver<anyhow::Result<Piece>>,
    used: SyncSender<Samples>,
    /// Number of calls by the radio that found no samples.
    pub waits: u64,
}

impl Playback {
    /// Starts to read; ends with the plan, or when this is dropped.
    pub fn start(source: &SigmfRecording, score: PlaybackPlan) -> anyhow::Result<Self> {
        let file = File::open(&source.data)
            .with_context(|| format!("cannot read the file {}", source.data.display()))?;
        let source = source.clone();
        Self::begin(source.format, move |queues| Reader { file, source, queues }.run(score))
    }

    /// Starts to read standard input, as one burst to its end.
    pub fn piped(format: SampleFormat) -> anyhow::Result<Self> {
        Self::begin(format, |queues| queues.pipe(std::io::stdin().lock()))
    }

    fn begin(
        format: SampleFormat,
        read: impl FnOnce(Queues) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (send_piece, pieces) = sync_channel(PIECES_WAITING);
        let (used, recycled) = sync_channel(PIECES_WAITING + 2);
        let queues = Queues { format, recycled, send_piece };
        std::thread::Builder::new()
            .name("read-ahead".to_owned())
            .spawn(move || read(queues))
            .context("cannot start the reading thread")?;
        Ok(Self { pieces, used, waits: 0 })
    }

    /// Returns the next piece; `Wait` after `timeout` without one, and `End` at the end.
    pub fn next(&mut self, timeout: Duration) -> anyhow::Result<PlaybackStep> {
        let piece = match self.pieces.try_recv() {
            Ok(piece) => piece?,
            Err(TryRecvError::Disconnected) => return Ok(PlaybackStep::End),
            Err(TryRecvError::Empty) => {
                self.waits += 1;
                match self.pieces.recv_timeout(timeout) {
                    Ok(piece) => piece?,
                    Err(RecvTimeoutError::Timeout) => return Ok(PlaybackStep::Wait),
                    Err(RecvTimeoutError::Disconnected) => return Ok(PlaybackStep::End),
                }
            }
        };
        Ok(PlaybackStep::Piece(piece))
    }

    /// Returns the memory of a piece for reuse.
    pub fn recycle(&self, samples: Samples) {
        // The queue has room for all pieces in use.
        let _ = self.used.try_send(samples);
    }
}

/// The result of [`Playback::next`].
pub enum PlaybackStep {
    /// A piece.
    Piece(Piece),
    /// No piece yet.
    Wait,
    /// The end.
    End,
}

/// The reading thread's ends.
struct Queues {
    format: SampleFormat,
    recycled: Receiver<Samples>,
    send_piece: SyncSender<anyhow::Result<Piece>>,
}

impl Queues {
    fn memory(&self) -> Samples {
        self.recycled.try_recv().unwrap_or_else(|_| Samples::new(self.format))
    }

    /// Reads a pipe to its end, or until the consumer has gone. Each piece waits until the next
    /// read shows whether it is the last, which ends the burst.
    fn pipe(&self, mut input: impl Read) {
        let mut last: Option<Samples> = None;
        loop {
            let mut samples = self.memory();
            let read = match fill(&mut input, samples.resize(PIECE_SAMPLES)) {
                Ok(read) => read,
                Err(error) => {
                    let error = anyhow::anyhow!("cannot read standard input: {error}");
                    let _ = self.send_piece.send(Err(error));
                    return;
                }
            };
            let count = read / self.format.sample_bytes();
            let left_over = read % self.format.sample_bytes();
            if left_over > 0 {
                crate::output::note(format_args!(
                    "millstream: standard input ends within a sample; bytes left out: {left_over}"
                ));
            }
            let ends_burst = count == 0;
            if last.is_none() && ends_burst {
                let error = anyhow::anyhow!(
                    "standard input ended without a sample: connect it to a program that writes \
                     samples"
                );
                let _ = self.send_piece.send(Err(error));
                return;
            }
            if let Some(samples) = last.take() {
                let piece = Piece { samples, offset_samples: None, ends_burst };
                if self.send_piece.send(Ok(piece)).is_err() {
                    return;
                }
            }
            if ends_burst {
                return;
            }
            samples.resize(count);
            last = Some(samples);
        }
    }
}

/// Reads until `bytes` are full or the input ends; returns how many there are.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match input.read(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

struct Reader {
    file: File,
    source: SigmfRecording,
    queues: Queues,
}

impl Reader {
    /// Reads until the end, or until the consumer has gone.
    fn run(&mut self, score: PlaybackPlan) {
        for note in score {
            if let Err(error) = self.play(note) {
                if let Some(error) = error {
                    let _ = self.queues.send_piece.send(Err(error));
                }
                return;
            }
        }
    }

    /// Reads one segment; returns `Err(None)` when the consumer has gone.
    fn play(&mut self, note: PlaybackSegment) -> Result<(), Option<anyhow::Error>> {
        let bytes = self.source.format.sample_bytes() as u64;
        let tell = |error: std::io::Error, data: &std::path::Path| {
            Some(anyhow::anyhow!("cannot read {}: {error}", data.display()))
        };
        let from = SeekFrom::Start(note.first_sample * bytes);
        self.file.seek(from).map_err(|error| tell(error, &self.source.data))?;
        let mut left = note.samples;
        let mut offset_samples = note.offset_samples;
        while left > 0 {
            let count = left.min(PIECE_SAMPLES as u64);
            let mut samples = self.queues.memory();
            let read = self.file.read_exact(samples.resize(count as usize));
            read.map_err(|error| tell(error, &self.source.data))?;
            left -= count;
            let ends_burst = note.ends_burst && left == 0;
            let piece = Piece { samples, offset_samples: offset_samples.take(), ends_burst };
            self.queues.send_piece.send(Ok(piece)).map_err(|_| None)?;
        }
        Ok(())
    }
}
