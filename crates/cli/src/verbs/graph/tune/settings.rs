//! Settings of the machine that no plan changes, and that make any plan faster or slower.

use millstream_cpu::CpuSet;
use millstream_host::doctor::{Finding, Focus, MachineFiles, RULES, examine};
use std::fmt::Write;
use std::path::Path;

/// The rules about the clock frequency, the kernel, and neighbours on a core.
const ASKED: [&str; 5] = ["governor", "idle-states", "preemption", "mitigations", "smt-rivals"];

/// Returns what the machine below `root` could be set to for a graph on these CPUs.
pub fn advice(root: &Path, cpus: &CpuSet) -> Vec<Finding> {
    let focus = Focus { cpus: Some(cpus.clone()), ..Focus::default() };
    let rules = RULES.iter().filter(|rule| ASKED.contains(&rule.id));
    let found = examine(rules, &MachineFiles::of(root, focus));
    found.into_iter().filter(|finding| finding.verdict.costs()).collect()
}

/// The advice in lines; empty without any.
pub fn lines(found: &[Finding]) -> String {
    let mut text = String::new();
    for finding in found {
        let _ = write!(text, "machine: {}", finding.says);
        if let Some(mend) = &finding.mend {
            let _ = write!(text, "; {}", mend.command);
        }
        text.push('\n');
    }
    if !found.is_empty() {
        text += "no plan changes these: `millstream host doctor` has the reasons; tune again \
                 afterwards\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_frequency_of_the_graphs_cpus_is_told_with_its_remedy() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/devices/system/cpu/cpu1/cpufreq");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("scaling_governor"), "powersave\n").unwrap();
        std::fs::write(root.path().join("sys/devices/system/cpu/online"), "0-1\n").unwrap();
        let of = |cpu: usize| {
            let found = advice(root.path(), &CpuSet::from_iter([cpu]));
            found.into_iter().filter(|finding| finding.rule == "governor").collect::<Vec<_>>()
        };
        assert_eq!(of(0), []);
        let text = lines(&of(1));
        assert!(text.starts_with("machine: the clock frequency of 1 "), "{text}");
        assert!(text.contains("performance"), "{text}");
        assert_eq!(lines(&[]), "");
    }
}
