//! Tests every rule on a machine where it fires: mended by `apply`, by its command, and put back.

mod page;

use super::machine::TestMachine;
use super::{DoctorRule, Finding, RULES, Since, Verdict, apply, examine, undo};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The kind of a rule's mend.
enum By {
    /// Writes, after which the kernel also shows these files with other content.
    Writes(&'static [(&'static str, &'static str)]),
    /// A write into a file of alternatives, and its content afterwards.
    Choice(&'static str),
    /// A command that begins like this.
    Hand(&'static str),
    /// No mend.
    Nothing,
}
use By::{Choice, Hand, Nothing, Writes};

const NIC: &str = r#"{"driver": "x", "off": ["gro"], "channels": [{"receive": 0, "transmit": 0,
    "combined": 1}, {"receive": 0, "transmit": 0, "combined": 8}], "rings": [{"receive": 256,
    "transmit": 256}, {"receive": 8192, "transmit": 8192}], "coalescing": {"receive_us": 50,
    "receive_frames": 64, "adaptive": false}}"#;

/// A rule, the files of a machine where it fires (in addition to two CPUs), and its mend.
type FailingRule = (&'static str, &'static [(&'static str, &'static str)], By);

fn all() -> Vec<FailingRule> {
    const RAISED: &[(&str, &str)] = &[
        ("proc/12/comm", "napi/eth0-1\n"),
        (
            "proc/12/stat",
            "12 (napi/eth0-1) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             0 0 0 0 0 0 0\n",
        ),
        (
            "proc/12/status",
            "Cpus_allowed_list:\t1\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t2\n",
        ),
    ];
    const TABLE: &str = "     CPU0  CPU1\n 24:  7  12  PCI-MSIX  1-edge  eth0-rx-0\n";
    const HELD: &str = "Name:\tx\nCapEff:\t0000000000000000\n";
    const LIMITS: &str =
        "Max realtime priority     0       0\nMax locked memory 65536 65536 bytes\n";
    const PCI: (&str, &str) = ("sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n");
    vec![
        (
            "governor",
            &[("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")],
            Writes(&[]),
        ),
        (
            "idle-states",
            &[
                ("sys/devices/system/cpu/cpu1/cpuidle/state3/latency", "133\n"),
                ("sys/devices/system/cpu/cpu1/cpuidle/state3/disable", "0\n"),
            ],
            Writes(&[]),
        ),
        (
            "smt-rivals",
            &[("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1\n")],
            Hand("millstream host shield "),
        ),
        (
            "isolation",
            &[("sys/devices/system/cpu/isolated", "\n")],
            Hand("millstream host shield "),
        ),
        (
            "mitigations",
            &[("sys/devices/system/cpu/vulnerabilities/x", "Mitigation: y\n")],
            Nothing,
        ),
        (
            "hypervisor-steal",
            &[
                ("proc/cpuinfo", "flags\t\t: hypervisor\n"),
                ("proc/stat", "cpu  10 0 0 10 0 0 0 10 0 0\n"),
            ],
            Hand("dedicate host CPUs "),
        ),
        ("load", &[("proc/loadavg", "8.04 7.00 5.00 9/300 4711\n")], Hand("end what else runs")),
        (
            "interrupt-time",
            &[("proc/stat", "cpu  1 0 0 1 0 0 0 0\ncpu1 10 0 0 10 0 10 10 0 0 0\n")],
            Hand("send interrupts and packets "),
        ),
        ("rt-throttling", &[("proc/sys/kernel/sched_rt_runtime_us", "950000\n")], Writes(&[])),
        (
            "rt-limit",
            &[("proc/self/status", HELD), ("proc/self/limits", LIMITS)],
            Hand("echo '@audio "),
        ),
        (
            "rt-limit",
            &[
                ("proc/self/status", "CapEff:\t0000000000800000\n"),
                ("proc/self/cgroup", "4:cpu,cpuacct:/a\n"),
                ("sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "0\n"),
            ],
            Writes(&[]),
        ),
        (
            "preemption",
            &[
                ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n"),
                ("sys/kernel/debug/sched/preempt", "none (voluntary) full \n"),
            ],
            Choice("none voluntary (full) \n"),
        ),
        ("timer-migration", &[("proc/sys/kernel/timer_migration", "1\n")], Writes(&[])),
        (
            "watchdog",
            &[("proc/sys/kernel/watchdog", "1\n"), ("proc/sys/kernel/watchdog_cpumask", "0-1\n")],
            Writes(&[]),
        ),
        (
            "watchdog",
            &[("proc/sys/kernel/watchdog", "1\n"), ("proc/sys/kernel/watchdog_cpumask", "1\n")],
            Writes(&[]),
        ),
        (
            "memlock",
            &[("proc/self/status", HELD), ("proc/self/limits", LIMITS)],
            Hand("echo '* - memlock "),
        ),
        (
            "huge-pages",
            &[("proc/sys/vm/nr_hugepages", "8\n"), ("proc/meminfo", "HugePages_Free:        0\n")],
            Writes(&[("proc/meminfo", "HugePages_Free:      128\n")]),
        ),
        (
            "transparent-huge-pages",
            &[("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")],
            Choice("always [madvise] never\n"),
        ),
        (
            "swap",
            &[("proc/swaps", "Filename\n/dev/a\n"), ("proc/sys/vm/swappiness", "60\n")],
            Writes(&[]),
        ),
        ("same-page-merging", &[("sys/kernel/mm/ksm/run", "1\n")], Writes(&[])),
        (
            "numa",
            &[
                ("sys/devices/system/node/node0/cpulist", "0\n"),
                ("sys/devices/system/node/node1/cpulist", "1\n"),
                ("proc/sys/kernel/numa_balancing", "1\n"),
            ],
            Writes(&[]),
        ),
        (
            "numa",
            &[
                ("sys/devices/system/node/node0/cpulist", "0\n"),
                ("sys/devices/system/node/node1/cpulist", "1\n"),
                ("sys/class/net/eth0/device/numa_node", "0\n"),
            ],
            Hand("millstream host shield 0 "),
        ),
        ("receive-buffer", &[("proc/sys/net/core/rmem_max", "212992\n")], Writes(&[])),
        ("send-buffer", &[("proc/sys/net/core/wmem_max", "212992\n")], Writes(&[])),
        (
            "netdev-budget",
            &[("proc/sys/net/core/netdev_budget", "300\n"), ("proc/net/softnet_stat", "1 0 2\n")],
            Writes(&[]),
        ),
        (
            "netdev-backlog",
            &[
                ("proc/sys/net/core/netdev_max_backlog", "1000\n"),
                ("proc/net/softnet_stat", "1 f 0\n"),
            ],
            Writes(&[]),
        ),
        (
            "interrupts",
            &[
                ("proc/interrupts", TABLE),
                ("proc/irq/24/smp_affinity_list", "0-1\n"),
                ("proc/irq/24/effective_affinity_list", "1\n"),
            ],
            Writes(&[]),
        ),
        ("irqbalance", &[("proc/77/comm", "irqbalance\n")], Hand("systemctl stop irqbalance")),
        ("packet-priorities", RAISED, Hand("chrt -f -p 51 12")),
        ("receive-steering", &[("sys/class/net/eth0/queues/rx-0/rps_cpus", "3\n")], Writes(&[])),
        ("ring-sizes", &[("ethtool/eth0.json", NIC)], Hand("ethtool -G eth0 rx 4096 tx 4096")),
        ("queues", &[("ethtool/eth0.json", NIC)], Hand("ethtool -L eth0 combined 2")),
        ("offloads", &[("ethtool/eth0.json", NIC)], Hand("ethtool -K eth0 gro on")),
        ("coalescing", &[("ethtool/eth0.json", NIC)], Hand("ethtool -C eth0 rx-usecs 8")),
        (
            "clock-source",
            &[
                ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
                ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n"),
            ],
            Writes(&[]),
        ),
        (
            "dpdk-pages",
            &[
                ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n"),
                ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n"),
                ("proc/sys/vm/nr_hugepages", "0\n"),
            ],
            Writes(&[("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "256\n")]),
        ),
        ("dpdk-iommu", &[PCI], Hand("sed -i ")),
        ("dpdk-vfio", &[PCI], Hand("modprobe vfio-pci")),
        ("dpdk-driver", &[PCI], Hand("dpdk-devbind.py --bind=vfio-pci 0000:01:00.0")),
        (
            "dpdk-link",
            &[PCI, ("sys/bus/pci/devices/0000:01:00.0/net/eth0/carrier", "0\n")],
            Hand("ip link set eth0 up; ethtool eth0"),
        ),
        (
            "dpdk-node",
            &[
                PCI,
                ("sys/bus/pci/devices/0000:01:00.0/numa_node", "0\n"),
                ("sys/devices/system/node/node0/cpulist", "0\n"),
            ],
            Hand("give the link a CPU of its node"),
        ),
    ]
}

fn machine(files: &[(&str, &str)]) -> TestMachine {
    let bare = TestMachine::with_two_cpus().with_eth0();
    files.iter().fold(bare, |machine, (path, text)| machine.with(path, text))
}

/// Returns all files below a folder except those of the journal.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(root).unwrap().display().to_string();
            match entry.is_dir() {
                true if name == "run" => {}
                true => folders.push(entry),
                false => drop(found.insert(name, fs::read(entry).unwrap())),
            }
        }
    }
    found
}

fn rule(id: &str) -> &'static DoctorRule {
    RULES.iter().find(|rule| rule.id == id).unwrap_or_else(|| panic!("no rule {id}"))
}

