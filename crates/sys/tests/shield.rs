//! A shield goes with its process, however that ends.

use millstream_sys::journal::{Journal, Kept, recover_in};
use millstream_sys::shield::{Plan, Shield};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const FOLDER: &str = "MILLSTREAM_TEST_SHIELD";

/// A machine of files with four CPUs and one interrupt.
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

/// Every file and folder below one, with its content.
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

/// This program again, which changes things and waits to be killed.
fn victim(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_victim", "--ignored", "--nocapture"]);
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
    let journals = folder.join("journals");
    let journal = Arc::new(Journal::open_in(&journals));
    let plan = Plan { cpus: "2-3".parse().unwrap(), interrupts: true, ..Plan::default() };
    let _shield = Shield::raise(&folder.join("root"), &plan, &journal).unwrap();
    let kept = Kept::open_in(&journals, "doctor");
    kept.write(&folder.join("root/proc/sys/vm/swappiness"), "1").unwrap();
    println!("changed");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn the_next_start_lowers_the_shield_of_a_killed_process_and_keeps_what_is_to_last() {
    let folder = tempfile::tempdir().unwrap();
    let (root, journals) = (machine(folder.path()), folder.path().join("journals"));
    let before = snapshot(&root);
    let mut child = victim(folder.path());
    assert_ne!(snapshot(&root), before);
    assert_eq!(recover_in(&journals).unwrap().journals, 0, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    let recovered = recover_in(&journals).unwrap();
    assert_eq!((recovered.journals, &recovered.failed), (1, &vec![]));
    let swappiness = root.join("proc/sys/vm/swappiness");
    assert_eq!(fs::read_to_string(&swappiness).unwrap(), "1\n", "that was meant to last");
    let fates = Kept::open_in(&journals, "doctor").undo().unwrap();
    assert!(fates.len() == 1 && *fates[0].outcome.as_ref().unwrap(), "{fates:?}");
    assert_eq!(snapshot(&root), before);
    assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
}
