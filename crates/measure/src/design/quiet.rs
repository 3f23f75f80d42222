//! The check for a quiet machine. An unattended run waits until no other work runs on the machine,
//! and records with every sample the activity of others.

use crate::load::MachineCounters;
use crate::record::LoadSeen;
use millstream_cpu::proc::Stat;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The length of one observation.
const WINDOW: Duration = Duration::from_secs(1);
/// The number of busiest processes that are named.
const NAMED: usize = 3;

/// The definition of a quiet machine, and the longest wait for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuietCondition {
    /// The longest wait; zero: do not wait.
    pub patience: Duration,
    /// The largest share of all CPUs' time that others take.
    pub cpu_share: f64,
    /// The most packets a second on `interfaces` and those with hardware behind them.
    pub packets_per_s: f64,
    /// Interfaces that are watched in addition to those with hardware behind them.
    pub interfaces: Vec<String>,
}

/// Counters at one moment.
#[derive(Debug)]
pub struct ActivityCounters {
    at: Instant,
    machine: MachineCounters,
    own_ticks: u64,
    /// Packets by interface, and the interfaces that are watched in addition to hardware.
    packets: BTreeMap<String, u64>,
    interfaces: Vec<String>,
}

/// The activity of others.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherActivity {
    cpu_share: f64,
    packets_per_s: f64,
    /// The interface with the most packets.
    interface: Option<String>,
}

impl ActivityCounters {
    /// Reads the counters of this machine; of the interfaces, those with hardware and these.
    #[must_use]
    pub fn begin(interfaces: &[String]) -> Self {
        let root = Path::new("/");
        Self {
            at: Instant::now(),
            machine: MachineCounters::read(root),
            own_ticks: own_ticks(root),
            packets: packets(root, interfaces),
            interfaces: interfaces.to_vec(),
        }
    }

    /// Returns the activity since then, without this process, its children and `load_cpu_s` of a
    /// load.
    #[must_use]
    pub fn end(&self, load_cpu_s: f64) -> OtherActivity {
        let now = Self::begin(&self.interfaces);
        let busy = now.machine.busy_ticks.saturating_sub(self.machine.busy_ticks) as f64;
        let all = now.machine.all_ticks.saturating_sub(self.machine.all_ticks).max(1) as f64;
        // In user space units (proc(5), USER_HZ).
        let load_ticks = load_cpu_s * rustix::param::clock_ticks_per_second() as f64;
        let own = now.own_ticks.saturating_sub(self.own_ticks) as f64 + load_ticks;
        let seconds = (now.at - self.at).as_secs_f64().max(1e-9);
        let (packets, interface) = passed(&self.packets, &now.packets);
        OtherActivity {
            cpu_share: ((busy - own) / all).clamp(0.0, 1.0),
            packets_per_s: packets as f64 / seconds,
            interface,
        }
    }
}

/// Returns how many packets passed, and on which interface the most.
fn passed(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> (u64, Option<String>) {
    let new = |(name, count): (&String, &u64)| {
        (count.saturating_sub(before.get(name).copied().unwrap_or(*count)), name.clone())
    };
    let all: Vec<_> = after.iter().map(new).filter(|(count, _)| *count > 0).collect();
    let most = all.iter().max_by_key(|(count, _)| *count);
    (all.iter().map(|(count, _)| count).sum(), most.map(|(_, name)| name.clone()))
}

impl OtherActivity {
    /// Writes the activity into the load record of a sample.
    pub fn tell(&self, seen: &mut LoadSeen) {
        seen.others_cpu_share = self.cpu_share;
        seen.hardware_packets_per_s = self.packets_per_s;
        seen.terminals = terminals(Path::new("/"));
    }
}

impl QuietCondition {
    fn allows(&self, others: &OtherActivity) -> bool {
        others.cpu_share <= self.cpu_share && others.packets_per_s <= self.packets_per_s
    }

    /// Waits until the machine is quiet, or `ended` returns true.
    ///
    /// # Errors
    /// The busy processes, when the wait exceeds the patience; an interface that does not exist.
    pub fn wait(&self, ended: fn() -> bool) -> Result<(), String> {
        if self.patience.is_zero() {
            return Ok(());
        }
        let until = Instant::now() + self.patience;
        loop {
            let (watch, before) =
                (ActivityCounters::begin(&self.interfaces), ticks(Path::new("/")));
            let is_there = |name: &&String| watch.packets.contains_key(*name);
            if let Some(name) = self.interfaces.iter().find(|name| !is_there(name)) {
                return Err(format!(
                    "there is no network interface {name}: correct `quiet_interfaces` in the plan"
                ));
            }
            std::thread::sleep(WINDOW.min(self.patience));
            let others = watch.end(0.0);
            if self.allows(&others) || ended() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(format!(
                    "the machine is not quiet: other programs use {:.0} % of its CPU time (mostly \
                     {}), and {:.0} packets a second pass its interfaces{}; {} terminals are \
                     open. End other programs, or increase `quiet_s` in the plan",
                    others.cpu_share * 100.0,
                    busiest(&before, &ticks(Path::new("/"))),
                    others.packets_per_s,
                    others.interface.map_or(String::new(), |name| format!(" (mostly {name})")),
                    terminals(Path::new("/")),
                ));
            }
        }
    }
}

/// Returns the processor time of this process and of its ended children, ticks (proc_pid_stat(5),
/// 14 to 17).
fn own_ticks(root: &Path) -> u64 {
    let stat = Stat::read(&root.join("proc/self"));
    stat.map_or(0, |stat| (14..=17).filter_map(|number| stat.field::<u64>(number)).sum())
}

