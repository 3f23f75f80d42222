use super::*;
use crate::journal::Origins;
use std::path::Path;

/// Returns a machine of files with four CPUs.
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

/// Returns every file below a folder with its content.
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

fn plan(cpus: &str) -> ShieldSpec {
    ShieldSpec {
        cpus: cpus.parse().unwrap(),
        interrupts: true,
        awake: true,
        ..ShieldSpec::default()
    }
}

#[test]
fn what_a_shield_would_do_is_told_without_a_change() {
    let root = machine(&V1);
    let before = snapshot(root.path());
    let account = Shield::plan(root.path(), &plan("2-3")).unwrap();
    assert_eq!((&*account.rest.to_string(), account.interrupts.len()), ("0-1", 1));
    assert_eq!(snapshot(root.path()), before);
    assert!(matches!(Shield::plan(root.path(), &plan("0-3")), Err(ShieldError::Cpus { .. })));
}

#[test]
fn a_shield_leaves_no_trace() {
    let root = machine(&V1);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), journals.path()));
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
    fs::write(shield.door(), "4711").unwrap();
    shield.lower().unwrap();
    fs::write(root.path().join("cg/tasks"), "").unwrap();
    assert_eq!(snapshot(root.path()), before);
    assert_eq!(journal.open_changes(), 0);
}

#[test]
fn what_a_command_leaves_behind_goes_to_the_group_that_it_was_started_in() {
    for (machine, group, file) in [
        (machine(&V1), "3:cpu,cpuset:/user\n", "tasks"),
        (machine(&V2), "0::/user\n", "cgroup.procs"),
    ] {
        let folder = machine.path().join("cg/user");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(machine.path().join("proc/self")).unwrap();
        fs::write(machine.path().join("proc/self/cgroup"), format!("1:name=systemd:/x\n{group}"))
            .unwrap();
        fs::write(folder.join(file), "").unwrap();
        fs::write(machine.path().join("cg").join(file), "").unwrap();
        let journals = tempfile::tempdir().unwrap();
        let journal = Arc::new(Journal::below(machine.path(), journals.path()));
        let shield = Shield::raise(machine.path(), &plan("3"), &journal).unwrap();
        fs::write(shield.door(), "4711").unwrap();
        shield.lower().unwrap();
        let read = |folder: &Path| fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!((read(&folder), read(&machine.path().join("cg"))), ("4711".into(), "".into()));
    }
}

#[test]
fn groups_that_are_there_are_kept_off_the_cpus_and_named_where_they_are_not() {
    let root = machine(&V1);
    let own = std::process::id().to_string();
    let groups = [
        ("docker", "0-3\n", ""),
        ("docker/one", "2-3\n", ""),
        ("docker/two", "1-2\n", ""),
        ("other", "0-1\n", ""),
        ("left", "1-3\n", own.as_str()),
    ];
    for (group, cpus, tasks) in groups {
        let group = root.path().join("cg").join(group);
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cpuset.cpus"), cpus).unwrap();
        fs::write(group.join("tasks"), tasks).unwrap();
    }
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), journals.path()));
    let before = snapshot(root.path());
    let leave = vec![own.parse().unwrap()];
    let plan = ShieldSpec { leave, interrupts: false, ..plan("2-3") };
    let shield = Shield::raise(root.path(), &plan, &journal).unwrap();
    let cpus = groups.map(|(group, ..)| {
        fs::read_to_string(root.path().join("cg").join(group).join("cpuset.cpus")).unwrap()
    });
    assert_eq!(cpus, ["0-1\n", "2-3\n", "1\n", "0-1\n", "1-3\n"]);
    let names = |list: &[String]| {
        let last = |path: &String| Path::new(path).file_name().unwrap().to_owned();
        let mut names: Vec<_> = list.iter().map(last).collect();
        names.sort();
        names
    };
    assert_eq!(names(&shield.account().narrowed), ["docker", "two"]);
    assert_eq!(names(&shield.account().wide), ["left", "one"]);
    shield.lower().unwrap();
    assert_eq!(snapshot(root.path()), before);
}

#[test]
fn cpus_that_cannot_be_had_change_nothing() {
    let root = machine(&V1);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), journals.path()));
    let before = snapshot(root.path());
    for cpus in ["0-3", "7", ""] {
        let error = Shield::raise(root.path(), &plan(cpus), &journal).unwrap_err().to_string();
        let expected =
            format!("CPUs `{cpus}` cannot be shielded: give some of the CPUs 0-3, but not all");
        assert!(error.starts_with(&expected), "{error}");
    }
    let nothing = machine(&[("proc/mounts", "")]);
    let error = Shield::raise(nothing.path(), &plan("1"), &journal).unwrap_err();
    assert!(error.to_string().starts_with("cpusets are not mounted"));
    assert_eq!((snapshot(root.path()), journal.open_changes()), (before, 0));
}

