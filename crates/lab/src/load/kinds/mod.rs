//! The work of workers, each until the progress says that it is over.

mod chatter;
pub mod flood;

use std::fs::File;
use std::hint::black_box;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use millstream_cpu::sched::{self, Class};
use millstream_dsp::noise::Noise;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::worker::LoadProgress;
use millstream_cpu::alarm::Beat;
use millstream_measure::load::LoadKind;

/// Bytes of the smallest page.
const PAGE: usize = 4096;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Begins, reports it, and works.
pub(super) fn run(
    kind: &LoadKind,
    tally: &LoadProgress,
    begun: &Sender<Result<(), String>>,
) -> Result<(), String> {
    let ready = || drop(begun.send(Ok(())));
    let did = |work: u64| tally.did(work);
    match kind {
        LoadKind::Timer { priority, interval_us } => {
            let mut beat = Beat::every_ns(interval_us * 1000);
            sched::set_current_thread(Class::Fifo(*priority)).map_err(|error| error.to_string())?;
            ready();
            while did(1) {
                beat.wait().map_err(|error| error.to_string())?;
            }
        }
        LoadKind::Cpu => {
            ready();
            let mut noise = Noise::new(1);
            while did(1) {
                (0..100_000).for_each(|_| {
                    black_box(noise.bits());
                });
            }
        }
        LoadKind::Memory { bytes } => {
            ready();
            while did(1) {
                touch(*bytes)
                    .map_err(|error| format!("cannot allocate {bytes} bytes of memory: {error}"))?;
            }
        }
        LoadKind::Thrash { bytes } => {
            let mut memory = vec![1u8; (*bytes).max(LINE)];
            let (mut noise, lines) = (Noise::new(2), (*bytes / LINE).max(1) as u64);
            ready();
            while did(1) {
                for _ in 0..100_000 {
                    memory[(noise.bits() % lines) as usize * LINE] ^= 1;
                }
                black_box(&memory);
            }
        }
        LoadKind::Io { bytes } => {
            let fail = |error: std::io::Error| format!("cannot write a temporary file: {error}");
            let mut file: File = tempfile::tempfile().map_err(fail)?;
            let block = vec![0x55u8; *bytes];
            ready();
            while did(1) {
                file.rewind().and_then(|()| file.write_all(&block)).map_err(fail)?;
                file.sync_data().map_err(fail)?;
            }
        }
        LoadKind::Flood { bytes } => flood::run(*bytes, ready, did)?,
        LoadKind::Chatter => chatter::run(ready, did)?,
        LoadKind::Program { command } => program(command, ready, did)?,
    }
    Ok(())
}

/// Maps memory, touches every page of it and unmaps it: an allocator would keep it, and no page
/// would be missing the next time.
fn touch(bytes: usize) -> std::io::Result<()> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at a place that the kernel chooses.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags)? };
    for offset in (0..bytes).step_by(PAGE) {
        // SAFETY: inside the mapping, which only this function knows.
        unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: the mapping made above, which has no user any more.
    unsafe { munmap(start, bytes)? };
    Ok(())
}

/// Another program, tied to this process.
fn program(command: &[String], ready: impl Fn(), did: impl Fn(u64) -> bool) -> Result<(), String> {
    let (name, arguments) = command.split_first().ok_or("a program without a name")?;
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    millstream_host::child::tie(&mut command, None);
    let child = command.spawn();
    let mut child = child.map_err(|error| format!("`{name}` cannot be started: {error}"))?;
    ready();
    // The amount of its work is unknown; its CPU time shows it.
    while did(1) {
        std::thread::sleep(std::time::Duration::from_millis(10));
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("`{name}` ended ({status})"));
        }
    }
    let _ = child.kill().and_then(|()| child.wait());
    Ok(())
}
