//! Offloads: work that the card, or the kernel in batches, could do.

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};
use crate::ethtool::Offload;

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let name = |offload: Offload| match offload {
        Offload::TransmitChecksum => "tx",
        Offload::ReceiveChecksum => "rx",
        Offload::Gro => "gro",
        Offload::Gso => "gso",
        Offload::Tso => "tso",
    };
    let finding = |interface: String| {
        // TSO concerns only TCP, which carries no samples.
        let off: Vec<_> =
            view.nic(&interface)?.off.into_iter().filter(|off| *off != Offload::Tso).collect();
        let names: Vec<_> = off.iter().map(|off| name(*off)).collect();
        let value = if off.is_empty() { "all on".into() } else { names.join(", ") + " off" };
        let seen = Evidence { path: format!("ethtool -k {interface}"), value };
        let finding = match off.is_empty() {
            true => Finding::good("checksums, GSO and GRO are on"),
            false => {
                let switches: Vec<_> = names.iter().map(|name| format!("{name} on")).collect();
                let are_trains = off.contains(&Offload::Gro) || off.contains(&Offload::Gso);
                let weight = if are_trains { Verdict::Matters } else { Verdict::Minor };
                let finding = Finding::of(weight, format!("off: {}", names.join(", ")))
                    .mend_by_hand(format!("ethtool -K {interface} {}", switches.join(" ")));
                match are_trains {
                    true => finding.cost("a third of the rate or less: docs/evidence/links-udp.md"),
                    false => finding,
                }
            }
        };
        Some(finding.about(interface).seen([seen]))
    };
    view.interfaces().into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor};
    use crate::doctor::machine::TestMachine;

    fn machine(off: &str) -> TestMachine {
        let nic = format!(r#"{{"driver": "veth", "off": {off}}}"#);
        TestMachine::new().with_eth0().with("ethtool/eth0.json", &nic)
    }

    #[test]
    fn what_is_off_is_named() {
        let found = machine(r#"["gro", "tso"]"#).one(check);
        assert_eq!((found.verdict, &*found.says), (Matters, "off: gro"));
        assert_eq!(found.mend.unwrap().command, "ethtool -K eth0 gro on");
        assert_eq!(machine(r#"["receive-checksum"]"#).verdict(check), Minor);
        assert_eq!(machine("[]").verdict(check), Good);
        assert_eq!(machine(r#"["tso"]"#).verdict(check), Good);
        assert_eq!(TestMachine::new().with_eth0().verdict(check), Absent);
    }
}
