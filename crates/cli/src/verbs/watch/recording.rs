//! `--record`: what was seen, in a file.

use crate::force::ForceArgs;
use crate::numbers::seconds;
use anyhow::{Context, Result};
use millstream_hops::{HopNote, HopRecorder, RecordedPart, within};
use millstream_host::netlink::Netlink;
use millstream_link::packet::PassingFrame;
use millstream_output::OutputFile;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a recording.
#[derive(clap::Args)]
pub struct RecordArgs {
    /// Write headers and readings to this file when the command ends; `millstream inspect` makes
    /// the same account of it, and Wireshark shows it.
    #[arg(long, value_name = "FILE.pcapng")]
    record: Option<PathBuf>,

    /// How much of the end is recorded: at most 256 MiB, in memory; or all, which is written at
    /// once.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = kept)]
    #[arg(requires = "record")]
    record_last: Kept,

    #[command(flatten)]
    force: ForceArgs,
}

/// How much is kept.
#[derive(Clone, Copy)]
enum Kept {
    All,
    Last(Duration),
}

fn kept(text: &str) -> Result<Kept, String> {
    if text == "all" {
        return Ok(Kept::All);
    }
    let length = seconds(text).map_err(|error| format!("{error}, or all"))?;
    Ok(Kept::Last(Duration::from_secs_f64(length)))
}

crate::results! {
    /// What was recorded.
    pub struct WatchRecording {
        /// Its file.
        file: String,
        /// Its bytes.
        bytes: u64,
        /// From its first to its last packet or reading.
        seconds: f64,
        /// Whether the memory was too small for all that --record-last wants.
        is_short: bool,
    }
}

/// A recording that has begun.
pub struct HopRecording {
    path: PathBuf,
    recorder: HopRecorder<OutputFile>,
    /// Knows the names of interfaces.
    netlink: Netlink,
}

impl RecordArgs {
    /// Begins a recording, if one is wanted, of what passes in the network namespace of a process.
    pub fn begin(&self, pid: Option<u32>) -> Result<Option<HopRecording>> {
        let Some(path) = &self.record else { return Ok(None) };
        let keep = match self.record_last {
            Kept::All => None,
            Kept::Last(length) => Some(length),
        };
        let recorder = HopRecorder::new(self.force.create(path)?, keep);
        let netlink = within(pid, Netlink::open)??;
        Ok(Some(HopRecording { path: path.clone(), recorder, netlink }))
    }
}

impl HopRecording {
    /// Records the beginning of a frame.
    pub fn frame(&mut self, frame: &PassingFrame<'_>) -> Result<()> {
        let Self { path, recorder, netlink } = self;
        let name = || {
            let all = netlink.interfaces().unwrap_or_default();
            let found = all.into_iter().find(|interface| interface.index == frame.interface);
            found.map_or_else(|| format!("interface {}", frame.interface), |found| found.name)
        };
        recorder.frame(frame, name).with_context(|| path.display().to_string())
    }

    /// Records what the hops said.
    pub fn note(&mut self, note: &HopNote) -> Result<()> {
        self.recorder.note(note).with_context(|| self.path.display().to_string())
    }

    /// Writes what is kept; `missed` packets were not captured.
    pub fn end(self, at_ns: u64, missed: u64) -> Result<WatchRecording> {
        let Self { path, recorder, .. } = self;
        let file = path.display().to_string();
        let (written, part) = recorder.finish(at_ns, missed).with_context(|| file.clone())?;
        written.complete()?;
        let RecordedPart { bytes, length_ns, is_short } = part;
        Ok(WatchRecording { file, bytes, seconds: length_ns as f64 / 1e9, is_short })
    }
}

impl WatchRecording {
    /// A line of text.
    pub fn line(&self) -> String {
        let Self { file, bytes, seconds, is_short } = self;
        let short = match is_short {
            true => "; the memory was too small for all that --record-last wants",
            false => "",
        };
        format!("recorded     {file}: the last {seconds:.1} s, {bytes} bytes{short}\n")
    }
}
