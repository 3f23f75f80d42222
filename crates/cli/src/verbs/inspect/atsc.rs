//! A recording of a television channel in one picture.

mod portrait;
mod reception;

use crate::force::ForceArgs;
use crate::live::during;
use crate::output::signed;
use crate::signal::SignalReport;
use anyhow::bail;
use millstream_atsc::monitor::{LockState, ReceiverStatus};
use millstream_blocks::sigmf::SigmfRecording;
use portrait::portrait;
pub use reception::ReceptionReport;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The rate of recordings without one.
pub const USUAL_RATE_HZ: f64 = 6.25e6;

/// Length of the short run that recognises a signal, seconds.
const GLANCE_S: f64 = 0.4;

/// The result of a reception.
pub struct ReceivedSignal {
    /// The text: whole lines.
    pub text: String,
    /// The figures.
    pub survey: ReceptionReport,
    /// The picture.
    pub picture: PathBuf,
    /// The reason why there was no reception.
    pub failure: Option<String>,
}

/// Whether the recording begins with an ATSC signal, and a line about it.
pub fn recognise(source: &SigmfRecording, rate_hz: f64) -> Option<String> {
    let samples = source.samples.min((GLANCE_S * rate_hz) as u64);
    let survey =
        ReceptionReport::of(&SigmfRecording { samples, ..source.clone() }, rate_hz).ok()?;
    (survey.status.state == LockState::Locked).then(|| {
        "signal       ATSC television (8-VSB): --atsc receives all of it and draws it\n".to_owned()
    })
}

/// Checks that a name has the extension of a picture. A device or a pipe need not have it.
pub fn check_picture(out: &Path) -> anyhow::Result<()> {
    let is_stream = out.metadata().is_ok_and(|data| !data.is_file());
    if is_stream || out.extension().is_some_and(|end| end.eq_ignore_ascii_case("png")) {
        return Ok(());
    }
    bail!(
        "--picture {}: only PNG pictures can be written: use a name that ends in .png",
        out.display()
    )
}

/// Receives, draws, and describes the picture.
pub fn receive(
    source: &SigmfRecording,
    name: &str,
    rate_hz: f64,
    (picture, force): (PathBuf, ForceArgs),
) -> anyhow::Result<ReceivedSignal> {
    force.check(&picture)?;
    let survey = during("receiving", None, || ReceptionReport::of(source, rate_hz))?;
    let shown = picture.display();
    let mut image = Vec::new();
    portrait(&survey, name).write_png(&mut image)?;
    force.write(&picture, image)?;
    let signal = SignalReport {
        receiver: "atsc".to_owned(),
        status: survey.status,
        events: survey.events.clone(),
        gaps: Vec::new(),
    };
    let mut text = words(&survey, rate_hz);
    let _ = writeln!(text, "picture      {shown}");
    Ok(ReceivedSignal { text, survey, picture, failure: signal.failure() })
}

fn words(survey: &ReceptionReport, rate_hz: f64) -> String {
    let ReceiverStatus { state, packets, uncorrected_packets, corrected_bytes, .. } = survey.status;
    let mut text = format!("signal       {:.2} s, {state}\n", survey.seconds);
    for event in &survey.events {
        let time_s = event.at_sample as f64 / rate_hz;
        let _ = writeln!(text, "             {time_s:8.3} s  {}", event.state);
    }
    let status = &survey.status;
    for (what, value, unit) in [
        ("MER", status.mer_db, "dB"),
        ("pilot", status.pilot_offset_hz, "Hz"),
        ("clock", status.clock_offset_ppm, "ppm"),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "{what:<12} {} {unit}", signed(value, 2));
        }
    }
    let _ = writeln!(
        text,
        "packets      {packets}, {uncorrected_packets} damaged, {corrected_bytes} bytes corrected"
    );
    for (delay_us, level_db) in strongest(&survey.echoes) {
        let _ = writeln!(text, "echo         {} µs {level_db:.1} dB", signed(delay_us, 2));
    }
    text
}

/// Peaks other than the signal itself: at most 15 dB below it, and not within the five symbols of
/// its own peak.
fn strongest(echoes: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const LEAST_DB: f64 = -15.0;
    const LEAST_US: f64 = 0.45;
    let mut peaks: Vec<(f64, f64)> = echoes
        .windows(3)
        .filter(|w| w[1].1 > w[0].1 && w[1].1 >= w[2].1)
        .map(|w| w[1])
        .filter(|(delay_us, level_db)| delay_us.abs() > LEAST_US && *level_db > LEAST_DB)
        .collect();
    peaks.sort_by(|a, b| b.1.total_cmp(&a.1));
    peaks.truncate(5);
    peaks
}
