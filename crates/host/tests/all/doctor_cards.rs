//! The commands of the rules about network cards, on a veth pair in a namespace.

use millstream_host::doctor::{Finding, Focus, MachineFiles, RULES, Verdict, examine};
use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};
use std::path::Path;
use std::process::Command;

#[test]
fn ethtool_agrees_with_the_evidence_and_takes_the_commands() {
    let Some(pair) = VethPair::new(PairOptions { mtu: 1500, queues: 4 }) else { return };
    if Command::new("ethtool").arg("--version").output().is_err() {
        eprintln!("skipped: there is no ethtool here (Debian package ethtool)");
        return;
    }
    let look = |id: &str| -> Finding {
        let focus = Focus { interfaces: Some(vec![INTERFACE.to_owned()]), ..Focus::default() };
        let rule = RULES.iter().find(|rule| rule.id == id).unwrap();
        pair.left.run(|| examine([rule], &MachineFiles::of(Path::new("/"), focus))).remove(0)
    };
    pair.left.sh(&format!("ethtool -K {INTERFACE} gro off tx off"));
    pair.left.sh(&format!("ethtool -L {INTERFACE} rx 1 tx 1"));
    let shown = [
        ("offloads", "-k", "generic-receive-offload: off", Verdict::Matters),
        ("queues", "-l", "RX:\t\t1", Verdict::Minor),
    ];
    for (id, asked, shown, verdict) in shown {
        let found = look(id);
        assert_eq!(found.verdict, verdict, "{found:?}");
        assert_eq!(found.evidence[0].path, format!("ethtool {asked} {INTERFACE}"));
        let told = pair.left.sh(&found.evidence[0].path);
        assert!(told.contains(shown), "{told}");
        pair.left.sh(&found.mend.unwrap().command);
        let found = look(id);
        assert_eq!(found.verdict, Verdict::Good, "{found:?}");
    }
}
