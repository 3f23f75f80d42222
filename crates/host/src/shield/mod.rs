//! A shield: CPUs reserved for one application, until it is dropped.
//!
//! ```text
//!   version 1   ROOT/millstream-rest-…     all threads that can be moved, on the other CPUs
//!               ROOT/millstream-…          the application's, on the shielded ones
//!   version 2   ROOT/millstream-…          a partition: it has its CPUs alone
//!   both        /proc/irq/N/smp_affinity_list, /dev/cpu_dma_latency
//! ```
//!
//! Every change is recorded first ([`crate::journal`]), so that it is undone at this value's end,
//! and after a `kill -9` by the next start of any `millstream`.

mod bound;
mod groups;
mod hierarchy;
mod interrupts;
mod napi;
mod partition;
mod threads;

pub use hierarchy::Hierarchy;
pub use interrupts::Interrupt;
pub use napi::{Napi, PacketHandling};

use crate::journal::{Changes, Journal, JournalError, needs_root};
use crate::packet_threads::PacketThread;
use millstream_cpu::CpuSet;
use millstream_cpu::proc::own_group;
use millstream_cpu::sched::Class;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The CPUs to shield, and the work to move away from them.
#[derive(Clone, Debug, Default)]
pub struct ShieldSpec {
    /// The CPUs to reserve.
    pub cpus: CpuSet,
    /// A control group of the cpuset hierarchy, relative to its root; only threads in it are moved.
    /// `None`: all threads of the machine.
    pub under: Option<PathBuf>,
    /// Processes that are not moved.
    pub leave: Vec<i32>,
    /// Whether interrupts are moved to other CPUs.
    pub interrupts: bool,
    /// Whether deep idle states of the CPUs are prevented.
    pub awake: bool,
    /// The placement of the network's threads; `None`: they are not changed.
    pub napi: Option<Napi>,
    /// The application's scheduling class: the threads that serve it must have a higher one.
    pub class: Class,
}

/// The completed and the failed changes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ShieldReport {
    /// The kind of cpusets.
    pub hierarchy: String,
    /// The reserved CPUs.
    pub cpus: CpuSet,
    /// The CPUs for all others.
    pub rest: CpuSet,
    /// The number of moved threads; version 2 moves none.
    pub moved: usize,
    /// Threads that could not be moved: those of the kernel that belong to one CPU.
    pub kept: Vec<String>,
    /// Other groups that lost the CPUs, with their threads (version 1).
    pub narrowed: Vec<String>,
    /// Other groups that keep the CPUs: they have no others, hold a process that is not to be
    /// moved, or the kernel refuses.
    pub wide: Vec<String>,
    /// Interrupts that were moved to other CPUs.
    pub interrupts: Vec<Interrupt>,
    /// Interrupts that were moved to the application's CPUs.
    pub near: Vec<Interrupt>,
    /// Interrupts that cannot be moved.
    pub stuck: Vec<Interrupt>,
    /// Whether deep idle states of the CPUs are prevented.
    pub awake: bool,
    /// Threads that packets of the interfaces wait for.
    pub packet_threads: Vec<PacketThread>,
    /// Failures, and threads that the application would prevent from running.
    pub warnings: Vec<String>,
}

/// The reason why there is no shield.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShieldError {
    /// The kernel has no cpusets, or they are not mounted.
    #[error(
        "cpusets are not mounted: mount them (`mount -t cgroup -o cpuset none \
         /sys/fs/cgroup/cpuset`)"
    )]
    NoCpusets,
    /// No CPU would be left for other work.
    #[error(
        "CPUs `{cpus}` cannot be shielded: give some of the CPUs {all}, but not all of them, \
         because the rest of the system needs one"
    )]
    Cpus {
        /// The requested CPUs.
        cpus: CpuSet,
        /// All CPUs.
        all: CpuSet,
    },
    /// The driver has no queues that threads could serve.
    #[error(
        "the kernel starts no NAPI threads for {interface}, because its driver does not use NAPI: \
         leave out --napi"
    )]
    NoNapi {
        /// The interface.
        interface: String,
    },
    /// The kernel's threads have no numbers in this PID namespace.
    #[error(
        "the NAPI threads of {interface} are not visible in this PID namespace (a container, for \
         example): run the command outside"
    )]
    HiddenThreads {
        /// The interface.
        interface: String,
    },
    /// The kernel refuses the partition.
    #[error("the kernel refuses a cpuset partition of the CPUs {cpus}: it says `{says}`")]
    Partition {
        /// The requested CPUs.
        cpus: CpuSet,
        /// The state of the partition.
        says: String,
    },
    /// A setting could not be changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file could not be used.
    #[error("cannot use {}: {source}{}", path.display(), needs_root(.source))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Reserved CPUs, until the value is dropped.
#[derive(Debug)]
pub struct Shield {
    account: ShieldReport,
    /// The file of the application's control group that takes processes.
    door: PathBuf,
    /// The same file of this process's own group, where a group takes whole processes.
    own_door: Option<PathBuf>,
    root: PathBuf,
    /// Threads that only the kernel places, with their CPUs before; recorded where it may move
    /// them.
    bound: Vec<bound::Bound>,
    changes: Changes,
    /// A request that lasts while the file is open (Documentation/power/pm_qos_interface.rst).
    _awake: Option<File>,
}

