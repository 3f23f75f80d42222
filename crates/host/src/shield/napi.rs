//! The network's threads, placed with the application or away from it
//! (Documentation/networking/napi.rst, "Threaded NAPI").

use super::{Changes, ShieldError, ShieldReport, ShieldSpec};
use crate::packet_threads::{PacketThread, PacketThreadKind, of_interfaces, of_kind};
use millstream_cpu::CpuSet;
use millstream_cpu::sched::{self, Class};
use millstream_cpu::thread;
use millstream_cpu::threads::ThreadInfo;
use serde::Serialize;
use std::path::Path;
use std::slice;
use std::time::{Duration, Instant};

/// The place where packets of an interface are handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketHandling {
    /// In soft interrupts, on the CPU where they arrive.
    Soft,
    /// By threads on the application's CPUs.
    With,
    /// By threads on the other CPUs.
    Away,
    /// By threads anywhere.
    Anywhere,
}

/// The placement of the network's threads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Napi {
    /// Interfaces of this network namespace.
    pub interfaces: Vec<String>,
    /// The place.
    pub place: PacketHandling,
    /// The class of the threads.
    pub class: Class,
    /// The class of the interfaces' interrupts, where these are threads (PREEMPT_RT, `threadirqs`);
    /// `None`: it is not changed.
    pub interrupts: Option<Class>,
}

/// The longest wait for the kernel to start its threads.
const PATIENCE: Duration = Duration::from_secs(1);

/// Turns threaded NAPI on or off, and records the CPUs and class of the threads. Returns the
/// threads that exist afterwards.
pub(super) fn switch(
    root: &Path,
    napi: &Napi,
    changes: &mut Changes,
) -> Result<Vec<ThreadInfo>, ShieldError> {
    let is_on = napi.place != PacketHandling::Soft;
    let mut threads = Vec::new();
    for interface in &napi.interfaces {
        let file = root.join(format!("sys/class/net/{interface}/threaded"));
        let napi_threads = || of_kind(root, slice::from_ref(interface), PacketThreadKind::Napi);
        // Existing threads are restored before they are turned off.
        let before: Vec<_> = napi_threads().iter().map(|one| one.tid).collect();
        changes.push(changes.journal().keep_threads(&before)?);
        changes.push(changes.journal().write_file(&file, if is_on { "1" } else { "0" })?);
        let start = Instant::now();
        let mut found = napi_threads();
        while is_on && found.is_empty() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
            found = napi_threads();
        }
        if is_on && found.is_empty() {
            let interface = interface.clone();
            return Err(match kernel_threads_are_visible(root) {
                true => ShieldError::NoNapi { interface },
                false => ShieldError::HiddenThreads { interface },
            });
        }
        threads.extend(found.into_iter().filter(|_| is_on));
    }
    let interrupts = napi
        .interrupts
        .map(|_| of_kind(root, &napi.interfaces, PacketThreadKind::Interrupt))
        .unwrap_or_default();
    let numbers: Vec<_> = threads.iter().chain(&interrupts).map(|one| one.tid).collect();
    changes.push(changes.journal().keep_threads(&numbers)?);
    Ok(threads)
}

/// Returns whether this PID namespace has the kernel's threads. The first of them has number 2
/// outside of containers.
fn kernel_threads_are_visible(root: &Path) -> bool {
    std::fs::read_to_string(root.join("proc/2/comm")).is_ok_and(|name| name.trim() == "kthreadd")
}

/// Sets CPUs and class of the threads. Refusals of the kernel go into the report.
pub(super) fn place(
    root: &Path,
    napi: &Napi,
    threads: &[ThreadInfo],
    plan: &ShieldSpec,
    account: &mut ShieldReport,
) {
    if let Some(class) = napi.interrupts {
        raise_interrupts(root, napi, class, account);
    }
    let all: CpuSet = plan.cpus.iter().chain(account.rest.iter()).collect();
    let cpus = match napi.place {
        PacketHandling::Soft => return,
        PacketHandling::With => &plan.cpus,
        PacketHandling::Away => &account.rest,
        PacketHandling::Anywhere => &all,
    };
    for one in threads {
        let placed = thread::confine(one.tid, cpus)
            .and_then(|()| sched::set_thread(one.tid, napi.class))
            .map_err(|error| format!("{} stays where it is: {error}", one.name));
        account.warnings.extend(placed.err());
    }
}

/// Sets the class of the interrupts' threads; they follow their interrupts from CPU to CPU.
fn raise_interrupts(root: &Path, napi: &Napi, class: Class, account: &mut ShieldReport) {
    let threads = of_kind(root, &napi.interfaces, PacketThreadKind::Interrupt);
    if threads.is_empty() {
        account.warnings.push(format!(
            "no interrupt of {} is a thread: this kernel has such threads with PREEMPT_RT or the \
             boot parameter threadirqs, once the interface is up",
            napi.interfaces.join(", ")
        ));
    }
    for one in threads {
        let set = sched::set_thread(one.tid, class);
        let refused = set.map_err(|error| format!("{} keeps its class: {error}", one.name));
        account.warnings.extend(refused.err());
    }
}

/// Reads the final state from the kernel, not from the plan, and reports the threads that would
/// have to wait for the application.
pub(super) fn look(root: &Path, plan: &ShieldSpec, account: &mut ShieldReport) {
    let interfaces = plan.napi.as_ref().map_or(&[][..], |napi| &napi.interfaces);
    account.packet_threads = of_interfaces(root, interfaces);
    // Work deferred to another CPU does not wait for the application.
    let is_near = |one: &&PacketThread| {
        let allowed: CpuSet = one.thread.allowed.parse().unwrap_or_default();
        allowed.iter().any(|cpu| plan.cpus.contains(cpu))
    };
    let near: Vec<_> = account.packet_threads.iter().filter(is_near).collect();
    let inverted = near.iter().filter(|one| one.is_inverted(plan.class)).map(|one| {
        let ThreadInfo { tid, name, class, .. } = &one.thread;
        format!("inverted: {name} ({tid}) is {class}, not above the application's {}", plan.class)
    });
    let inverted: Vec<_> = inverted.collect();
    account.warnings.extend(inverted);
}
