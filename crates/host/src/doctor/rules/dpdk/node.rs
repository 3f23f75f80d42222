//! The NUMA node of a device, compared with the memory of its stream.

use super::{DEVICES, devices};
use crate::doctor::{Finding, MachineFiles};
use millstream_cpu::CpuSet;

/// Checks whether each device is on the memory node of the stream.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let stream = view.stream_cpus();
    let of = |device: super::Device| {
        let (node, seen) = view.number(&format!("{DEVICES}/{}/numa_node", device.address))?;
        if node < 0 {
            return Some(Finding::good("there is one memory node").seen([seen]));
        }
        let cpus = view.read(&format!("sys/devices/system/node/node{node}/cpulist"))?;
        let near: CpuSet = cpus.value.parse().ok()?;
        let finding = match stream.iter().find(|cpu| !near.contains(*cpu)) {
            None => Finding::good(format!("next to the stream's CPUs, on node {node}")),
            Some(far) => Finding::matters(format!("on node {node}, but CPU {far} is not"))
                .mend_by_hand(format!("give the link a CPU of its node: cpu= one of {near}")),
        };
        Some(finding.about(device.address).seen([seen, cpus]))
    };
    devices(view).into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::{DEVICES, check};
    use crate::doctor::Verdict::{Absent, Good, Matters};

    #[test]
    fn the_stream_is_to_be_on_the_devices_node() {
        let file = format!("{DEVICES}/0000:03:00.0/numa_node");
        let with = |node: &str| machine("vfio-pci", None).with(&file, node);
        assert_eq!(with("-1\n").verdict(check), Good);
        let two = |node: &str| {
            with(node)
                .with("sys/devices/system/node/node0/cpulist", "0\n")
                .with("sys/devices/system/node/node1/cpulist", "1\n")
        };
        assert_eq!(two("1\n").verdict(check), Good);
        let far = two("0\n").one(check);
        assert_eq!(far.verdict, Matters);
        assert!(far.mend.unwrap().command.contains("one of 0"));
        assert_eq!(machine("vfio-pci", None).verdict(check), Absent);
    }
}