const V2: [(&str, &str); 6] = [
    ("proc/mounts", "cgroup2 /cg cgroup2 rw 0 0\n"),
    ("proc/self/cgroup", "1:name=systemd:/\n0::/user/mine\n"),
    ("cg/cgroup.controllers", "cpuset\n"),
    ("cg/cgroup.subtree_control", "cpuset\n"),
    ("cg/cpuset.cpus.effective", "0-3\n"),
    ("cg/user/mine/cgroup.procs", ""),
];

#[test]
fn a_partition_is_made_and_taken_back() {
    let root = machine(&V2);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), journals.path()));
    let before = snapshot(root.path());
    let shield = Shield::raise(root.path(), &plan("3"), &journal).unwrap();
    let group = shield.door().parent().unwrap().to_owned();
    assert_eq!(fs::read_to_string(group.join("cpuset.cpus.partition")).unwrap(), "root");
    assert_eq!(fs::read_to_string(group.join("cpuset.cpus")).unwrap(), "3");
    assert_eq!(shield.lower().unwrap().left, Vec::<String>::new());
    assert_eq!(snapshot(root.path()), before);
}

#[test]
fn a_partition_that_the_kernel_refuses_is_said_and_taken_back() {
    let root = machine(&V2);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), journals.path()));
    let before = snapshot(root.path());
    let mut changes = Changes::new(&journal);
    let (groups, plan, mut account) = (root.path().join("cg"), plan("3"), ShieldReport::default());
    // The answer of Linux 6.1, from a file that accepts any text.
    let state = |file: &Path| {
        assert_eq!(read(file)?, "root", "it was asked for");
        Ok("root invalid (Parent is not a partition root)\n".to_owned())
    };
    let made = partition::make((&groups, &groups), &plan, &[], &mut changes, &mut account, state);
    let error = made.unwrap_err().to_string();
    assert!(error.contains("CPUs 3: it says `root invalid (Parent is not"), "{error}");
    drop(changes);
    assert_eq!((snapshot(root.path()), journal.open_changes()), (before, 0));
}

#[test]
fn a_process_that_was_taken_as_a_whole_goes_back_to_its_own_group() {
    let root = machine(&V2);
    let journals = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), journals.path()));
    let shield = Shield::raise(root.path(), &plan("3"), &journal).unwrap();
    let own = root.path().join("cg/user/mine/cgroup.procs");
    let seen =
        shield.run_inside(|| [shield.door(), &own].map(|file| fs::read_to_string(file).unwrap()));
    assert_eq!(seen.unwrap(), ["0", ""], "`0` is whoever writes");
    assert_eq!(fs::read_to_string(&own).unwrap(), "0");
    drop(shield);
}

/// Real cpusets in a group of the test: the machine's threads are not touched.
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
    let (Ok(group), 2..) = (journal.make_group(&folder, Origins::default()), all.len()) else {
        eprintln!("skipped: no root, or only one CPU");
        return;
    };
    let put = |file: &str, text: &str| fs::write(folder.join(file), text.trim()).unwrap();
    put(&format!("{prefix}cpus"), &cpus);
    put(&format!("{prefix}mems"), &fs::read_to_string(root.join(format!("{prefix}mems"))).unwrap());
    let inner = journal.make_group(&folder.join("millstream-inner"), Origins::default()).unwrap();
    for file in ["cpus", "mems"].map(|name| format!("{prefix}{name}")) {
        let text = fs::read_to_string(folder.join(&file)).unwrap();
        fs::write(folder.join("millstream-inner").join(file), text.trim()).unwrap();
    }
    let mut children = [None, Some(all.iter().last().unwrap()), None].map(|cpu| {
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
    put("millstream-inner/tasks", &children[2].id().to_string());
    let state = || children.each_ref().map(|child| allowed(child.id()));
    let (before, tasks) = (state(), fs::read_to_string(folder.join("tasks")).unwrap());
    let cpu = all.iter().last().unwrap();
    let plan = ShieldSpec {
        cpus: CpuSet::from_iter([cpu]),
        under: Some(PathBuf::from(outer)),
        ..ShieldSpec::default()
    };
    let shield = Shield::raise(Path::new("/"), &plan, &journal).unwrap();
    assert_eq!((shield.account().moved, shield.account().kept.len()), (2, 0));
    let rest = shield.account().rest.to_string();
    assert_eq!(state(), [rest.clone(), rest.clone(), rest.clone()]);
    fs::write(shield.door(), children[0].id().to_string()).unwrap();
    assert_eq!(state(), [cpu.to_string(), rest.clone(), rest]);
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
    inner.undo().unwrap();
    group.undo().unwrap();
    assert!(!folder.exists());
}
