//! Topology and environment from recorded trees of other machines.

use millstream_cpu::{Environment, RecordedMachine, Topology};
use std::fs;
use std::path::Path;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

/// Two sockets with two SMT cores each: CPU n and n + 4 share a core, even and odd cores sit
/// in different sockets and nodes.
fn dual_socket(root: &Path) {
    let cpus = "sys/devices/system/cpu";
    write(root, &format!("{cpus}/online"), "0-7");
    for cpu in 0..8 {
        let (core, socket) = (cpu % 4, cpu % 2);
        let cpu_folder = format!("{cpus}/cpu{cpu}");
        let siblings = format!("{core},{}", core + 4);
        let socket_cpus = format!("{socket},{},{},{}", socket + 2, socket + 4, socket + 6);
        write(root, &format!("{cpu_folder}/topology/core_cpus_list"), &siblings);
        write(root, &format!("{cpu_folder}/topology/physical_package_id"), &socket.to_string());
        fs::create_dir_all(root.join(format!("{cpu_folder}/node{socket}"))).unwrap();
        let caches = [
            ("1", "Data", "32K", &siblings),
            ("1", "Instruction", "32K", &siblings),
            ("2", "Unified", "1024K", &siblings),
            ("3", "Unified", "24M", &socket_cpus),
        ];
        for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
            let folder = format!("{cpu_folder}/cache/index{index}");
            write(root, &format!("{folder}/level"), level);
            write(root, &format!("{folder}/type"), kind);
            write(root, &format!("{folder}/size"), size);
            write(root, &format!("{folder}/shared_cpu_list"), shared);
        }
    }
}

#[test]
fn two_sockets_with_smt() {
    let root = tempfile::tempdir().unwrap();
    dual_socket(root.path());
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!(topology.cpus().to_string(), "0-7");
    assert_eq!(topology.physical_cores(), 4);
    let core = &topology.cores[5];
    assert_eq!((core.cpu, core.package, core.node), (5, 1, 1));
    assert_eq!(core.smt_siblings.to_string(), "1,5");
    assert_eq!(core.caches.len(), 3, "instruction caches are left out");
    assert_eq!(core.cache(1).unwrap().size_bytes, 32 << 10);
    assert_eq!(core.cache(2).unwrap().shared_by.to_string(), "1,5");
    let l3 = core.cache(3).unwrap();
    assert_eq!((l3.size_bytes, l3.shared_by.to_string()), (24 << 20, "1,3,5,7".to_owned()));
}

#[test]
fn a_bare_virtual_machine_has_defaults() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "sys/devices/system/cpu/online", "0-1");
    write(root.path(), "sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1");
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!(topology.physical_cores(), 2);
    assert_eq!((topology.cores[0].package, topology.cores[1].node), (0, 0));
    assert!(topology.cores[1].caches.is_empty());
}

#[test]
fn a_tree_without_cpus_is_an_error_that_names_the_file() {
    let root = tempfile::tempdir().unwrap();
    let error = Topology::read(root.path()).unwrap_err().to_string();
    let path = root.path().join("sys/devices/system/cpu/online");
    assert!(error.starts_with(&format!("cannot read {}: ", path.display())), "{error}");
    assert!(error.ends_with("check that /sys is mounted"), "{error}");

    write(root.path(), "sys/devices/system/cpu/online", "many");
    let error = Topology::read(root.path()).unwrap_err().to_string();
    assert_eq!(error, format!("{} contains `many`, but a CPU list was expected", path.display()));
}

