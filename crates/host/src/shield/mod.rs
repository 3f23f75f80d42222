//! A shield: CPUs that are kept for one application, until it is dropped.
//!
//! ```text
//!   version 1   ROOT/millstream-rest-…     all threads that can be moved, on the other CPUs
//!               ROOT/millstream-…          the application's, on the shielded ones
//!   version 2   ROOT/millstream-…          a partition: its CPUs are nobody else's
//!   both        /proc/irq/N/smp_affinity_list, /dev/cpu_dma_latency
//! ```
//!
//! Everything is written down first ([`crate::journal`]), so that it is as it was after this
//! value's end, and after a `kill -9` by the next start of any `millstream`.

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
use millstream_cpu::sched::Class;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is to be shielded, and from whom.
#[derive(Clone, Debug, Default)]
pub struct ShieldSpec {
    /// The CPUs to be kept free.
    pub cpus: CpuSet,
    /// A control group of the cpuset hierarchy, relative to its root; only threads in it are moved.
    /// None: all threads of the machine.
    pub under: Option<PathBuf>,
    /// Processes that are left where they are.
    pub leave: Vec<i32>,
    /// Whether interrupts are sent elsewhere.
    pub interrupts: bool,
    /// Whether CPUs are kept from deep sleep.
    pub awake: bool,
    /// Where the network's threads are to run; none: they are left as they are.
    pub napi: Option<Napi>,
    /// The application's scheduling class: what serves it must be above that.
    pub class: Class,
}

/// What was done, and what could not be.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ShieldReport {
    /// Which cpusets there are.
    pub hierarchy: String,
    /// CPUs that are kept free.
    pub cpus: CpuSet,
    /// CPUs for all others.
    pub rest: CpuSet,
    /// Threads that were moved; version 2 moves none.
    pub moved: usize,
    /// Threads that could not be moved: those of the kernel that belong to one CPU.
    pub kept: Vec<String>,
    /// Groups of others that the CPUs were taken from, with their threads (version 1).
    pub narrowed: Vec<String>,
    /// Groups of others that keep the CPUs: they have no others, hold a process that is to be left,
    /// or the kernel refuses.
    pub wide: Vec<String>,
    /// Interrupts that are sent elsewhere now.
    pub interrupts: Vec<Interrupt>,
    /// Interrupts that are sent to the application's CPUs now.
    pub near: Vec<Interrupt>,
    /// Interrupts that cannot be sent elsewhere.
    pub stuck: Vec<Interrupt>,
    /// Whether CPUs are kept from deep sleep.
    pub awake: bool,
    /// Threads that packets of the interfaces wait for.
    pub packet_threads: Vec<PacketThread>,
    /// What could not be done, and threads that the application would keep waiting.
    pub warnings: Vec<String>,
}

/// Why there is no shield.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShieldError {
    /// The kernel has none.
    #[error("no cpusets here: mount them (`mount -t cgroup -o cpuset none /sys/fs/cgroup/cpuset`)")]
    NoCpusets,
    /// Nothing would be left.
    #[error(
        "CPUs `{cpus}` cannot be shielded: name some of {all}, but not all, because the rest of \
         the system needs one"
    )]
    Cpus {
        /// What was asked for.
        cpus: CpuSet,
        /// What there is.
        all: CpuSet,
    },
    /// The driver has no queues that threads could serve.
    #[error("the kernel starts no NAPI thread for {interface}: its driver has no NAPI in use")]
    NoNapi {
        /// The interface.
        interface: String,
    },
    /// The kernel's threads have no numbers in this PID namespace.
    #[error(
        "the NAPI threads of {interface} cannot be seen in this PID namespace, as of a container: \
         run it outside"
    )]
    HiddenThreads {
        /// The interface.
        interface: String,
    },
    /// The kernel refuses the partition.
    #[error("the kernel does not make a partition of CPUs {cpus}: it says `{says}`")]
    Partition {
        /// What was asked for.
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
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// CPUs that are kept free as long as this lives.
#[derive(Debug)]
pub struct Shield {
    account: ShieldReport,
    /// The file of the application's control group that takes processes.
    door: PathBuf,
    /// That of this process's own group, where a door takes whole processes.
    own_door: Option<PathBuf>,
    root: PathBuf,
    /// Threads that only the kernel places, as they were; looked at where it may move them.
    bound: Vec<bound::Bound>,
    changes: Changes,
    /// A request that holds as long as it is open (Documentation/power/pm_qos_interface.rst).
    _awake: Option<File>,
}

impl Shield {
    /// Raises it below a root folder, `/` for this machine.
    ///
    /// # Errors
    /// [`ShieldError`]; then all is as it was.
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
                let own = groups::own(root, groups, Some("cpuset"));
                let home = threads::CpusetRoot { root: groups, prefix, own: &own };
                (threads::version_1(&home, plan, &packets, &mut changes, &mut account)?, None)
            }
            Hierarchy::V2 { root: groups } => {
                let (changes, account) = (&mut changes, &mut account);
                bound = bound::all(root);
                let own = groups::own(root, groups, None);
                let door = partition::make(groups, &own, plan, changes, account, partition::state)?;
                (door, Some(own.join(partition::DOOR)))
            }
        };
        if let Some(napi) = &plan.napi {
            napi::place(napi, &packets, plan, &mut account);
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

    /// What was done.
    #[must_use]
    pub fn account(&self) -> &ShieldReport {
        &self.account
    }

    /// The file that takes processes behind the shield, with what they start from then on. What
    /// is there at the end goes to the group of the process that has raised the shield.
    #[must_use]
    pub fn door(&self) -> &Path {
        &self.door
    }

    /// Does something behind the shield, on a thread of its own. This process is where it was
    /// afterwards, also where a group takes it as a whole.
    ///
    /// # Errors
    /// [`ShieldError`].
    pub fn run_inside<R: Send>(&self, job: impl FnOnce() -> R + Send) -> Result<R, ShieldError> {
        // `0` is who writes.
        let inside = || write(&self.door, "0").map(|()| job());
        let Some(own_door) = &self.own_door else { return on_own_thread(inside) };
        // Up to Linux 6.1, a process that comes to the root's group may run on all CPUs.
        let threads = groups::own_threads()?;
        let pins = self.changes.journal().keep_pins(&threads, &CpuSet::default())?;
        let done = on_own_thread(inside);
        write(own_door, "0")?;
        drop(pins);
        done
    }

    /// Puts all back that can be; what cannot is told.
    ///
    /// # Errors
    /// The system's, of the first that failed; it stays in the journal, and the next start tries
    /// again.
    pub fn lower(self) -> io::Result<ChangedSettings> {
        let left = self.changes.undo()?;
        Ok(ChangedSettings { left, moved: bound::moved(&self.root, &self.bound) })
    }
}

/// What is otherwise than before a shield.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChangedSettings {
    /// Left as it is, because somebody else has changed it since or has come to rely on it:
    /// `/proc/irq/24/smp_affinity_list (0-3)`.
    pub left: Vec<String>,
    /// Threads of the kernel that it has moved, and that nobody else can: `thread rcu_gp (0-3, was
    /// 2)`. They are bound where they help before they help.
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
