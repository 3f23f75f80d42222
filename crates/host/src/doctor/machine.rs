//! Machines made of files, for tests of rules.

use super::{DoctorRule, Finding, Focus, MachineFiles, Verdict, examine};
use std::fs;
use tempfile::TempDir;

/// A machine with the files that a test gives it.
pub struct TestMachine(TempDir);

impl TestMachine {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One with two CPUs online; the stream is to have CPU 1.
    pub fn with_two_cpus() -> Self {
        Self::new().with("sys/devices/system/cpu/online", "0-1\n")
    }

    /// Adds a file.
    pub fn with(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Adds an interface that is up, `eth0`.
    pub fn with_eth0(self) -> Self {
        self.with("sys/class/net/eth0/operstate", "up\n").with("sys/class/net/eth0/type", "1\n")
    }

    /// How rules see it.
    pub fn view(&self) -> MachineFiles {
        MachineFiles::of(self.0.path(), Focus::default())
    }

    /// What a rule finds.
    pub fn all(&self, rule: &DoctorRule) -> Vec<Finding> {
        examine([rule], &self.view())
    }

    /// The only thing that a rule finds.
    pub fn one(&self, rule: &DoctorRule) -> Finding {
        let mut found = self.all(rule);
        assert_eq!(found.len(), 1, "{found:#?}");
        found.remove(0)
    }

    /// The verdict of the only thing that a rule finds.
    pub fn verdict(&self, rule: &DoctorRule) -> Verdict {
        self.one(rule).verdict
    }
}
