//! The kernel's threads between a network card and a socket, and whether the application that waits
//! for them prevents them from running.
//!
//! | thread | work |
//! | --- | --- |
//! | `irq/36-eth0-rx-0` | a device's interrupt, where interrupts are threads (PREEMPT_RT) |
//! | `napi/eth0-8193` | a queue's packets (Documentation/networking/napi.rst, "Threaded NAPI") |
//! | `ksoftirqd/1` | deferred soft interrupts, including those of the network |

use millstream_cpu::folders;
use millstream_cpu::sched::Class;
use millstream_cpu::threads::{self, ThreadInfo};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// The work of a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketThreadKind {
    /// An interrupt of the card.
    Interrupt,
    /// The packets of a queue.
    Napi,
    /// The deferred soft interrupts of a CPU.
    Soft,
}

/// A kernel thread that packets wait for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PacketThread {
    /// The work.
    pub kind: PacketThreadKind,
    /// The thread.
    #[serde(flatten)]
    pub thread: ThreadInfo,
}

impl PacketThread {
    /// Returns whether an application of that class prevents it from running on a shared CPU: one
    /// of equal priority does, too, until it sleeps.
    #[must_use]
    pub fn is_inverted(&self, application: Class) -> bool {
        let own: Result<Class, _> = self.thread.class.parse();
        application.priority() > 0 && own.is_ok_and(|own| own.priority() <= application.priority())
    }
}

/// Finds the threads that packets of these interfaces wait for, below a root folder: those of NAPI
/// and of interrupts by the interface's name or its device's interrupts, and `ksoftirqd` of all
/// CPUs.
#[must_use]
pub fn of_interfaces(root: &Path, interfaces: &[String]) -> Vec<PacketThread> {
    let interrupts: Vec<_> = interfaces.iter().flat_map(|name| device_irqs(root, name)).collect();
    let kind = |name: &str| {
        if name.starts_with("ksoftirqd/") {
            return Some(PacketThreadKind::Soft);
        }
        let is_napi = |interface: &String| is_napi_of(name, interface);
        if interfaces.iter().any(is_napi) {
            return Some(PacketThreadKind::Napi);
        }
        let (number, user) = name.strip_prefix("irq/")?.split_once('-')?;
        let is_ours = |interface: &String| user.split(['-', '@']).any(|word| word == interface);
        let ours = interrupts.iter().any(|irq| irq == number) || interfaces.iter().any(is_ours);
        ours.then_some(PacketThreadKind::Interrupt)
    };
    let proc = root.join("proc");
    let thread = |number: u32| {
        let folder = proc.join(number.to_string());
        // The name alone, which is cheap to read, before all other properties.
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        Some(PacketThread { kind: kind(name.trim_end())?, thread: threads::read(&folder)? })
    };
    folders::numbers(&proc).into_iter().filter_map(thread).collect()
}

/// Returns those of one kind.
pub(crate) fn of_kind(
    root: &Path,
    interfaces: &[String],
    kind: PacketThreadKind,
) -> Vec<ThreadInfo> {
    let all = of_interfaces(root, interfaces).into_iter();
    all.filter(|one| one.kind == kind).map(|one| one.thread).collect()
}

/// Returns whether the name is `napi/IF-NUMBER`, cut to 15 bytes by kernels before 5.17.
fn is_napi_of(name: &str, interface: &str) -> bool {
    const CUT: usize = 15;
    let full = format!("napi/{interface}-");
    let rest = name.strip_prefix(&full);
    let is_whole = rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    is_whole || (name.len() == CUT && full.len() >= CUT && full.starts_with(name))
}

/// Returns the numbers of the interrupts of an interface's device.
pub(crate) fn device_irqs(root: &Path, interface: &str) -> Vec<String> {
    folders::names(&root.join(format!("sys/class/net/{interface}/device/msi_irqs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a process folder in the kernel's format: policy 1 is FIFO, 0 the ordinary class.
    fn thread(root: &Path, tid: u32, name: &str, priority: u8) {
        let folder = root.join(format!("proc/{tid}"));
        fs::create_dir_all(&folder).unwrap();
        let policy = u8::from(priority > 0);
        let zeros = |count| vec!["0"; count].join(" ");
        let stat = format!("{tid} ({name}) S {} {priority} {policy} 0\n", zeros(36));
        let status = "Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t1\n\
            nonvoluntary_ctxt_switches:\t2\n";
        for (file, text) in
            [("comm", format!("{name}\n")), ("stat", stat), ("status", status.into())]
        {
            fs::write(folder.join(file), text).unwrap();
        }
    }

    #[test]
    fn those_of_the_interface_are_found_and_an_inversion_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let all = [
            (10, "ksoftirqd/0", 0),
            (11, "napi/eth0-8193", 40),
            (12, "napi/eth01-8194", 60),
            (13, "irq/36-eth0-rx-0", 60),
            (14, "irq/37-virtio0", 50),
            (15, "irq/38-nvme0q1", 50),
            (16, "bash", 0),
        ];
        for (tid, name, priority) in all {
            thread(root.path(), tid, name, priority);
        }
        fs::create_dir_all(root.path().join("sys/class/net/eth0/device/msi_irqs/37")).unwrap();
        let found = of_interfaces(root.path(), &["eth0".to_owned()]);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.thread.tid, one.kind, one.is_inverted(Class::Fifo(50))))
            .collect();
        let expected = [
            (10, PacketThreadKind::Soft, true),
            (11, PacketThreadKind::Napi, true),
            (13, PacketThreadKind::Interrupt, false),
            (14, PacketThreadKind::Interrupt, true),
        ];
        assert_eq!(told, expected);
        assert!(!found[0].is_inverted(Class::Other), "an ordinary application keeps nobody away");
        assert_eq!(of_kind(root.path(), &["eth01".to_owned()], PacketThreadKind::Napi).len(), 1);
    }

    #[test]
    fn a_name_that_an_old_kernel_has_cut_is_known() {
        assert!(is_napi_of("napi/enp129s0f0", "enp129s0f0np0") && is_napi_of("napi/a-1", "a"));
        assert!(!is_napi_of("napi/a-1x", "a") && !is_napi_of("napi/enp129s0f", "enp129s0f0np0"));
    }
}