impl Shield {
    /// Raises a shield below a root folder, `/` for this machine.
    ///
    /// # Errors
    /// [`ShieldError`]; then everything is restored.
    pub fn raise(
        root: &Path,
        plan: &ShieldSpec,
        journal: &Arc<Journal>,
    ) -> Result<Self, ShieldError> {
        let hierarchy = Hierarchy::find(root).ok_or(ShieldError::NoCpusets)?;
        let mut changes = Changes::new(journal);
        let mut account = ShieldReport {
            hierarchy: hierarchy.name().to_owned(),
            cpus: plan.cpus.clone(),
            ..ShieldReport::default()
        };
        // An error from here on drops the changes, the last one first.
        let packets = match &plan.napi {
            Some(napi) => napi::switch(root, napi, &mut changes)?,
            None => Vec::new(),
        };
        let mut bound = Vec::new();
        let (door, own_door) = match &hierarchy {
            Hierarchy::V1 { root: groups, prefix } => {
                let own = groups.join(own_group(root, Some("cpuset")).unwrap_or_default());
                let home = threads::CpusetRoot { root: groups, prefix, own: &own };
                (threads::version_1(&home, plan, &packets, &mut changes, &mut account)?, None)
            }
            Hierarchy::V2 { root: groups } => {
                let (changes, account) = (&mut changes, &mut account);
                bound = bound::all(root);
                let own = groups.join(own_group(root, None).unwrap_or_default());
                let door = partition::make((groups, &own), plan, &packets, changes, account, read)?;
                (door, Some(own.join(partition::DOOR)))
            }
        };
        if let Some(napi) = &plan.napi {
            napi::place(root, napi, &packets, plan, &mut account);
        }
        napi::look(root, plan, &mut account);
        if plan.interrupts {
            interrupts::send(root, plan, &mut changes, &mut account);
        }
        let awake = if plan.awake { stay_awake(root).ok() } else { None };
        account.awake = awake.is_some();
        let root = root.to_owned();
        Ok(Self { account, door, own_door, root, bound, changes, _awake: awake })
    }

    /// Returns what a shield would change, as far as this shows without a change.
    ///
    /// # Errors
    /// [`ShieldError`] when there could be none.
    pub fn plan(root: &Path, plan: &ShieldSpec) -> Result<ShieldReport, ShieldError> {
        let hierarchy = Hierarchy::find(root).ok_or(ShieldError::NoCpusets)?;
        let (groups, file) = match &hierarchy {
            Hierarchy::V1 { root, prefix } => (root, format!("{prefix}cpus")),
            Hierarchy::V2 { root } => (root, "cpuset.cpus.effective".to_owned()),
        };
        let home = plan.under.as_ref().map_or_else(|| groups.clone(), |under| groups.join(under));
        let reaching =
            if plan.interrupts { interrupts::reaching(root, &plan.cpus) } else { vec![] };
        Ok(ShieldReport {
            hierarchy: hierarchy.name().to_owned(),
            cpus: plan.cpus.clone(),
            rest: threads::rest(&threads::cpus_of(&home.join(file))?, plan)?,
            interrupts: reaching,
            ..ShieldReport::default()
        })
    }

    /// Returns the completed and the failed changes.
    #[must_use]
    pub fn account(&self) -> &ShieldReport {
        &self.account
    }

    /// Returns the file that takes processes behind the shield, with their later children.
    /// Processes that remain at the end go to the group of the process that raised the shield.
    #[must_use]
    pub fn door(&self) -> &Path {
        &self.door
    }

    /// Runs a job behind the shield, on a new thread. This process is in its old group afterwards,
    /// also where a group takes it as a whole.
    ///
    /// # Errors
    /// [`ShieldError`].
    pub fn run_inside<R: Send>(&self, job: impl FnOnce() -> R + Send) -> Result<R, ShieldError> {
        // `0` is the writing process.
        let inside = || write(&self.door, "0").map(|()| job());
        let Some(own_door) = &self.own_door else { return on_own_thread(inside) };
        // Up to Linux 6.1, a process that enters the root's group may run on all CPUs.
        let threads = groups::own_threads()?;
        let pins = self.changes.journal().keep_pins(&threads, &CpuSet::default())?;
        let done = on_own_thread(inside);
        write(own_door, "0")?;
        drop(pins);
        done
    }

    /// Restores all settings that it can; returns the others.
    ///
    /// # Errors
    /// The system's first error; it stays in the journal, and the next start tries again.
    pub fn lower(self) -> io::Result<ChangedSettings> {
        let left = self.changes.undo()?;
        Ok(ChangedSettings { left, moved: bound::moved(&self.root, &self.bound) })
    }
}

/// The differences to the state before a shield.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChangedSettings {
    /// Settings left unchanged, because they were changed by others since or are in use:
    /// `/proc/irq/24/smp_affinity_list (0-3)`.
    pub left: Vec<String>,
    /// Threads that the kernel has moved and only the kernel can place: `thread rcu_gp (0-3, was
    /// 2)`. They are bound to the CPU where they help before they help.
    pub moved: Vec<String>,
}

fn on_own_thread<R: Send>(job: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(job).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn write(path: &Path, text: &str) -> Result<(), ShieldError> {
    fs::write(path, text).map_err(|source| ShieldError::File { path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<String, ShieldError> {
    let text = fs::read_to_string(path);
    text.map_err(|source| ShieldError::File { path: path.to_owned(), source })
}

fn stay_awake(root: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(root.join("dev/cpu_dma_latency"))?;
    file.write_all(&0i32.to_ne_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests;