/// Returns the finding of the row.
fn found(machine: &TestMachine, id: &str, by: &By) -> Finding {
    let all = examine([rule(id)], &machine.view());
    let is_it = |finding: &Finding| match by {
        Nothing => finding.verdict == Verdict::Unknown,
        Writes(_) | Choice(_) => finding.is_appliable(),
        Hand(_) => finding.verdict.costs() && !finding.is_appliable(),
    };
    let told = format!("{id}: {all:#?}");
    all.into_iter().find(is_it).expect(&told)
}

/// Executes a command like root, on a machine of files: sysctl(8) is a function, and the root
/// another folder.
fn type_in(root: &Path, command: &str) {
    let place = root.display();
    let sysctl = format!(
        "sysctl() {{ [ \"$1\" = -w ] && name=$(echo \"${{2%%=*}}\" | tr . /) && \
         [ -f {place}/proc/sys/$name ] && echo \"${{2#*=}}\" > {place}/proc/sys/$name; }}\n"
    );
    let command = command.replace("> /", &format!("> {place}/"));
    let typed = Command::new("sh").args(["-ec", &format!("{sysctl}{command}")]).output().unwrap();
    assert!(typed.status.success(), "{command}: {}", String::from_utf8_lossy(&typed.stderr));
}

#[test]
fn every_rule_is_in_the_table() {
    let told: BTreeSet<_> = all().iter().map(|(id, ..)| *id).collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(told, rules);
}

