//! The network's threads, placed with the application or away from it
//! (Documentation/networking/napi.rst, "Threaded NAPI").

use super::{Changes, ShieldError, ShieldReport, ShieldSpec};
use crate::packet_threads::{PacketThread, napi_of, of_interfaces};
use millstream_cpu::CpuSet;
use millstream_cpu::sched::{self, Class};
use millstream_cpu::thread;
use millstream_cpu::threads::ThreadInfo;
use serde::Serialize;
use std::path::Path;
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
        // Existing threads are restored before they are turned off.
        let before: Vec<_> = napi_of(root, interface).iter().map(|one| one.tid).collect();
        changes.push(changes.journal().keep_threads(&before)?);
        changes.push(changes.journal().write_file(&file, if is_on { "1" } else { "0" })?);
        let start = Instant::now();
        let mut found = napi_of(root, interface);
        while is_on && found.is_empty() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
            found = napi_of(root, interface);
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
    let numbers: Vec<_> = threads.iter().map(|one| one.tid).collect();
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
    napi: &Napi,
    threads: &[ThreadInfo],
    plan: &ShieldSpec,
    account: &mut ShieldReport,
) {
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
