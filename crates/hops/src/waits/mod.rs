//! The times in which threads were ready and did not run.

mod program;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use millstream_host::bpf::{Btf, Insn, MapKind, RecordRing, cpus, delete, update};
use millstream_host::mapping::Mapping;
use millstream_watch::ThreadWait;
use rustix::mm::ProtFlags;

use crate::probe::{ProbeError, attach, create_map, real_minus_monotonic_ns};
use program::{CpuRun, ThreadOffsets, Waiting, WaitsHead, WaitsTarget};

/// The room for records: 4000 waits.
const RECORDS_BYTES: u32 = 1 << 18;

/// The most threads that are watched.
const THREADS_MAX: usize = 4096;

/// The waits of watched threads for a CPU, from now on.
///
/// Every switch of every CPU runs a short program (0.3 µs on a virtual machine, by the kernel's
/// `bpf_stats_enabled`), a wake-up another (0.15 µs). Time that interrupts take is counted for the
/// thread that they interrupt. A thread's number is that of the kernel's first PID namespace.
#[derive(Debug)]
pub struct WaitWatch {
    shared: Mapping,
    records: RecordRing,
    threads: OwnedFd,
    watched: BTreeSet<u32>,
    _attached: [OwnedFd; 2],
}

impl WaitWatch {
    /// The shortest wait that matters to a stream: 200 µs.
    pub const THRESHOLD: Duration = Duration::from_micros(200);

    /// Puts programs at the tracepoints `sched:sched_wakeup` and `sched:sched_switch`; no thread is
    /// watched yet. Waits shorter than `threshold` are not told.
    ///
    /// # Errors
    /// As [`crate::DropWatch::open`].
    pub fn open(threshold: Duration) -> Result<Self, ProbeError> {
        // The first namespace of processes has this inode (`PROC_PID_INIT_INO` of the kernel).
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        if namespace.is_ok_and(|name| name.as_os_str() != "pid:[4026531836]") {
            return Err(ProbeError::Unfit(
                "what ran when a thread waited is not seen in a container with process numbers of \
                 its own: start it with --pid=host",
            ));
        }
        let types = Btf::of_kernel(Path::new("/"))?;
        let cpus = cpus();
        let bytes = size_of::<WaitsHead>() + cpus as usize * size_of::<CpuRun>();
        let shared = create_map("ms_runs", MapKind::Value { bytes: bytes as u32 }, bytes)?;
        let kind = MapKind::Records { bytes: RECORDS_BYTES };
        let records = create_map("ms_waits", kind, RECORDS_BYTES as usize)?;
        let (entries, value) = (THREADS_MAX as u32, size_of::<Waiting>() as u32);
        let kind = MapKind::Hash { entries, bytes: value };
        let threads = create_map("ms_threads", kind, THREADS_MAX * 256)?;
        let target = WaitsTarget {
            offsets: ThreadOffsets::new(&types)?,
            cpus,
            threshold_ns: i32::try_from(threshold.as_nanos()).unwrap_or(i32::MAX),
            threads: threads.as_raw_fd(),
            shared: shared.as_raw_fd(),
            records: records.as_raw_fd(),
        };
        let at = |name, code: Vec<Insn>| -> Result<_, ProbeError> {
            attach("ms_waits", types.tracepoint(name)?, &code)
        };
        Ok(Self {
            _attached: [
                at("sched_wakeup", program::wakeup(target))?,
                at("sched_switch", program::switch(target))?,
            ],
            shared: Mapping::new(shared.as_fd(), 0, bytes, ProtFlags::READ)?,
            records: RecordRing::new(records.as_fd(), RECORDS_BYTES)?,
            threads,
            watched: BTreeSet::new(),
        })
    }

    /// Watches these threads and no others: at most 4096.
    ///
    /// # Errors
    /// The error of bpf(2): `E2BIG` for too many.
    pub fn watch_threads(&mut self, tids: &[u32]) -> io::Result<()> {
        let wanted: BTreeSet<_> = tids.iter().copied().collect();
        for tid in self.watched.difference(&wanted) {
            delete(self.threads.as_fd(), *tid)?;
        }
        self.watched.retain(|tid| wanted.contains(tid));
        for tid in wanted {
            if !self.watched.contains(&tid) {
                // SAFETY: the map's values are `Waiting`, which has no padding.
                unsafe {
                    update(self.threads.as_fd(), tid, &Waiting { tid, ..Waiting::default() })?;
                };
                self.watched.insert(tid);
            }
        }
        Ok(())
    }

    /// Appends the waits that ended since the last call, in the order of their ends.
    pub fn read(&mut self, into: &mut Vec<ThreadWait>) {
        let offset = real_minus_monotonic_ns();
        self.records.read(|bytes| {
            let bytes: Option<&[u8; size_of::<Waiting>()]> = bytes.first_chunk();
            // SAFETY: all bit patterns are a valid record, and the bytes are as many.
            let wait = bytes.map(|bytes| unsafe { bytes.as_ptr().cast::<Waiting>().read() });
            into.extend(wait.map(|wait| describe(&wait, offset)));
        });
    }

    /// Returns the waits that were not recorded so far, because they were not read in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        let missed = self.shared.at::<u64>(offset_of!(WaitsHead, missed) as u64, 1);
        // SAFETY: within the mapping and aligned; the program may write at any time.
        unsafe { missed.read_volatile() }
    }
}

fn describe(wait: &Waiting, real_minus_monotonic_ns: i64) -> ThreadWait {
    let real = |ns: u64| ns.wrapping_add_signed(real_minus_monotonic_ns);
    ThreadWait {
        tid: wait.tid,
        from_ns: real(wait.ready_ns),
        until_ns: real(wait.until_ns),
        cpu: wait.cpu,
        instead: (wait.longest_tid > 0).then(|| (wait.longest_tid, longest_name(wait))),
    }
}

/// Returns the name of the thread that ran; one that still runs is asked for it.
fn longest_name(wait: &Waiting) -> String {
    let known = wait.longest_name.split(|byte| *byte == 0).next().unwrap_or_default();
    match known {
        [] => {
            let path = format!("/proc/{}/comm", wait.longest_tid);
            fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
        }
        name => String::from_utf8_lossy(name).into_owned(),
    }
}
