//! The time that a card collects frames before an interrupt.

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};

/// The approximate time in which the kernel itself hands a frame over, microseconds.
const WAIT_MAX_US: u32 = 16;

/// A wait longer than the balanced defaults of drivers, microseconds.
const WAIT_GREAT_US: u32 = 100;

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let finding = |interface: String| {
        let found = view.nic(&interface)?.coalescing?;
        let adaptive = if found.adaptive { "adaptive" } else { "fixed" };
        let seen = Evidence {
            path: format!("ethtool -c {interface}"),
            value: format!("{} us, {} frames, {adaptive}", found.receive_us, found.receive_frames),
        };
        let finding = match (found.adaptive, found.receive_us) {
            (true, _) => Finding::unknown("the driver adapts the wait to the traffic"),
            (false, wait) if wait > WAIT_MAX_US => {
                let weight = if wait > WAIT_GREAT_US { Verdict::Matters } else { Verdict::Minor };
                Finding::of(weight, "the card waits before it interrupts")
                    .cost(format!("up to {wait} us a packet; it saves interrupts"))
                    .mend_by_hand(format!("ethtool -C {interface} rx-usecs 8"))
            }
            (false, wait) => Finding::good(format!("the card waits {wait} us at most")),
        };
        Some(finding.about(interface).seen([seen]))
    };
    view.interfaces().into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor, Unknown};
    use crate::doctor::machine::TestMachine;

    fn machine(wait_us: u32, adaptive: bool) -> TestMachine {
        let coalescing =
            format!(r#"{{"receive_us": {wait_us}, "receive_frames": 0, "adaptive": {adaptive}}}"#);
        let nic = format!(r#"{{"driver": "ice", "coalescing": {coalescing}}}"#);
        TestMachine::new().with_eth0().with("ethtool/eth0.json", &nic)
    }

    #[test]
    fn a_long_wait_costs_itself() {
        let found = machine(50, false).one(check);
        assert_eq!(found.verdict, Minor);
        assert_eq!(machine(250, false).verdict(check), Matters);
        assert_eq!(found.cost.unwrap(), "up to 50 us a packet; it saves interrupts");
        assert_eq!(machine(8, false).verdict(check), Good);
        assert_eq!(machine(50, true).verdict(check), Unknown);
        assert_eq!(TestMachine::new().with_eth0().verdict(check), Absent);
    }
}
