//! Identity of machines for stored plans.

use millstream_cpu::{Cache, Environment, Topology};
use std::fmt::Write;

/// A machine, as far as a plan depends on it: processor, topology of its CPUs, those that this
/// process may use, and the kernel's major and minor number. All as text, so that a stored plan is
/// readable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MachineDescription {
    /// All of it in one line.
    pub description: String,
}

impl MachineDescription {
    /// Describes a machine from its record and topology.
    #[must_use]
    pub fn of(environment: &Environment, topology: Option<&Topology>) -> Self {
        let model = environment.cpu_model.as_deref().unwrap_or(&environment.architecture);
        let release = environment.kernel_release.as_deref().unwrap_or("unknown");
        let kernel: Vec<&str> = release.split(['.', '-', '+']).take(2).collect();
        let (allowed, kernel) = (&environment.cpus_allowed, kernel.join("."));
        let mut description = format!("{model}; CPUs {allowed}; Linux {kernel}");
        for core in topology.map_or(&[][..], |topology| &topology.cores) {
            let near = &core.smt_siblings;
            let (cpu, package, node) = (core.cpu, core.package, core.node);
            let _ = write!(description, "; CPU {cpu}: package {package} node {node} core {near}");
            for Cache { level, size_bytes, shared_by } in &core.caches {
                let kib = size_bytes >> 10;
                let _ = write!(description, " L{level} {kib} KiB of {shared_by}");
            }
        }
        Self { description }
    }

    /// Returns processor, CPUs and kernel.
    #[must_use]
    pub fn short(&self) -> &str {
        self.description.split("; CPU ").next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_cpu::CpuSet;
    use std::path::Path;

    #[test]
    fn a_new_kernel_or_fewer_cpus_make_another_machine_and_a_fix_does_not() {
        let topology = Topology::read(Path::new("/")).ok();
        let mut environment = Environment::read(Path::new("/"), "");
        environment.kernel_release = Some("6.12.1-amd64".to_owned());
        let machine = MachineDescription::of(&environment, topology.as_ref());
        assert!(machine.short().ends_with("Linux 6.12"), "{}", machine.short());
        environment.kernel_release = Some("6.12.38+deb13-amd64".to_owned());
        assert_eq!(MachineDescription::of(&environment, topology.as_ref()), machine);
        environment.kernel_release = Some("6.13.0".to_owned());
        assert_ne!(MachineDescription::of(&environment, topology.as_ref()), machine);
        environment.kernel_release = Some("6.12.1".to_owned());
        environment.cpus_allowed = CpuSet::from_iter([7]);
        assert_ne!(MachineDescription::of(&environment, topology.as_ref()), machine);
    }
}
