//! The machine as rules see it.

use super::Evidence;
use super::nic::DriverAnswers;
use millstream_cpu::CpuSet;
use millstream_cpu::sched::Class;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the question is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Focus {
    /// CPUs that the stream is to have; none: all but the first one online.
    pub cpus: Option<CpuSet>,
    /// Interfaces that the stream comes over; none: all that are up, without loopback.
    pub interfaces: Option<Vec<String>>,
    /// Scheduling class of the stream's threads; none: FIFO 50.
    pub class: Option<Class>,
    /// Samples a second; none: [`RATE_HZ`].
    pub rate_hz: Option<f64>,
}

/// The rate that a machine is judged by where none is given, samples a second.
pub const RATE_HZ: f64 = 50e6;

/// A machine: files below a root folder. `/` is this one, and only there the kernel is asked for
/// what stands in no file.
#[derive(Clone, Debug)]
pub struct MachineFiles {
    root: PathBuf,
    focus: Focus,
}

impl MachineFiles {
    /// Looks below `root`.
    #[must_use]
    pub fn of(root: &Path, focus: Focus) -> Self {
        Self { root: root.to_owned(), focus }
    }

    /// Whether it is the machine that this runs on, so that something can be measured.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The root folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The content of a file without white space around it; none where it cannot be read.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<Evidence> {
        let text = fs::read(self.root.join(path)).ok()?;
        let value = String::from_utf8_lossy(&text).trim().to_owned();
        Some(Evidence { path: format!("/{path}"), value })
    }

    /// The number in a file.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<(i64, Evidence)> {
        let evidence = self.read(path)?;
        Some((evidence.value.parse().ok()?, evidence))
    }

    /// The choice in a file of alternatives, `always [madvise] never`.
    #[must_use]
    pub fn choice(&self, path: &str) -> Option<(String, Evidence)> {
        let evidence = self.read(path)?;
        let chosen = evidence.value.split_once('[')?.1.split_once(']')?.0.to_owned();
        Some((chosen, evidence))
    }

    /// The first line of a file that begins with `start`, without it and white space.
    #[must_use]
    pub fn line(&self, path: &str, start: &str) -> Option<Evidence> {
        let all = self.read(path)?;
        let value = all.value.lines().find_map(|line| line.strip_prefix(start))?;
        Some(Evidence { path: format!("{} {start}", all.path), value: value.trim().to_owned() })
    }

    /// Names in a folder, sorted; none where there is no folder.
    #[must_use]
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Whether a file's mode lets its owner write it.
    #[must_use]
    pub fn is_for_writing(&self, path: &str) -> bool {
        let file = fs::metadata(self.root.join(path));
        file.is_ok_and(|file| file.permissions().mode() & 0o200 != 0)
    }

    /// The CPUs online.
    #[must_use]
    pub fn online(&self) -> CpuSet {
        let list = self.read("sys/devices/system/cpu/online");
        list.and_then(|list| list.value.parse().ok()).unwrap_or_default()
    }

    /// The CPUs that the stream is to have.
    #[must_use]
    pub fn stream_cpus(&self) -> CpuSet {
        match &self.focus.cpus {
            Some(cpus) => cpus.clone(),
            None => self.online().iter().skip(1).collect(),
        }
    }

    /// The scheduling class of the stream's threads.
    #[must_use]
    pub fn class(&self) -> Class {
        self.focus.class.unwrap_or(Class::Fifo(50))
    }

    /// The stream's samples a second.
    #[must_use]
    pub fn rate_hz(&self) -> f64 {
        self.focus.rate_hz.unwrap_or(RATE_HZ)
    }

    /// How often a second something came that has come so many times since boot; none where the
    /// machine does not tell for how long it has been up.
    #[must_use]
    pub fn per_second(&self, times: u64) -> Option<f64> {
        let up = self.read("proc/uptime")?;
        let seconds: f64 = up.value.split_whitespace().next()?.parse().ok()?;
        (seconds > 0.0).then(|| times as f64 / seconds)
    }

    /// The interfaces that the stream comes over.
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

    /// What an interface's driver tells: asked of the kernel here, `ethtool/NAME.json` below any
    /// other root.
    #[must_use]
    pub fn nic(&self, interface: &str) -> Option<DriverAnswers> {
        if self.is_here() {
            return DriverAnswers::ask(interface);
        }
        let text = fs::read(self.root.join(format!("ethtool/{interface}.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    }
}