#[test]
fn what_is_mended_by_writes_is_good_then_and_comes_back_byte_for_byte() {
    for (id, ill, by) in all() {
        let Writes(then) = by else { continue };
        let machine = machine(ill);
        let (view, before) = (machine.view(), files(machine.view().root()));
        let finding = found(&machine, id, &by);
        assert!(!finding.evidence.is_empty(), "{id}");
        for seen in finding.evidence.iter().filter(|seen| seen.path.starts_with('/')) {
            // For a line of a file, the path is the file's path and the beginning of the line.
            let path = seen.path.split(' ').next().unwrap().trim_start_matches('/');
            assert!(
                before.contains_key(path),
                "{id}: evidence of a file that is not there: {seen:?}"
            );
        }
        let command = finding.mend.as_ref().unwrap().command.clone();
        let done = apply(view.root(), std::slice::from_ref(&finding), &[id]);
        assert!(done.len() == 1 && done[0].error.is_none(), "{id}: {done:?}");
        let applied = files(view.root());
        assert_ne!(applied, before, "{id}");
        let play = |texts: &[(&str, &str)]| {
            texts.iter().for_each(|(path, text)| fs::write(view.root().join(path), text).unwrap());
        };
        play(then);
        let again = examine([rule(id)], &view);
        let is_good = |finding: &Finding| finding.verdict == Verdict::Good;
        assert!(!again.is_empty() && again.iter().all(is_good), "{id}: {again:#?}");
        let undone = undo(view.root(), Since::Left).unwrap();
        assert!(!undone.is_empty() && undone.iter().all(|one| one.put_back), "{id}: {undone:?}");
        play(
            &ill.iter()
                .filter(|(path, _)| then.iter().any(|(other, _)| other == path))
                .copied()
                .collect::<Vec<_>>(),
        );
        assert_eq!(files(view.root()), before, "{id}");
        type_in(view.root(), &command);
        assert_eq!(files(view.root()), applied, "{id}: {command} does what --apply does");
    }
}

