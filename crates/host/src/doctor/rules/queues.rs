//! The number of active queues of a card.

use crate::doctor::{Evidence, Finding, MachineFiles};

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let finding = |interface: String| {
        let (now, max) = view.nic(&interface)?.channels?;
        let (have, could) = (now.receiving(), max.receive.max(max.combined));
        let seen = Evidence {
            path: format!("ethtool -l {interface}"),
            value: format!("{have} of {could} receive"),
        };
        let finding = match have > 1 || could < 2 {
            true => Finding::good(format!("{have} of {could} queues receive")),
            false => {
                let kind = if max.combined > 0 { "combined" } else { "rx" };
                Finding::minor(format!("one queue receives, {could} could"))
                    .mend_by_hand(format!("ethtool -L {interface} {kind} 2"))
            }
        };
        Some(finding.about(interface).seen([seen]))
    };
    view.interfaces().into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    fn machine(now: u32, max: u32) -> TestMachine {
        let of = |count| format!(r#"{{"receive": 0, "transmit": 0, "combined": {count}}}"#);
        let nic = format!(r#"{{"driver": "ice", "channels": [{}, {}]}}"#, of(now), of(max));
        TestMachine::new().with_eth0().with("ethtool/eth0.json", &nic)
    }

    #[test]
    fn one_queue_of_many_costs() {
        let found = machine(1, 8).one(check);
        assert_eq!((found.verdict, &*found.says), (Minor, "one queue receives, 8 could"));
        assert_eq!(found.mend.unwrap().command, "ethtool -L eth0 combined 2");
        assert_eq!(machine(1, 1).verdict(check), Good);
        assert_eq!(machine(8, 8).verdict(check), Good);
        assert_eq!(TestMachine::new().with_eth0().verdict(check), Absent);
    }
}
