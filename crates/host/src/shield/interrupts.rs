//! Interrupts that are moved to other CPUs, or to the application's if its network is to run there
//! (Documentation/core-api/irq/irq-affinity.rst).

use super::{Changes, PacketHandling, ShieldReport, ShieldSpec};
use crate::packet_threads::device_irqs;
use millstream_cpu::CpuSet;
use serde::Serialize;
use std::fs;
use std::path::Path;

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
    let folder = root.join("proc/irq");
    let names = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        names.filter_map(|name| name.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let with = plan.napi.iter().filter(|napi| napi.place == PacketHandling::With);
    let near: Vec<_> = with
        .flat_map(|napi| &napi.interfaces)
        .flat_map(|interface| device_irqs(root, interface))
        .collect();
    for number in numbers {
        let file = folder.join(number.to_string()).join("smp_affinity_list");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let Ok(now) = text.parse::<CpuSet>() else { continue };
        let is_near = near.contains(&number.to_string());
        if !is_near && !now.iter().any(|cpu| plan.cpus.contains(cpu)) {
            continue;
        }
        let elsewhere: CpuSet = now.iter().filter(|cpu| !plan.cpus.contains(*cpu)).collect();
        let (target, list) = match (is_near, elsewhere.is_empty()) {
            (true, _) => (&plan.cpus, &mut account.near),
            (false, true) => (&account.rest, &mut account.interrupts),
            (false, false) => (&elsewhere, &mut account.interrupts),
        };
        let interrupt = Interrupt { number, name: name(&folder, number) };
        match changes.journal().write_file(&file, &target.to_string()) {
            Ok(change) => {
                changes.push(change);
                list.push(interrupt);
            }
            Err(_) => account.stuck.push(interrupt),
        }
    }
}

/// Returns the user of an interrupt: each has a folder with its name.
fn name(folder: &Path, number: u32) -> String {
    let entries = fs::read_dir(folder.join(number.to_string())).into_iter().flatten().flatten();
    let mut users = entries.filter(|entry| entry.path().is_dir());
    users.next().and_then(|user| user.file_name().into_string().ok()).unwrap_or_default()
}
