use super::*;
use std::path::Path;

/// A machine of files with four CPUs.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

const V1: [(&str, &str); 6] = [
    ("proc/mounts", "cgroup /cg cgroup rw,cpuset 0 0\n"),
    ("cg/cpuset.cpus", "0-3\n"),
    ("cg/cpuset.mems", "0\n"),
    ("cg/tasks", ""),
    ("proc/irq/24/smp_affinity_list", "0-3\n"),
    ("proc/irq/25/smp_affinity_list", "0-1\n"),
];

/// Every file below a folder with its content.
fn snapshot(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push((entry.path(), fs::read_to_string(entry.path()).unwrap())),
            }
        }
    }
    found.sort();
    found
}

fn plan(cpus: &str) -> Plan {
    Plan { cpus: cpus.parse().unwrap(), interrupts: true, awake: true, ..Plan::default() }
}

#[test]
fn a_shield_leaves_no_trace() {
    let root = machine(&V1);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(journals.path()));
    let before = snapshot(root.path());
    let shield = Shield::raise(root.path(), &plan("2-3"), &journal).unwrap();
    let account = shield.account();
    assert_eq!((&*account.rest.to_string(), account.interrupts.len()), ("0-1", 1));
    assert!(!account.awake, "there is no such device");
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    assert_eq!(read("proc/irq/24/smp_affinity_list"), "0-1\n");
    assert_eq!(read("proc/irq/25/smp_affinity_list"), "0-1\n");
    let group = shield.door().parent().unwrap().to_owned();
    assert_eq!(fs::read_to_string(group.join("cpuset.cpus")).unwrap(), "2-3");
    shield.admit(4711).unwrap();
    shield.lower().unwrap();
    fs::write(root.path().join("cg/tasks"), "").unwrap();
    assert_eq!(snapshot(root.path()), before);
    assert_eq!(journal.open_changes(), 0);
}

#[test]
fn cpus_that_cannot_be_had_change_nothing() {
    let root = machine(&V1);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(journals.path()));
    let before = snapshot(root.path());
    for cpus in ["0-3", "7", ""] {
        let error = Shield::raise(root.path(), &plan(cpus), &journal).unwrap_err().to_string();
        let expected = format!("CPUs {cpus} are not some of 0-3, with others left");
        assert!(error.starts_with(&expected), "{error}");
    }
    let nothing = machine(&[("proc/mounts", "")]);
    let error = Shield::raise(nothing.path(), &plan("1"), &journal).unwrap_err();
    assert!(error.to_string().starts_with("no cpusets here"));
    assert_eq!((snapshot(root.path()), journal.open_changes()), (before, 0));
}

#[test]
fn a_partition_that_the_kernel_refuses_is_said_and_taken_back() {
    let root = machine(&[
        ("proc/mounts", "cgroup2 /cg cgroup2 rw 0 0\n"),
        ("cg/cgroup.controllers", "cpuset\n"),
        ("cg/cgroup.subtree_control", "cpuset\n"),
        ("cg/cpuset.cpus.effective", "0-3\n"),
    ]);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(journals.path()));
    // Plain files accept all: what is written is what is read.
    let shield = Shield::raise(root.path(), &plan("3"), &journal).unwrap();
    let group = shield.door().parent().unwrap().to_owned();
    assert_eq!(fs::read_to_string(group.join("cpuset.cpus.partition")).unwrap(), "root");
    assert_eq!(fs::read_to_string(group.join("cpuset.cpus")).unwrap(), "3");
    drop(shield);
    assert!(!group.exists());
    let error = ShieldError::Partition { cpus: "3".parse().unwrap(), says: "root invalid".into() };
    assert!(error.to_string().contains("it says `root invalid`"));
}

/// Real cpusets, of our own: the machine's threads are not touched.
#[test]
fn real_threads_are_moved_and_come_back() {
    let Some(Hierarchy::V1 { root, prefix }) = Hierarchy::find(Path::new("/")) else {
        eprintln!("skipped: no cpusets of version 1 here");
        return;
    };
    let cpus = fs::read_to_string(root.join(format!("{prefix}cpus"))).unwrap();
    let all: CpuSet = cpus.parse().unwrap();
    let outer = format!("millstream-test-{}", std::process::id());
    let folder = root.join(&outer);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::open_in(journals.path()));
    let (Ok(group), 2..) = (journal.make_group(&folder), all.len()) else {
        eprintln!("skipped: no root, or only one CPU");
        return;
    };
    let put = |file: &str, text: &str| fs::write(folder.join(file), text.trim()).unwrap();
    put(&format!("{prefix}cpus"), &cpus);
    put(&format!("{prefix}mems"), &fs::read_to_string(root.join(format!("{prefix}mems"))).unwrap());
    let mut children = [None, Some(all.iter().last().unwrap())].map(|cpu| {
        let mut command = std::process::Command::new("sleep");
        crate::child::tie(command.arg("60"), cpu);
        command.spawn().unwrap()
    });
    let allowed = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    children.iter().for_each(|child| put("tasks", &child.id().to_string()));
    let state = || children.each_ref().map(|child| allowed(child.id()));
    let (before, tasks) = (state(), fs::read_to_string(folder.join("tasks")).unwrap());
    let cpu = all.iter().last().unwrap();
    let plan = Plan {
        cpus: CpuSet::from_iter([cpu]),
        under: Some(PathBuf::from(outer)),
        ..Plan::default()
    };
    let shield = Shield::raise(Path::new("/"), &plan, &journal).unwrap();
    assert_eq!((shield.account().moved, shield.account().kept.len()), (2, 0));
    let rest = shield.account().rest.to_string();
    assert_eq!(state(), [rest.clone(), rest.clone()]);
    shield.admit(children[0].id()).unwrap();
    assert_eq!(state(), [cpu.to_string(), rest]);
    shield.lower().unwrap();
    assert_eq!(state(), before);
    let mut after: Vec<_> =
        fs::read_to_string(folder.join("tasks")).unwrap().lines().map(str::to_owned).collect();
    after.sort();
    let mut tasks: Vec<_> = tasks.lines().map(str::to_owned).collect();
    tasks.sort();
    assert_eq!(after, tasks);
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    group.undo().unwrap();
    assert!(!folder.exists());
}
