//! `millstream-lab lab adc`: the imitated converter of `latency irq`; for internal use.

use crate::output::Report;
use crate::program;
use crate::results::ResultShape;
use anyhow::Context;
use millstream_cpu::sched::{Class, set_current_thread};
use millstream_lab::irq::{board::SharedBoard, device};
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::Command;

/// Hardware is never late; so its process has a higher priority than ordinary ones.
const PRIORITY: u8 = 50;

/// Serves shared memory and an interrupt line that it inherited.
#[derive(clap::Args)]
pub struct Args {
    /// Descriptor of the shared memory.
    memory: RawFd,
    /// Descriptor of the interrupt line.
    line: RawFd,
}

/// This program as the converter, for the two descriptors.
pub fn command([memory, line]: [RawFd; 2]) -> std::io::Result<Command> {
    program::command(["lab", "adc", &memory.to_string(), &line.to_string()])
}

/// It prints no document.
pub fn results() -> Vec<ResultShape> {
    Vec::new()
}

/// Ends at the host's request, or with it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    for descriptor in [args.memory, args.line] {
        // SAFETY: asks for flags; a number that is not open gives an error.
        let open = unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
        anyhow::ensure!(open && descriptor > 2, "`lab adc` is internal: `latency irq` starts it");
    }
    // SAFETY: both are open, inherited for this process, and have no other owner here.
    let [memory, line] = [args.memory, args.line].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let board =
        SharedBoard::map(&memory).context("`lab adc` is internal: `latency irq` starts it")?;
    // Without the right, its edges are punctual only on an idle CPU.
    let _ = set_current_thread(Class::Fifo(PRIORITY));
    device::serve(&board, &mut File::from(line))?;
    Ok(Report::none())
}
