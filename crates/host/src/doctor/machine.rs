//! Machines made of files, for tests of rules.

use super::{Check, Finding, Focus, MachineFiles, Topic, Verdict, examine, rule};
use std::fs;
use tempfile::TempDir;

/// A machine with the files that a test gives it.
pub struct TestMachine(TempDir);

impl TestMachine {
    /// Returns an empty machine.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns a machine with two CPUs online; the stream gets CPU 1.
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

    /// Adds the interface `eth0`, up.
    pub fn with_eth0(self) -> Self {
        self.with("sys/class/net/eth0/operstate", "up\n").with("sys/class/net/eth0/type", "1\n")
    }

    /// Returns the view that rules get.
    pub fn view(&self) -> MachineFiles {
        MachineFiles::of(self.0.path(), Focus::default())
    }

    /// Returns all findings of a rule.
    pub fn all(&self, check: Check) -> Vec<Finding> {
        examine([&rule(Topic::Cpu, "", check)], &self.view())
    }

    /// Returns the only finding of a rule.
    pub fn one(&self, check: Check) -> Finding {
        let mut found = self.all(check);
        assert_eq!(found.len(), 1, "{found:#?}");
        found.remove(0)
    }

    /// Returns the verdict of the only finding of a rule.
    pub fn verdict(&self, check: Check) -> Verdict {
        self.one(check).verdict
    }
}
