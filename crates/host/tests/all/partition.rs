//! A shield on real cpusets of version 2. It takes a CPU from all other processes, so it is for
//! guests, which run nothing else.

use millstream_cpu::thread::pin_current_thread;
use millstream_cpu::{CpuSet, Topology};
use millstream_host::journal::Journal;
use millstream_host::shield::{Hierarchy, Shield, ShieldSpec};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};

/// Returns the CPUs of every thread of the machine, by its number, with its name.
fn threads() -> BTreeMap<i32, (String, String)> {
    let names = |folder: &str| -> Vec<i32> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let tasks =
        names("/proc").into_iter().flat_map(|process| names(&format!("/proc/{process}/task")));
    let read = |task: i32| {
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        let of = |name| field(name).map(|text| text.trim().to_owned());
        Some((task, (of("Name:")?, of("Cpus_allowed_list:")?)))
    };
    tasks.filter_map(read).collect()
}

/// Returns every group with its file of controllers.
fn groups(root: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root).unwrap().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.path());
    let all = folders.chain([root.to_owned()]);
    let control = |path: &Path| fs::read_to_string(path.join("cgroup.subtree_control")).unwrap();
    all.map(|path| (path.display().to_string(), control(&path))).collect()
}

/// Returns the group of version 2 of the calling thread.
fn own_group() -> String {
    let groups = fs::read_to_string("/proc/thread-self/cgroup").unwrap();
    groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap().to_owned()
}

#[test]
#[ignore = "takes a CPU from everybody on the machine: for a guest"]
fn a_partition_leaves_pins_groups_and_controllers_as_they_were() {
    let Some(Hierarchy::V2 { root }) = Hierarchy::find(Path::new("/")) else {
        panic!("there are no cpusets of version 2 here");
    };
    let all = Topology::read(Path::new("/")).unwrap().cpus();
    let (first, last) = (all.iter().next().unwrap(), all.iter().last().unwrap());
    assert!(first != last, "one CPU for the shield, one for the others");
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(folder.path()));
    let ready = Arc::new(Barrier::new(4));
    for cpu in [Some(first), Some(last), None] {
        let ready = Arc::clone(&ready);
        std::thread::spawn(move || {
            cpu.map_or(Ok(()), pin_current_thread).unwrap();
            ready.wait();
            loop {
                std::thread::park();
            }
        });
    }
    ready.wait();
    let state = || (threads(), groups(&root), own_group());
    let before = state();
    let plan = ShieldSpec { cpus: CpuSet::from_iter([last]), ..ShieldSpec::default() };
    let shield = Shield::raise(Path::new("/"), &plan, &journal).unwrap();
    let rest = shield.account().rest.to_string();
    let own = || threads()[&(std::process::id() as i32)].1.clone();
    assert_eq!(own(), rest);
    let inside = shield.run_inside(own_group).unwrap();
    assert_eq!(Path::new(&inside).file_name(), shield.door().parent().unwrap().file_name());
    assert_eq!(own_group(), before.2, "only a visit");
    assert_eq!(own(), rest);
    assert_eq!(shield.lower().unwrap().left, Vec::<String>::new());
    let after = state();
    // Threads start and end, and kernel threads change their names.
    let changed = before.0.iter().filter_map(|(task, was)| {
        let is = after.0.get(task).filter(|is| is.1 != was.1)?;
        Some((was, is))
    });
    let changed: Vec<_> = changed.collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!((after.1, after.2), (before.1, before.2));
    assert_eq!(journal.open_changes(), 0);
    println!("a partition came and went on {}", fs::read_to_string("/proc/version").unwrap());
}