#[test]
fn what_is_mended_by_hand_is_said_as_a_command_and_never_done() {
    for (id, ill, by) in all() {
        if let Writes(_) | Choice(_) = by {
            continue;
        }
        let machine = machine(ill);
        let (view, before) = (machine.view(), files(machine.view().root()));
        let finding = found(&machine, id, &by);
        assert!(apply(view.root(), std::slice::from_ref(&finding), &[id]).is_empty(), "{id}");
        assert_eq!(files(view.root()), before, "{id}");
        let Hand(start) = by else {
            assert_eq!(finding.mend, None, "{id}");
            continue;
        };
        let command = finding.mend.expect(id).command;
        assert!(command.starts_with(start), "{id}: {command}");
        let parsed = Command::new("sh").args(["-nc", &command]).output().unwrap();
        let is_advice = ["dedicate ", "give the "].iter().any(|word| start.starts_with(word));
        assert!(is_advice || parsed.status.success(), "{id}: {command} {parsed:?}");
    }
}

#[test]
fn of_alternatives_the_one_that_was_chosen_comes_back() {
    for (id, ill, by) in all() {
        let Choice(then) = by else { continue };
        let machine = machine(ill);
        let view = machine.view();
        let finding = found(&machine, id, &by);
        let mend = finding.mend.clone().unwrap();
        let [write] = &mend.writes[..] else { panic!("{id}: one file") };
        let file = view.root().join(&write.path);
        let (read, show) =
            (|| fs::read_to_string(&file).unwrap(), |text: &str| fs::write(&file, text).unwrap());
        let before = read();
        let done = apply(view.root(), std::slice::from_ref(&finding), &[id]);
        assert!(done.len() == 1 && done[0].error.is_none(), "{id}: {done:?}");
        let applied = read();
        show(then);
        assert!(!machine.verdict(rule(id).check).costs(), "{id}");
        // A kernel shows all alternatives again; a plain file keeps the written text.
        let undone = undo(view.root(), Since::Left).unwrap();
        assert_eq!(undone.len(), 1, "{id}: {undone:?}");
        let written = read();
        let marked = [format!("[{}]", written.trim()), format!("({})", written.trim())];
        assert!(marked.iter().any(|marked| before.contains(marked)), "{id}: {written} {undone:?}");
        show(&before);
        type_in(view.root(), &mend.command);
        assert_eq!(read().trim(), applied.trim(), "{id}: {}", mend.command);
    }
}
