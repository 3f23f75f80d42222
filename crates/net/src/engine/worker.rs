//! An I/O thread: it owns links exclusively, drives them, and waits when there is nothing to do.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::port::{Patience, Poller};
use millstream_cpu::sched::{Class, set_current_thread};
use millstream_cpu::thread::{pin_current_thread, unpin_current_thread};
use millstream_link::LinkError;
use millstream_ring::doorbell::DESCRIPTORS_MAX;
use millstream_ring::governor::{Governor, Idle, WaitLimits};
use millstream_ring::{Doorbell, Wait, Waiter};

use super::clock::now_ns;
use super::commands::{Contact, HostId, ThreadCommand, ThreadShared, WorkerOptions};
use super::host::Host;
use super::inventory::LinkReport;

/// The most links of one thread: each has a descriptor to sleep on.
pub(super) const LINKS_MAX: usize = DESCRIPTORS_MAX;

/// The number of steps between two reads of the thread's CPU.
const TURNS_PER_CPU_LOOK: u8 = 32;

/// The handle of an I/O thread, which ends with its last holder.
pub(super) struct IoThread {
    pub contact: Contact,
    join: Option<JoinHandle<()>>,
}

impl IoThread {
    /// Starts a thread without links.
    pub fn start(options: WorkerOptions) -> Result<Self, LinkError> {
        let setup = |what| move |source| LinkError::Setup { what, source };
        let shared = Arc::new(ThreadShared::new(Doorbell::new().map_err(setup("eventfd"))?));
        let (orders, incoming) = mpsc::channel();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let (to_run, theirs) = (options.clone(), Arc::clone(&shared));
        let join = std::thread::Builder::new()
            .name(format!("ms-io-{}", options.name))
            .spawn(move || {
                let prepared = prepare(&to_run, &theirs);
                let failed = prepared.is_err();
                let _ = ready.send(prepared);
                if !failed {
                    Loop::new(theirs, incoming, to_run.wait).run();
                }
            })
            .map_err(setup("I/O thread"))?;
        let worker = Self { contact: Contact { options, shared, orders }, join: Some(join) };
        match is_ready.recv() {
            Ok(prepared) => prepared.map(|()| worker),
            Err(_) => Err(setup("I/O thread")(std::io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        let _ = self.contact.tell(ThreadCommand::Stop);
        // It may have panicked, which was reported to its users. A thread that hangs in its driver
        // is left there.
        if !self.contact.shared.is_silent() {
            let _ = self.join.take().map(JoinHandle::join);
        }
    }
}

/// A function that each I/O thread calls when a report is requested.
static PROBE: OnceLock<fn() -> u64> = OnceLock::new();

/// Makes every I/O thread of this process call `probe` when the [inventory](super::inventory()) is
/// taken, and report its result less the share of the reports themselves: for tests that count what
/// a thread does, such as its allocations. The first probe stays.
pub fn set_probe(probe: fn() -> u64) {
    let _ = PROBE.set(probe);
}

/// Prepares the new thread.
fn prepare(options: &WorkerOptions, shared: &ThreadShared) -> Result<(), LinkError> {
    shared.tid.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    match options.cpu {
        Some(cpu) => pin_current_thread(cpu)
            .map_err(|error| crate::options::bad(format!("cpu={cpu}"), &error.to_string()))?,
        // The thread that opens a link is often pinned, and spins there.
        None => {
            if let Err(error) = unpin_current_thread() {
                shared.note(format!("it runs on the CPUs of the thread that opened it: {error}"));
            }
        }
    }
    if let Some(priority) = options.priority {
        match set_current_thread(Class::Fifo(priority)) {
            Ok(()) => shared.priority.store(priority.into(), Ordering::Relaxed),
            Err(error) => {
                shared.note(format!("priority={priority}: {error}; it runs in the ordinary class"));
            }
        }
    }
    Ok(())
}

/// The loop of the thread until it is stopped.
struct Loop {
    shared: Arc<ThreadShared>,
    orders: Receiver<ThreadCommand>,
    hosts: Vec<(HostId, Box<Host>)>,
    wait: Wait,
    governor: Governor,
    turns: u8,
    /// The probe's count of the reports themselves.
    reports: u64,
}

impl Loop {
    fn new(shared: Arc<ThreadShared>, orders: Receiver<ThreadCommand>, wait: Wait) -> Self {
        let governor = Governor::new(WaitLimits::default());
        let hosts = Vec::with_capacity(LINKS_MAX);
        Self { shared, orders, hosts, wait, governor, turns: 0, reports: 0 }
    }

    fn run(&mut self) {
        let mut now = now_ns();
        loop {
            if self.shared.news.is_there() {
                // Before the commands are read: a later one sets the flag again.
                self.shared.news.take();
                while let Ok(order) = self.orders.try_recv() {
                    if !self.execute(order) {
                        return;
                    }
                }
            }
            self.turns = (self.turns + 1) % TURNS_PER_CPU_LOOK;
            if self.turns == 0 {
                self.shared.place.note();
            }
            let mut busy = false;
            for (_, host) in &mut self.hosts {
                busy |= !host.step(now).is_none();
            }
            let began = now;
            if busy {
                self.governor.busy(now);
                now = now_ns();
                self.shared.waits.busy(now - began);
            } else {
                now = self.idle(now);
            }
        }
    }

    /// Spends a moment without work; returns the time after it.
    fn idle(&mut self, now: u64) -> u64 {
        let idle = match self.wait {
            Wait::Spin if self.shared.place.is_crowded() => Idle::Yield,
            Wait::Spin => Idle::Spin,
            Wait::Park => Idle::Sleep,
            _ => self.governor.idle(now),
        };
        let waits = &self.shared.waits;
        match idle {
            Idle::Spin => {
                std::hint::spin_loop();
                let after = now_ns();
                waits.spun(after - now);
                after
            }
            Idle::Yield => {
                std::thread::yield_now();
                let after = now_ns();
                waits.yielded(after - now);
                after
            }
            Idle::Sleep => {
                self.shared.place.note();
                self.sleep(now);
                let after = now_ns();
                self.shared.waits.slept(after - now);
                after
            }
        }
    }

    /// Sleeps until there is something to receive, to send or to execute, or something is due.
    fn sleep(&self, now: u64) {
        let patience = self.hosts.iter().map(|(_, host)| host.patience_ns(now)).min();
        let patience = patience.filter(|ns| *ns < u64::MAX).map(Duration::from_nanos);
        let mut fds = self.hosts.iter().filter_map(|(_, host)| host.poll_fd());
        let slept = match fds.next() {
            None => self.shared.bell.wait(&[], patience),
            Some(first) => {
                let mut count = 1;
                let list: [BorrowedFd<'_>; LINKS_MAX] = std::array::from_fn(|index| {
                    let next = if index > 0 { fds.next() } else { None };
                    count += usize::from(next.is_some());
                    next.unwrap_or(first)
                });
                self.shared.bell.wait(&list[..count], patience)
            }
        };
        if slept.is_err() {
            // It cannot happen, and must not become a busy loop of failing calls.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn host(&mut self, id: HostId) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|(other, _)| *other == id).map(|(_, host)| &mut **host)
    }

    /// Executes a command. Returns false when the thread is to end.
    fn execute(&mut self, order: ThreadCommand) -> bool {
        // The sender may have gone; then the answer is not needed.
        match order {
            ThreadCommand::Adopt(id, host, reply) => {
                self.hosts.push((id, host));
                let _ = reply.send(());
            }
            ThreadCommand::Release(id, reply) => {
                self.hosts.retain(|(other, _)| *other != id);
                let _ = reply.send(());
            }
            ThreadCommand::Do(id, job) => job(self.host(id)),
            ThreadCommand::Report(reply) => {
                let probe = || PROBE.get().map_or(0, |probe| probe());
                let before = probe();
                let links = self.hosts.iter_mut().map(|(_, host)| LinkReport::of(host)).collect();
                let _ = reply.send((links, before.saturating_sub(self.reports)));
                self.reports += probe().saturating_sub(before);
            }
            ThreadCommand::Stop => return false,
        }
        true
    }
}

/// The handle with which a port's user wakes the thread.
pub(super) struct ThreadDrive {
    pub shared: Arc<ThreadShared>,
    pub wait: Wait,
}

impl Poller for ThreadDrive {
    fn kick(&self, _: Patience) {
        self.shared.bell.ring();
    }

    fn look(&self) {}

    fn wait(&self, waiter: &Waiter, timeout: Duration) {
        match self.wait {
            Wait::Spin => self.shared.place.spin(waiter, timeout),
            // A wait without a limit checks once an hour.
            wait => {
                waiter.wait(wait, Some(timeout.min(Duration::from_secs(3600))));
            }
        }
    }

    fn rest(&self, waiter: &Waiter, timeout: Duration) {
        self.wait(waiter, timeout);
    }
}
