//! Frames that software passes to other processors (Documentation/networking/scaling.rst, RPS).

use crate::doctor::{Evidence, Finding, MachineFiles, Write};
use millstream_cpu::CpuSet;

/// Removes some CPUs from a mask like `00000000,00000003`, with the same number of digits; `None`
/// where the mask has none of them, or is invalid.
fn without(mask: &str, cpus: &CpuSet) -> Option<String> {
    let groups = mask.split(',').rev().map(|hex| u32::from_str_radix(hex, 16));
    let mut groups: Vec<u32> = groups.collect::<Result<_, _>>().ok()?;
    let before = groups.clone();
    for cpu in cpus.iter() {
        if let Some(bits) = groups.get_mut(cpu / 32) {
            *bits &= !(1 << (cpu % 32));
        }
    }
    let texts = mask.split(',').zip(groups.iter().rev());
    let texts = texts.map(|(text, bits)| format!("{bits:0width$x}", width = text.len()));
    (groups != before).then(|| texts.collect::<Vec<_>>().join(","))
}

/// Checks whether software passes frames on to CPUs of the stream (RPS).
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let stream = view.stream_cpus();
    let mut found = Vec::new();
    for interface in view.interfaces() {
        let folder = format!("sys/class/net/{interface}/queues");
        let queues = view.names(&folder).into_iter().filter(|name| name.starts_with("rx-"));
        let path = |queue: &String| format!("{folder}/{queue}/rps_cpus");
        let masks: Vec<_> = queues.filter_map(|queue| view.read(&path(&queue))).collect();
        if masks.is_empty() {
            continue;
        }
        let mend = |mask: &Evidence| {
            let path = mask.path.trim_start_matches('/').to_owned();
            // The remaining CPUs share the work; without any, frames stay where they arrive.
            Some((mask.clone(), Write { path, text: without(&mask.value, &stream)? }))
        };
        let (rivals, writes): (Vec<_>, Vec<_>) = masks.iter().filter_map(mend).unzip();
        let finding = match rivals.is_empty() {
            true => Finding::good("no frames are passed to the stream's CPUs").seen(masks),
            false => Finding::matters(format!("{} queues pass frames to them", rivals.len()))
                .mend_by_writes(writes)
                .seen(rivals),
        };
        found.push(finding.about(interface));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{check, without};
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;
    use crate::doctor::{Focus, MachineFiles};

    #[test]
    fn masks_are_read_from_the_right() {
        let without = |mask: &str, cpus: &str| without(mask, &cpus.parse().unwrap());
        assert_eq!((without("2", "1"), without("2", "0,2")), (Some("0".into()), None));
        assert_eq!(without("1,00000000", "32").unwrap(), "0,00000000");
        assert_eq!(without("f,ffffffff", "0-31,33").unwrap(), "d,00000000");
        assert_eq!([without("1,00000000", "0"), without("nonsense", "0,99")], [None, None]);
    }

    #[test]
    fn steering_to_the_streams_cpus_costs() {
        let file = "sys/class/net/eth0/queues/rx-0/rps_cpus";
        let machine = |mask| TestMachine::with_two_cpus().with_eth0().with(file, mask);
        let found = machine("3\n").one(check);
        assert_eq!((found.verdict, found.subject.as_deref()), (Matters, Some("eth0")));
        assert_eq!(found.mend.unwrap().command, format!("echo 1 > /{file}"));
        let alone = machine("2\n").one(check);
        assert_eq!(alone.mend.unwrap().command, format!("echo 0 > /{file}"), "nobody is left");
        assert_eq!(machine("1\n").verdict(check), Good);
        assert_eq!(TestMachine::with_two_cpus().with_eth0().verdict(check), Absent);
    }

    #[test]
    fn the_other_cpus_go_on_sharing_the_work() {
        let mask = "sys/class/net/eth0/queues/rx-0/rps_cpus";
        let eight = TestMachine::new().with("sys/devices/system/cpu/online", "0-7\n").with_eth0();
        let machine = eight.with(mask, "ff\n");
        let focus = Focus { cpus: Some("2-3".parse().unwrap()), ..Focus::default() };
        let found = check(&MachineFiles::of(machine.view().root(), focus));
        assert_eq!(found[0].mend.as_ref().unwrap().writes[0].text, "f3");
    }
}
