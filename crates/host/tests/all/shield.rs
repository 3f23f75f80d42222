//! A shield ends with its process, however that ends.

use millstream_cpu::CpuSet;
use millstream_cpu::sched::{Class, set_thread};
use millstream_cpu::thread::confine;
use millstream_host::ethtool::{Ethtool, Offload};
use millstream_host::journal::{Journal, PersistentChanges, Since, recover_below};
use millstream_host::packet_threads::{PacketThreadKind, of_interfaces};
use millstream_host::shield::{Napi, PacketHandling, Shield, ShieldSpec};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const FOLDER: &str = "MILLSTREAM_TEST_SHIELD";

/// Makes a machine of files with four CPUs and one interrupt.
fn machine(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    let files = [
        ("proc/mounts", "cgroup /cg cgroup rw,cpuset 0 0\n"),
        ("cg/cpuset.cpus", "0-3\n"),
        ("cg/cpuset.mems", "0\n"),
        ("cg/tasks", ""),
        ("proc/irq/24/smp_affinity_list", "0-3\n"),
        ("proc/sys/vm/swappiness", "60\n"),
    ];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// Returns every file and folder below one, with its content.
fn snapshot(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => {
                    found.push((path.clone(), String::new()));
                    folders.push(path);
                }
                false => found.push((path.clone(), fs::read_to_string(path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Starts this program again, which changes settings and waits to be killed.
fn victim(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "shield::the_victim", "--ignored", "--nocapture"]);
    let mut child = command.env(FOLDER, folder).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.contains("changed"));
    assert!(ready, "the victim came as far as raising its shield");
    child
}

#[test]
#[ignore = "the process that other tests kill"]
fn the_victim() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let journals = folder.join("root/run");
    let journal = Arc::new(Journal::below(&folder.join("root"), &journals));
    let plan =
        ShieldSpec { cpus: "2-3".parse().unwrap(), interrupts: true, ..ShieldSpec::default() };
    let _shield = Shield::raise(&folder.join("root"), &plan, &journal).unwrap();
    let kept = PersistentChanges::below(&folder.join("root"), &journals, "doctor");
    kept.write(&folder.join("root/proc/sys/vm/swappiness"), "1").unwrap();
    println!("changed");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn the_next_start_lowers_the_shield_of_a_killed_process_and_keeps_what_is_to_last() {
    let folder = tempfile::tempdir().unwrap();
    let root = machine(folder.path());
    let journals = root.join("run");
    fs::create_dir(&journals).unwrap();
    let before = snapshot(&root);
    let mut child = victim(folder.path());
    assert_ne!(snapshot(&root), before);
    assert_eq!(recover_below(&root, &journals).unwrap().journals, 0, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    let recovered = recover_below(&root, &journals).unwrap();
    assert_eq!((recovered.journals, &recovered.failed), (1, &vec![]));
    let swappiness = root.join("proc/sys/vm/swappiness");
    assert_eq!(fs::read_to_string(&swappiness).unwrap(), "1\n", "that was meant to last");
    let fates = PersistentChanges::below(&root, &journals, "doctor").undo(Since::Left).unwrap();
    assert!(fates.len() == 1 && fates[0].put_back, "{fates:?}");
    assert_eq!(snapshot(&root), before);
    assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
}

/// A separate network with a veth pair that has NAPI, and a hierarchy of cpusets that is visible
/// there.
const INSIDE: &str = r#"
set -e
umount -l /sys && mount -t sysfs none /sys
mkdir "$0" && mount -t cgroup -o cpuset none "$0"
ip link add msn0 type veth peer name msn1
ip link set msn0 up && ip link set msn1 up
exec "$@"
"#;

#[test]
fn the_networks_threads_are_placed_in_four_ways_and_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", INSIDE]).arg(folder.path().join("cg"));
    command.arg(std::env::current_exe().unwrap());
    command
        .args(["--exact", "shield::the_placements", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path());
    let output = command.output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if !text[0].contains("running 1 test") {
        eprintln!("skipped: no namespaces, or no cpusets of version 1: {}", text[1]);
        return;
    }
    if fs::read_to_string("/proc/2/comm").map_or(true, |name| name.trim() != "kthreadd") {
        // Like in a container.
        assert!(text[1].contains("HiddenThreads"), "{text:?}");
        return eprintln!("skipped: the kernel's threads cannot be seen in this PID namespace");
    }
    assert!(output.status.success() && text[0].contains("placed in 8 ways"), "{text:?}");
}

/// Returns the interface's setting, and the CPUs and class of its threads.
fn network() -> (String, Vec<(u32, String, String)>) {
    let found = of_interfaces(Path::new("/"), &["msn0".to_owned()]).into_iter();
    let napi = found.filter(|one| one.kind == PacketThreadKind::Napi).map(|one| one.thread);
    let threads = napi.map(|one| (one.tid, one.allowed, one.class)).collect();
    (fs::read_to_string("/sys/class/net/msn0/threaded").unwrap(), threads)
}

/// A group of the test below the hierarchy, without members: no thread of the machine is moved.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "what another test starts in a network of its own"]
fn the_placements() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    // A veth pair has NAPI when it has GRO.
    Ethtool::open().unwrap().set_offload("msn0", Offload::Gro, true).unwrap();
    let cg = folder.join("cg");
    let all = fs::read_to_string(cg.join("cpuset.cpus")).unwrap().trim().to_owned();
    let cpus: CpuSet = all.parse().unwrap();
    let (first, last) = (cpus.iter().next().unwrap(), cpus.iter().last().unwrap());
    if first == last {
        println!("placed in 8 ways would need a second CPU");
        return;
    }
    let under = PathBuf::from(format!("millstream-test-{}", std::process::id()));
    let group = Group(cg.join(&under));
    fs::create_dir(&group.0).unwrap();
    fs::write(group.0.join("cpuset.cpus"), &all).unwrap();
    fs::write(group.0.join("cpuset.mems"), fs::read_to_string(cg.join("cpuset.mems")).unwrap())
        .unwrap();
    let journal = Arc::new(Journal::open_in(&folder.join("journals")));
    let rest: CpuSet = cpus.iter().filter(|cpu| *cpu != last).collect();
    let places = [
        (PacketHandling::Soft, None),
        (PacketHandling::With, Some(last.to_string())),
        (PacketHandling::Away, Some(rest.to_string())),
        (PacketHandling::Anywhere, Some(cpus.to_string())),
    ];
    let mut ways = 0;
    for threaded in [false, true] {
        if threaded {
            // The threads have been placed already.
            fs::write("/sys/class/net/msn0/threaded", "1").unwrap();
            for (tid, ..) in network().1 {
                confine(tid, &CpuSet::from_iter([first])).unwrap();
                set_thread(tid, Class::Fifo(30)).unwrap();
            }
        }
        let before = network();
        assert_eq!(before.1.is_empty(), !threaded, "{before:?}");
        for (place, allowed) in &places {
            let napi = Napi {
                interfaces: vec!["msn0".to_owned()],
                place: *place,
                class: Class::Fifo(40),
                interrupts: None,
            };
            let plan = ShieldSpec {
                cpus: CpuSet::from_iter([last]),
                under: Some(under.clone()),
                napi: Some(napi),
                class: Class::Fifo(50),
                ..ShieldSpec::default()
            };
            let shield = Shield::raise(Path::new("/"), &plan, &journal).unwrap();
            let (setting, threads) = network();
            let warned = shield.account().warnings.iter().any(|text| {
                text.starts_with("inverted: napi/msn0-") && text.contains("fifo:40, not above")
            });
            match allowed {
                None => assert!(setting == "0\n" && !warned, "{setting}"),
                Some(allowed) => {
                    assert!(setting == "1\n" && !threads.is_empty());
                    let is_placed =
                        |one: &(u32, String, String)| one.1 == *allowed && one.2 == "fifo:40";
                    assert!(threads.iter().all(is_placed), "{place:?}: {threads:?}");
                    let is_near = *place != PacketHandling::Away;
                    assert_eq!(warned, is_near, "{place:?}: {:?}", shield.account().warnings);
                }
            }
            shield.lower().unwrap();
            // A kernel ends the threads of an interface that is turned off, and starts others.
            let plain = |(setting, threads): &(String, Vec<(u32, String, String)>)| {
                let threads =
                    threads.iter().map(|(_, allowed, class)| format!("{allowed} {class}"));
                (setting.clone(), threads.collect::<Vec<_>>())
            };
            assert_eq!(plain(&network()), plain(&before), "{place:?}");
            ways += 1;
        }
    }
    assert_eq!(journal.open_changes(), 0);
    println!("placed in {ways} ways");
}
