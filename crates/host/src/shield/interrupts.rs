//! Interrupts that are moved to other CPUs, or to the application's if its network is to run there
//! (Documentation/core-api/irq/irq-affinity.rst).

use super::{Changes, PacketHandling, ShieldReport, ShieldSpec};
use crate::packet_threads::device_irqs;
use millstream_cpu::{CpuSet, folders};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// An interrupt.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Interrupt {
    /// The number.
    pub number: u32,
    /// The user of the interrupt, from /proc/irq: `virtio1-req.0`.
    pub name: String,
}

/// Moves all interrupts that may reach the shielded CPUs to the others, and those of interfaces
/// with the application to its CPUs, as far as the kernel allows it.
pub(super) fn send(
    root: &Path,
    plan: &ShieldSpec,
    changes: &mut Changes,
    account: &mut ShieldReport,
) {
    let with = plan.napi.iter().filter(|napi| napi.place == PacketHandling::With);
    let near: Vec<_> = with
        .flat_map(|napi| &napi.interfaces)
        .flat_map(|interface| device_irqs(root, interface))
        .collect();
    for (interrupt, file, now) in all(root) {
        let is_near = near.contains(&interrupt.number.to_string());
        if !is_near && !now.iter().any(|cpu| plan.cpus.contains(cpu)) {
            continue;
        }
        let elsewhere: CpuSet = now.iter().filter(|cpu| !plan.cpus.contains(*cpu)).collect();
        let (target, list) = match (is_near, elsewhere.is_empty()) {
            (true, _) => (&plan.cpus, &mut account.near),
            (false, true) => (&account.rest, &mut account.interrupts),
            (false, false) => (&elsewhere, &mut account.interrupts),
        };
        match changes.journal().write_file(&file, &target.to_string()) {
            Ok(change) => {
                changes.push(change);
                list.push(interrupt);
            }
            Err(_) => account.stuck.push(interrupt),
        }
    }
}

/// Returns the interrupts that may reach these CPUs.
pub(super) fn reaching(root: &Path, cpus: &CpuSet) -> Vec<Interrupt> {
    let all = all(root).into_iter().filter(|(.., now)| now.iter().any(|cpu| cpus.contains(cpu)));
    all.map(|(interrupt, ..)| interrupt).collect()
}

/// Returns all interrupts by number, each with the file of its CPUs, and these.
fn all(root: &Path) -> Vec<(Interrupt, PathBuf, CpuSet)> {
    let folder = root.join("proc/irq");
    let one = |number: u32| {
        let file = folder.join(number.to_string()).join("smp_affinity_list");
        let now = fs::read_to_string(&file).ok()?.parse().ok()?;
        Some((Interrupt { number, name: name(&folder, number) }, file, now))
    };
    folders::numbers(&folder).into_iter().filter_map(one).collect()
}

/// Returns the user of an interrupt: each has a folder with its name.
fn name(folder: &Path, number: u32) -> String {
    let folder = folder.join(number.to_string());
    let mut users = folders::names(&folder).into_iter();
    users.find(|user| folder.join(user).is_dir()).unwrap_or_default()
}
