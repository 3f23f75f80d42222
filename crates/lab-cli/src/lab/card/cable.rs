//! Pulls the cable through QEMU's monitor.

use super::rig::CardSetup;
use super::{CardResult, stream};
use anyhow::Context;
use rustix::termios::{OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

/// Pulls it in the middle of a stream, which ends with the reason and keeps the samples before. The
/// later steps show that the card still works.
pub fn pull(rig: &CardSetup) -> CardResult {
    let Some((line, name)) = &rig.cable else {
        return Ok(vec!["not tried: --cable was not given".to_owned()]);
    };
    let mut monitor = open(line).with_context(|| line.display().to_string())?;
    let _radio = rig.radio(&[])?;
    let file = stream::recording();
    let process = stream::start(rig, "huge=off", 8.0, &file)?;
    stream::watched(&process, &file)?;
    for state in ["off", "on"] {
        write!(monitor, "\nset_link {name} {state}\n")?;
        std::thread::sleep(Duration::from_secs(1));
    }
    process.end()?.refused(&["Network is down", "contains the data up to that point"])
}

/// The serial line as bytes, without an echo.
fn open(line: &std::path::Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(line)?;
    let mut settings = tcgetattr(&file)?;
    settings.make_raw();
    tcsetattr(&file, OptionalActions::Now, &settings)?;
    tcflush(&file, QueueSelector::IOFlush)?;
    Ok(file)
}
