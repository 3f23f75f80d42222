//! The threads of programs: what they wait for, and for how long.

use crate::counters::ProcFile;
use crate::pace::Paced;
use crate::waiting::awaited_socket;
use millstream_cpu::folders;
use millstream_cpu::proc::Stat;
use millstream_cpu::threads::{migrations, times};
use millstream_watch::{SocketReading, ThreadReading};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The least time between two looks for new threads, and between two at a thread's migrations,
/// which are dear to read.
const SLOW: Duration = Duration::from_millis(100);
const MIGRATIONS: Duration = Duration::from_secs(1);

/// The threads that are read: each has three files open.
const THREADS_MAX: usize = 200;

/// The threads of some processes.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    processes: HashMap<u32, Process>,
    /// Whether the kernel does not keep the run-queue delay.
    no_delay: bool,
    /// Threads beyond the most that are read.
    left_out: usize,
}

#[derive(Debug)]
struct Process {
    threads: Vec<Thread>,
    /// How many it has, counted when they were listed.
    listed: Paced<usize>,
}

/// A thread, with its files open.
#[derive(Debug)]
struct Thread {
    tid: u32,
    folder: PathBuf,
    stat: ProcFile,
    schedstat: ProcFile,
    call: ProcFile,
    migrations: Paced<Option<u64>>,
    /// The socket that it was last seen to wait for.
    reads: Option<u64>,
}

impl Threads {
    /// Reads the threads of these processes, the first ones first, and which of the sockets each
    /// waits for.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        pids: &[u32],
        sockets: &[SocketReading],
    ) -> Vec<ThreadReading> {
        self.processes.retain(|pid, _| pids.contains(pid));
        self.left_out = 0;
        let mut found = Vec::new();
        for pid in pids {
            let new = || Process { threads: Vec::new(), listed: Paced::new(SLOW) };
            let process = self.processes.entry(*pid).or_insert_with(new);
            self.left_out += process.read(now, *pid, sockets, &mut found);
        }
        self.no_delay = found.iter().any(|thread| thread.run_delay_ns.is_none());
        found
    }

    /// Says what these readings leave open.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.left_out > 0 {
            lacks.push(format!(
                "only the first {THREADS_MAX} threads are read, not {} others",
                self.left_out
            ));
        }
        for (pid, process) in &self.processes {
            if process.threads.iter().any(|thread| thread.call.is_refused) {
                lacks.push(format!(
                    "which thread of process {pid} reads which socket is not visible: run with \
                     sudo, or with the capability CAP_SYS_PTRACE"
                ));
            }
        }
        if self.no_delay {
            lacks.push(
                "this kernel does not keep how long threads wait for a CPU (CONFIG_SCHED_INFO)"
                    .into(),
            );
        }
        lacks
    }
}

impl Process {
    /// Reads its threads, and returns how many are left out.
    fn read(
        &mut self,
        now: Instant,
        pid: u32,
        sockets: &[SocketReading],
        found: &mut Vec<ThreadReading>,
    ) -> usize {
        let Self { threads, listed } = self;
        let most = THREADS_MAX.saturating_sub(found.len());
        let tids = listed.read(now, || {
            let folder = PathBuf::from(format!("/proc/{pid}/task"));
            let tids = folders::numbers(&folder);
            for tid in &tids {
                if threads.len() < most && threads.iter().all(|thread| thread.tid != *tid) {
                    threads.push(Thread::open(*tid, folder.join(tid.to_string())));
                }
            }
            tids.len()
        });
        threads.retain_mut(|thread| {
            let reading = thread.read(now, pid, sockets);
            let lives = reading.is_some();
            found.extend(reading);
            lives
        });
        tids.saturating_sub(most)
    }
}

impl Thread {
    fn open(tid: u32, folder: PathBuf) -> Self {
        let file = |name: &str| ProcFile::open(folder.join(name));
        Self {
            tid,
            stat: file("stat"),
            schedstat: file("schedstat"),
            call: file("syscall"),
            migrations: Paced::new(MIGRATIONS),
            reads: None,
            folder,
        }
    }

    /// Reads its files; `None` if it has ended.
    fn read(&mut self, now: Instant, pid: u32, sockets: &[SocketReading]) -> Option<ThreadReading> {
        let Self { tid, folder, stat, schedstat, call, migrations: moves, reads } = self;
        let stat = Stat::parse(stat.read()?)?;
        let (cpu_ns, run_delay_ns) = times(&stat, schedstat.read().unwrap_or_default());
        let is_ours = |inode| sockets.iter().any(|socket| socket.inode == inode);
        // One that runs waits for nothing just now: what it was seen to read remains.
        // A refusal lasts, and each one may be a line in the kernel's log.
        let call = if call.is_refused { None } else { call.read() };
        *reads = call.and_then(|call| awaited_socket(pid, call, is_ours)).or(*reads);
        Some(ThreadReading {
            pid,
            tid: *tid,
            cpu: stat.field(39)?,
            state: stat.field(3)?,
            cpu_ns,
            run_delay_ns,
            major_faults: stat.field(12)?,
            migrations: *moves.read(now, || migrations(folder)),
            reads: *reads,
            name: stat.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_is_left_out_and_a_new_one_is_found() {
        let own = [std::process::id()];
        let named = |threads: &mut Threads, now| {
            let read = threads.read(now, &own, &[]);
            read.into_iter().any(|thread| thread.name == "ms-hops-test")
        };
        let mut threads = Threads::default();
        let start = Instant::now();
        assert!(!named(&mut threads, start));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let body = move || assert!(ended.recv().is_err());
        let thread = std::thread::Builder::new().name("ms-hops-test".into()).spawn(body).unwrap();
        // Far ahead: each of these readings is due.
        let mut hours = (1..).map(|hour| start + Duration::from_secs(hour * 3600));
        assert!(hours.any(|now| named(&mut threads, now)), "its name comes with its first step");
        drop(end);
        thread.join().unwrap();
        assert!(!named(&mut threads, hours.next().unwrap()));
    }
}