#[test]
fn the_record_holds_what_the_tree_tells() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    dual_socket(root);
    let cpus = "sys/devices/system/cpu";
    write(root, "proc/sys/kernel/osrelease", "6.12.1-rt-amd64");
    write(root, "proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12.1-2 (2026-11-01)");
    let cpu = "model name\t: Big Iron 9000\nmicrocode\t: 0x2b\nflags\t\t: fpu hypervisor avx2";
    write(root, "proc/cpuinfo", cpu);
    write(root, "proc/cmdline", "quiet mitigations=off");
    fs::create_dir(root.join("boot")).unwrap();
    fs::write(root.join("boot/config-6.12.1-rt-amd64"), "abc").unwrap();
    fs::write(root.join("boot/vmlinuz-6.12.1-rt-amd64"), "abc").unwrap();
    let package =
        "Package: linux-image-6.12.1-rt-amd64\nStatus: install ok installed\nVersion: 6.12.1-2";
    let other =
        "Package: linux-image-6.12.1-rt-amd64\nStatus: deinstall ok config-files\nVersion: 1";
    write(root, "var/lib/dpkg/status", &format!("{other}\n\n{package}\n\n{other}"));
    write(root, "proc/meminfo", "MemTotal:       1000 kB");
    write(root, "proc/self/status", "Name:\tx\nCpus_allowed_list:\t2-3");
    write(root, &format!("{cpus}/isolated"), "2-3");
    write(root, &format!("{cpus}/vulnerabilities/meltdown"), "Mitigation: PTI");
    write(root, &format!("{cpus}/vulnerabilities/l1tf"), "Not affected");
    write(root, &format!("{cpus}/cpu0/cpufreq/scaling_governor"), "performance");
    let record = Environment::read(root, "2026-11-21T00:00:00Z").with_kernel_origin(root);
    let json = serde_json::to_value(&record).unwrap();
    for (key, value) in [
        ("timestamp", "2026-11-21T00:00:00Z"),
        ("kernel_release", "6.12.1-rt-amd64"),
        ("preemption", "rt"),
        ("cpu_model", "Big Iron 9000"),
        ("cpus_online", "0-7"),
        ("cpus_allowed", "2-3"),
        ("cpus_isolated", "2-3"),
        ("governor", "performance"),
        ("microcode", "0x2b"),
        ("kernel_command_line", "quiet mitigations=off"),
        // Of `abc`, by the authors' test vectors.
        ("kernel_config_hash", "e71fa2190541574b"),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    let origin = serde_json::json!({
        "package": "linux-image-6.12.1-rt-amd64", "version": "6.12.1-2", "package_sha256": null,
        // Of `abc`, as FIPS 180-2 has it.
        "image_sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    });
    assert_eq!(json["kernel_origin"], origin);
    assert_eq!((record.physical_cores, record.numa_nodes), (4, 2));
    assert_eq!(record.memory_bytes, Some(1_024_000));
    assert_eq!(json["mitigations"], serde_json::json!({"meltdown": "Mitigation: PTI"}));
    assert!(record.hypervisor);
    assert_eq!(record.caches[2].shared_by, 4);
    assert_eq!(serde_json::from_value::<Environment>(json).unwrap(), record);
    // The package was upgraded since the boot: the files on the disk are those of another kernel.
    write(root, "proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12.1-1 (2026-10-01)");
    let upgraded = Environment::read(root, "").with_kernel_origin(root).kernel_origin.unwrap();
    assert_eq!((upgraded.version, upgraded.image_sha256), (None, None));
    let older = serde_json::from_str::<Environment>(r#"{"kernel_release": "5.4"}"#).unwrap();
    assert_eq!((older.kernel_release.as_deref(), older.microcode), (Some("5.4"), None));
}

#[test]
fn the_chosen_preemption_model_is_told_where_it_can_be_seen() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian");
    let preemption = || Environment::read(dir.path(), "").preemption.unwrap();
    assert_eq!(preemption(), "unknown (dynamic)");
    write(dir.path(), "sys/kernel/debug/sched/preempt", "none (voluntary) full lazy");
    assert_eq!(preemption(), "voluntary (dynamic)");
}

#[test]
fn an_empty_tree_gives_an_empty_record() {
    let dir = tempfile::tempdir().unwrap();
    let record = Environment::read(dir.path(), "now");
    assert_eq!((record.kernel_release, record.memory_bytes), (None, None));
    assert!(record.cpus_online.is_empty() && !record.hypervisor);
}

#[test]
fn this_machine_can_be_read() {
    let record = Environment::read(Path::new("/"), "now");
    assert!(record.kernel_release.is_some());
    assert!(!record.cpus_allowed.is_empty());
    assert_eq!(Topology::read(Path::new("/")).unwrap().cpus(), record.cpus_online);
}

/// A hybrid: CPU 0 and 1 are threads of a fast core, 2 and 3 small cores with one L2.
fn hybrid(root: &Path) {
    write(root, "sys/devices/system/cpu/online", "0-3");
    for (cpu, siblings) in [(0, "0-1"), (1, "0-1"), (2, "2"), (3, "3")] {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list");
        write(root, &path, siblings);
    }
}

fn capacities(root: &Path) -> Vec<u32> {
    Topology::read(root).unwrap().cores.iter().map(|core| core.capacity).collect()
}

#[test]
fn capacity_comes_from_what_the_kernel_tells_best() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    hybrid(root);
    assert_eq!(capacities(root), [1024; 4], "nothing is told");
    write(root, "sys/devices/cpu_core/cpus", "0-1");
    write(root, "sys/devices/cpu_atom/cpus", "2-3");
    assert_eq!(capacities(root), [1024, 1024, 768, 768], "only the types are told");
    for (cpu, khz) in [(0, "5200000"), (1, "5200000"), (2, "3900000"), (3, "3900000")] {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
        write(root, &path, khz);
    }
    assert_eq!(capacities(root), [1024, 1024, 576, 576], "types and clocks");
    for (cpu, capacity) in [(0, "1024"), (1, "1024"), (2, "446"), (3, "446")] {
        write(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), capacity);
    }
    assert_eq!(capacities(root), [1024, 1024, 446, 446], "what the scheduler goes by");
}