/// Returns the packets of interfaces with hardware behind them, and of those in `named`.
fn packets(root: &Path, named: &[String]) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(root.join("sys/class/net")).into_iter().flatten().flatten();
    let read = |path: &Path, name: &str| -> u64 {
        let text = fs::read_to_string(path.join("statistics").join(name)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    let one = |entry: fs::DirEntry| {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_watched = path.join("device").exists() || named.contains(&name);
        is_watched.then(|| (name, read(&path, "rx_packets") + read(&path, "tx_packets")))
    };
    entries.filter_map(one).collect()
}

/// Counts the terminals of network logins, and of programs that imitate them.
fn terminals(root: &Path) -> u32 {
    let entries = fs::read_dir(root.join("dev/pts")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())).count()
        as u32
}

/// Returns the processor time of every process, by number and name, ticks (proc_pid_stat(5), 14 and
/// 15).
fn ticks(root: &Path) -> BTreeMap<(u32, String), u64> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let stat = Stat::read(&entry.path())?;
        let ticks = stat.field::<u64>(14)? + stat.field::<u64>(15)?;
        Some(((number, stat.name), ticks))
    };
    entries.filter_map(one).collect()
}

/// Returns the names of the processes with the most processor time.
fn busiest(before: &BTreeMap<(u32, String), u64>, after: &BTreeMap<(u32, String), u64>) -> String {
    let own = std::process::id();
    let mut all: Vec<_> = after
        .iter()
        .filter(|((number, _), _)| *number != own)
        .map(|(who, ticks)| (ticks - before.get(who).unwrap_or(ticks).min(ticks), &who.1))
        .filter(|(ticks, _)| *ticks > 0)
        .collect();
    all.sort_by(|one, other| other.cmp(one));
    let names: Vec<_> = all.into_iter().take(NAMED).map(|(_, name)| name.as_str()).collect();
    if names.is_empty() { "the kernel".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_hardware_and_of_what_is_named_count_and_terminals_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/class/net/eth0/device/vendor", "0x8086\n");
        put("sys/class/net/eth0/statistics/rx_packets", "5\n");
        put("sys/class/net/eth0/statistics/tx_packets", "2\n");
        put("sys/class/net/veth0/statistics/rx_packets", "100\n");
        put("dev/pts/0", "");
        put("dev/pts/ptmx", "");
        put("sys/class/net/lo/statistics/rx_packets", "9\n");
        let of = |list: &[(&str, u64)]| {
            list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let before = packets(root.path(), &[]);
        assert_eq!((&before, terminals(root.path())), (&of(&[("eth0", 7)]), 1));
        let both = packets(root.path(), &["veth0".to_owned()]);
        assert_eq!(both, of(&[("eth0", 7), ("veth0", 100)]));
        let after = of(&[("eth0", 9), ("veth0", 104), ("new", 50)]);
        assert_eq!(passed(&both, &after), (6, Some("veth0".to_owned())));
        assert_eq!(passed(&both, &both), (0, None));
    }

    #[test]
    fn the_busiest_are_named() {
        let of = |list: &[(u32, &str, u64)]| {
            list.iter().map(|(n, name, ticks)| ((*n, (*name).to_owned()), *ticks)).collect()
        };
        let before = of(&[(10, "rustc", 5), (11, "cron", 9), (12, "ssh", 1), (13, "x y", 0)]);
        let after = of(&[(10, "rustc", 95), (11, "cron", 9), (12, "ssh", 3), (13, "x y", 1)]);
        assert_eq!(busiest(&before, &after), "rustc, ssh, x y");
        assert_eq!(busiest(&before, &before), "the kernel");
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/42")).unwrap();
        let stat = "42 (a) b) S 1 1 1 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 5";
        fs::write(root.path().join("proc/42/stat"), stat).unwrap();
        assert_eq!(ticks(root.path()), of(&[(42, "a) b", 42)]));
    }

    #[test]
    fn what_is_quiet_has_bounds() {
        let bounds =
            QuietCondition { cpu_share: 0.05, packets_per_s: 20.0, ..QuietCondition::default() };
        let quiet = OtherActivity { cpu_share: 0.05, packets_per_s: 20.0, interface: None };
        assert!(bounds.allows(&quiet));
        assert!(!bounds.allows(&OtherActivity { cpu_share: 0.06, ..quiet.clone() }));
        assert!(!bounds.allows(&OtherActivity { packets_per_s: 21.0, ..quiet.clone() }));
        let patience = Duration::from_millis(1);
        let named = QuietCondition { patience, interfaces: vec!["no such".to_owned()], ..bounds };
        let error = named.wait(|| false).unwrap_err();
        assert!(error.contains("no network interface no such"), "{error}");
        let mut seen = LoadSeen::default();
        quiet.tell(&mut seen);
        assert_eq!((seen.others_cpu_share, seen.hardware_packets_per_s), (0.05, 20.0));
    }

    #[test]
    fn our_own_time_is_not_that_of_others() {
        let watch = ActivityCounters::begin(&[]);
        // A load that took all CPU time leaves none for others.
        assert!(watch.end(1e9).cpu_share.abs() < f64::EPSILON);
        let root = tempfile::tempdir().unwrap();
        assert_eq!(own_ticks(root.path()), 0);
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let stat = "42 (a) b) S 1 1 1 0 -1 0 0 0 0 0 30 12 5 2 20 0 1 0 5";
        fs::write(root.path().join("proc/self/stat"), stat).unwrap();
        assert_eq!(own_ticks(root.path()), 49);
    }
}
