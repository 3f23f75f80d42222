//! Counters of the processor and the kernel for a thread (perf_event_open(2)).

mod refusal;

pub use refusal::CounterRefusal;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// What is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CountedEvent {
    /// Reads that missed the first data cache, by the thread's own code.
    L1dMisses,
    /// Accesses that missed the last cache, by the thread's own code.
    LastLevelMisses,
    /// Page faults of the thread's own code. The kernel counts them, so any machine can.
    PageFaults,
    /// A trace event of the kernel, by its number in tracefs.
    Trace(u64),
}

impl CountedEvent {
    /// Type and configuration, as perf_event_open(2) numbers them.
    const fn numbers(self) -> (u32, u64) {
        const SOFTWARE: u32 = 1;
        const TRACEPOINT: u32 = 2;
        const CACHE: u32 = 3;
        match self {
            // The cache L1D (0), its operation `read` (0), the result `miss` (1).
            Self::L1dMisses => (CACHE, 1 << 16),
            // The same of the last cache (2). The generic event of cache misses counts another
            // cache on some processors.
            Self::LastLevelMisses => (CACHE, 1 << 16 | 2),
            Self::PageFaults => (SOFTWARE, 2),
            Self::Trace(number) => (TRACEPOINT, number),
        }
    }

    /// Whether the processor counts it, not the kernel.
    #[must_use]
    pub const fn is_hardware(self) -> bool {
        matches!(self, Self::L1dMisses | Self::LastLevelMisses)
    }

    /// Trace events are in the kernel. Everything else is counted outside of it, which the kernel
    /// allows more users.
    const fn flags(self) -> u64 {
        /// Threads that the thread starts later count, too.
        const INHERIT: u64 = 1 << 1;
        const EXCLUDE_KERNEL: u64 = 1 << 5;
        const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
        match self {
            Self::Trace(_) => INHERIT,
            _ => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        }
    }
}

/// An open counter. To read it costs a system call of the reader, and nothing in the thread.
#[derive(Debug)]
pub struct ThreadCounter {
    file: File,
}

/// `perf_event_attr` in its first published size (perf_event_open(2), `PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// The times for which the counter was wanted and for which it counted follow the count.
const FORMAT_TIMES: u64 = 1 | 2;

impl ThreadCounter {
    /// Opens a counter of the thread `tid`; 0 is the calling thread. It begins at once.
    ///
    /// # Errors
    /// The system's; [`CounterRefusal`] puts it into words.
    pub fn open(event: CountedEvent, tid: u32) -> io::Result<Self> {
        let (kind, config) = event.numbers();
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            read_format: FORMAT_TIMES,
            flags: event.flags(),
            ..Attributes::default()
        };
        let tid = libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the attributes live through the call and their size is in them; the kernel reads
        // no more than that.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                tid,
                -1 as libc::c_int,
                -1 as libc::c_int,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that the kernel just made, with no other owner.
        Ok(Self { file: unsafe { File::from_raw_fd(fd as i32) } })
    }

    /// Returns the count so far; of a thread that has ended, its last one. Where several events
    /// share a counter of the processor, it is an estimate from the time in which this one had it.
    ///
    /// # Errors
    /// The system's, and one if the processor had no free counter for it all the time.
    pub fn read(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 24];
        self.file.read_exact(&mut bytes)?;
        let word = |at: usize| bytes[at..].first_chunk().expect("eight bytes");
        let [count, wanted, counted] = [0, 8, 16].map(|at| u64::from_ne_bytes(*word(at)));
        estimate(count, wanted, counted)
            .ok_or_else(|| io::Error::other("the processor had no free counter for this event"))
    }
}

/// Extrapolates a count that was taken in `counted` of the `wanted` nanoseconds; `None` if nothing
/// was counted.
fn estimate(count: u64, wanted: u64, counted: u64) -> Option<u64> {
    if counted >= wanted {
        return Some(count);
    }
    let all = (u128::from(count) * u128::from(wanted)).checked_div(u128::from(counted))?;
    Some(u64::try_from(all).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn page_faults_of_another_thread_are_counted_while_it_runs_and_after_it() {
        const PAGES: usize = 200;
        let (tell, told) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let body = move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
            // Memory that nothing has touched yet, without huge pages.
            let mut memory: Vec<u8> = Vec::with_capacity(2 * PAGES * 4096);
            let begin = memory.as_mut_ptr().addr().next_multiple_of(4096);
            let bytes = memory.as_mut_ptr().addr() + memory.capacity() - begin;
            // SAFETY: the pages lie in the vector, and keep what they hold.
            unsafe { libc::madvise(begin as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
            while wait.recv().is_ok() {
                memory.resize(memory.len() + PAGES * 4096, 1);
                tell.send(0).unwrap();
            }
            drop(std::hint::black_box(memory));
        };
        let thread = std::thread::spawn(body);
        let tid = told.recv().unwrap();
        let mut counter = match ThreadCounter::open(CountedEvent::PageFaults, tid) {
            Ok(counter) => counter,
            Err(error) => {
                println!(
                    "skipped: {}",
                    CounterRefusal::of_this_machine(CountedEvent::PageFaults, error)
                );
                drop(go);
                return thread.join().unwrap();
            }
        };
        let mut turn = || {
            go.send(()).unwrap();
            told.recv().unwrap();
            counter.read().unwrap()
        };
        let (first, second) = (turn(), turn());
        let between = second - first;
        for faults in [first, between] {
            assert!((PAGES as u64 - 1..PAGES as u64 + 100).contains(&faults), "{first}, {between}");
        }
        drop(go);
        thread.join().unwrap();
        assert!(counter.read().unwrap() >= second);
    }

    #[test]
    fn a_counter_that_had_half_of_the_time_counts_twice() {
        assert_eq!(estimate(7, 1000, 500), Some(14));
        assert_eq!(estimate(7, 1000, 1000), Some(7));
        assert_eq!(estimate(0, 1000, 0), None, "it never had its turn");
        assert_eq!(estimate(0, 0, 0), Some(0), "nobody wanted it yet");
        assert_eq!(estimate(u64::MAX, 3, 1), Some(u64::MAX));
    }

    #[test]
    fn a_thread_that_does_not_exist_is_an_error() {
        assert!(ThreadCounter::open(CountedEvent::PageFaults, i32::MAX as u32).is_err());
        assert!(ThreadCounter::open(CountedEvent::PageFaults, u32::MAX).is_err());
    }
}
