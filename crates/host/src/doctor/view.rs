//! The view of the machine that rules get.

use super::Evidence;
use super::nic::DriverAnswers;
use crate::journal::marked;
use millstream_cpu::sched::Class;
use millstream_cpu::{CpuSet, folders};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The subject of the examination.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Focus {
    /// The CPUs of the stream; `None`: all but the first one online.
    pub cpus: Option<CpuSet>,
    /// The interfaces of the stream; `None`: all that are up, without loopback.
    pub interfaces: Option<Vec<String>>,
    /// The scheduling class of the stream's threads; `None`: FIFO 50.
    pub class: Option<Class>,
    /// Samples a second; `None`: [`RATE_HZ`].
    pub rate_hz: Option<f64>,
}

/// The assumed rate of the stream when none is given, samples a second.
pub const RATE_HZ: f64 = 50e6;

/// A machine: files below a root folder. `/` is this machine; only for it, the kernel is queried
/// for facts that are in no file.
#[derive(Clone, Debug)]
pub struct MachineFiles {
    root: PathBuf,
    focus: Focus,
}

impl MachineFiles {
    /// Returns the machine below `root`.
    #[must_use]
    pub fn of(root: &Path, focus: Focus) -> Self {
        Self { root: root.to_owned(), focus }
    }

    /// Returns whether it is this machine, which can be measured.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Returns the root folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the content of a file without white space around it; `None` where it cannot be read.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<Evidence> {
        let text = fs::read(self.root.join(path)).ok()?;
        let value = String::from_utf8_lossy(&text).trim().to_owned();
        Some(Evidence { path: format!("/{path}"), value })
    }

    /// Returns the number in a file.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<(i64, Evidence)> {
        let evidence = self.read(path)?;
        Some((evidence.value.parse().ok()?, evidence))
    }

    /// Returns the choice in a file of alternatives, `always [madvise] never` or `none (voluntary)
    /// full`.
    #[must_use]
    pub fn choice(&self, path: &str) -> Option<(String, Evidence)> {
        let evidence = self.read(path)?;
        Some((marked(&evidence.value)?.to_owned(), evidence))
    }

    /// Returns the first line of a file that begins with `start`, without `start` and white space.
    #[must_use]
    pub fn line(&self, path: &str, start: &str) -> Option<Evidence> {
        let all = self.read(path)?;
        let value = all.value.lines().find_map(|line| line.strip_prefix(start))?;
        Some(Evidence { path: format!("{} {start}", all.path), value: value.trim().to_owned() })
    }

    /// Returns the names in a folder, sorted; empty where there is no folder.
    #[must_use]
    pub fn names(&self, folder: &str) -> Vec<String> {
        folders::names(&self.root.join(folder))
    }

    /// Returns whether there is such a file or folder.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Returns whether a file's mode lets its owner write it.
    #[must_use]
    pub fn is_for_writing(&self, path: &str) -> bool {
        let file = fs::metadata(self.root.join(path));
        file.is_ok_and(|file| file.permissions().mode() & 0o200 != 0)
    }

    /// Returns the CPUs online.
    #[must_use]
    pub fn online(&self) -> CpuSet {
        let list = self.read("sys/devices/system/cpu/online");
        list.and_then(|list| list.value.parse().ok()).unwrap_or_default()
    }

    /// Returns the CPUs of the stream.
    #[must_use]
    pub fn stream_cpus(&self) -> CpuSet {
        match &self.focus.cpus {
            Some(cpus) => cpus.clone(),
            None => self.online().iter().skip(1).collect(),
        }
    }

    /// Returns the scheduling class of the stream's threads.
    #[must_use]
    pub fn class(&self) -> Class {
        self.focus.class.unwrap_or(Class::Fifo(50))
    }

    /// Returns the stream's samples a second.
    #[must_use]
    pub fn rate_hz(&self) -> f64 {
        self.focus.rate_hz.unwrap_or(RATE_HZ)
    }

    /// Converts a count since boot to a rate per second; `None` where the machine does not report
    /// its uptime.
    #[must_use]
    pub fn per_second(&self, times: u64) -> Option<f64> {
        let up = self.read("proc/uptime")?;
        let seconds: f64 = up.value.split_whitespace().next()?.parse().ok()?;
        (seconds > 0.0).then(|| times as f64 / seconds)
    }

    /// Returns the interfaces of the stream.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        if let Some(interfaces) = &self.focus.interfaces {
            return interfaces.clone();
        }
        const LOOPBACK: &str = "772";
        let names = self.names("sys/class/net").into_iter();
        let carries = |name: &String| {
            let read = |file: &str| self.read(&format!("sys/class/net/{name}/{file}"));
            let is = |file, wanted| read(file).is_some_and(|found| found.value == wanted);
            !is("type", LOOPBACK) && is("operstate", "up")
        };
        names.filter(carries).collect()
    }

    /// Returns the answers of an interface's driver: from the kernel for this machine, from
    /// `ethtool/NAME.json` below any other root.
    #[must_use]
    pub fn nic(&self, interface: &str) -> Option<DriverAnswers> {
        if self.is_here() {
            return DriverAnswers::ask(interface);
        }
        let text = fs::read(self.root.join(format!("ethtool/{interface}.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