#[test]
fn a_part_of_a_machine_keeps_its_numbers() {
    let topology = RecordedMachine::named("i7-6950x").unwrap().topology;
    let some = topology.only(&"3,13,40".parse().unwrap());
    assert_eq!(some.cpus().to_string(), "3,13");
    assert_eq!(some.cores[0].smt_siblings.to_string(), "3,13");
    let flat = Topology::flat(&"2,5".parse().unwrap());
    assert_eq!((flat.physical_cores(), flat.cores[1].cpu), (2, 5));
}

#[test]
fn every_machine_that_comes_with_the_program_can_be_read() {
    for (name, cpus, cores, nodes, l2) in [
        ("i7-6950x", 20, 10, 1, 256 << 10),
        ("ryzen-7-1700", 16, 8, 1, 512 << 10),
        ("i9-12900k", 24, 16, 1, 1280 << 10),
        ("2x-xeon-gold-6130", 64, 32, 2, 1 << 20),
        ("vm-2", 2, 2, 1, 2 << 20),
        ("cortex-a53", 4, 4, 1, 512 << 10),
        ("ryzen-9-7950x", 32, 16, 1, 1 << 20),
        ("graviton-3", 64, 64, 1, 1 << 20),
        ("apple-m1", 8, 8, 1, 4 << 20),
        ("rk3588", 8, 8, 1, 128 << 10),
    ] {
        let topology = RecordedMachine::named(name).unwrap().topology;
        assert_eq!((topology.cores.len(), topology.physical_cores()), (cpus, cores), "{name}");
        assert_eq!(topology.cores.iter().map(|core| core.node).max(), Some(nodes - 1), "{name}");
        assert_eq!(topology.cores[0].cache(2).unwrap().size_bytes, l2, "{name}");
    }
    assert_eq!(RecordedMachine::names().count(), 10);
    let l3 = |cpu: usize| {
        let topology = RecordedMachine::named("ryzen-7-1700").unwrap().topology;
        topology.cores[cpu].cache(3).unwrap().shared_by.to_string()
    };
    assert_eq!((l3(3), l3(8)), ("0-7".to_owned(), "8-15".to_owned()));
}

#[test]
fn what_is_wrong_with_a_machine_is_said() {
    let error = |text: &str| RecordedMachine::from_toml(text).unwrap_err().to_string();
    let unknown = RecordedMachine::named("pdp-11").unwrap_err().to_string();
    assert!(
        unknown.starts_with("there is no machine called `pdp-11`; there are: 2x-xeon"),
        "{unknown}"
    );
    assert!(error("cpus = 3").starts_with("cannot read the description of the machine: "));
    let with = |text: &str| format!("description = \"x\"\ncpus = \"0-1\"\n{text}");
    assert_eq!(
        error(&with("cores = [\"0,7\"]")),
        "cores contains CPUs 0,7, but the machine has CPUs 0-1"
    );
    let cache = |text: &str| error(&with(&format!("[[cache]]\nlevel = 2\n{text}")));
    assert_eq!(
        cache("size = \"2X\"\nper = \"core\""),
        "size of cache 1 is 2X: write a size like 48K"
    );
    assert_eq!(
        cache("size = \"2K\"\nper = \"socket\""),
        "per of cache 1 is socket: write \"core\", \"package\" or a list of CPU lists"
    );
    assert_eq!(
        error(&with("[capacity]\n\"0\" = 2000")),
        "capacity of \"0\" is 2000: write 1 to 1024, which the fastest CPU has"
    );
    let none = error("description = \"x\"\ncpus = \"\"");
    assert_eq!(none, "cpus is empty: write at least one CPU");
}
