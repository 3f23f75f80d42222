//! Frames that software hands to other processors (Documentation/networking/scaling.rst, RPS).

use crate::doctor::{Finding, Rule, Topic, View, Write};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "receive-steering",
    topic: Topic::Network,
    why: "RPS hands frames to another CPU by an interrupt, and ours may be the one",
    check,
};

/// Whether a mask like `00000000,00000003` has one of the CPUs.
fn meets(mask: &str, cpus: impl Iterator<Item = usize>) -> bool {
    let groups: Vec<_> = mask.split(',').rev().map(|hex| u32::from_str_radix(hex, 16)).collect();
    let mut cpus = cpus;
    cpus.any(|cpu| matches!(groups.get(cpu / 32), Some(Ok(bits)) if bits >> (cpu % 32) & 1 == 1))
}

fn check(view: &View) -> Vec<Finding> {
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
        let rivals: Vec<_> =
            masks.iter().filter(|mask| meets(&mask.value, stream.iter())).cloned().collect();
        let write = |mask: &crate::doctor::Evidence| Write {
            path: mask.path.trim_start_matches('/').to_owned(),
            text: "0".to_owned(),
        };
        let finding = match rivals.is_empty() {
            true => Finding::good("no frames are handed to the stream's CPUs").seen(masks),
            false => Finding::costs(format!("{} queues hand frames there", rivals.len()))
                .mend_by_writes(rivals.iter().map(write).collect())
                .seen(rivals),
        };
        found.push(finding.about(interface));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{RULE, meets};
    use crate::doctor::Verdict::{Absent, Costs, Good};
    use crate::doctor::machine::Machine;

    #[test]
    fn masks_are_read_from_the_right() {
        assert!(meets("2", [1].into_iter()) && !meets("2", [0, 2].into_iter()));
        assert!(meets("1,00000000", [32].into_iter()) && !meets("1,00000000", [0].into_iter()));
        assert!(!meets("nonsense", [0, 99].into_iter()));
    }

    #[test]
    fn steering_to_the_streams_cpus_costs() {
        let file = "sys/class/net/eth0/queues/rx-0/rps_cpus";
        let machine = |mask| Machine::with_two_cpus().with_eth0().with(file, mask);
        let found = machine("3\n").one(&RULE);
        assert_eq!((found.verdict, found.subject.as_deref()), (Costs, Some("eth0")));
        assert_eq!(found.mend.unwrap().command, format!("echo 0 > /{file}"));
        assert_eq!(machine("1\n").verdict(&RULE), Good);
        assert_eq!(Machine::with_two_cpus().with_eth0().verdict(&RULE), Absent);
    }
}
