//! Fuzzes the files that the doctor and the shield read: any text in any file of /proc and /sys.
//! They may find no fault, but they must terminate, and every finding must be usable.
//!
//! The first byte chooses one rule, or all of them and the shield: one rule reads few files, so
//! the fuzzer tries many more inputs a second. The rest is the files' contents, separated by
//! bytes of 0.
#![no_main]

use millstream_host::doctor::{Focus, RULES, MachineFiles, examine};
use millstream_host::shield::Hierarchy;
use std::fs;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

const FILES: [&str; 32] = [
    "sys/devices/system/cpu/online",
    "proc/interrupts",
    "proc/irq/24/smp_affinity_list",
    "proc/irq/24/effective_affinity_list",
    "proc/uptime",
    "proc/stat",
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/swaps",
    "proc/mounts",
    "proc/net/softnet_stat",
    "proc/self/status",
    "proc/self/limits",
    "proc/self/cgroup",
    "proc/12/comm",
    "proc/12/stat",
    "proc/12/status",
    "proc/sys/vm/nr_hugepages",
    "proc/sys/vm/swappiness",
    "proc/sys/net/core/rmem_max",
    "proc/sys/net/core/netdev_budget",
    "proc/sys/net/core/netdev_max_backlog",
    "proc/sys/kernel/watchdog",
    "proc/sys/kernel/watchdog_cpumask",
    "proc/sys/kernel/sched_rt_runtime_us",
    "sys/class/net/eth0/queues/rx-0/rps_cpus",
    "sys/class/net/eth0/operstate",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/cpu1/topology/core_cpus_list",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
    "ethtool/eth0.json",
];

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("millstream-doctor-{}", std::process::id()));
    for file in FILES {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
    }
    root
});

/// The present contents of the files: inputs differ in few of them.
static WRITTEN: Mutex<[Option<Vec<u8>>; FILES.len()]> = Mutex::new([const { None }; FILES.len()]);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let choice = usize::from(*choice) % (RULES.len() + 1);
    let rules = RULES.get(choice..=choice).unwrap_or(RULES);
    let mut texts = bytes.split(|byte| *byte == 0);
    for (file, written) in FILES.iter().zip(WRITTEN.lock().unwrap().iter_mut()) {
        let text = texts.next().unwrap_or_default();
        if written.as_deref() != Some(text) {
            fs::write(ROOT.join(file), text).unwrap();
            *written = Some(text.to_vec());
        }
    }
    if choice == RULES.len() {
        let _ = Hierarchy::find(&ROOT);
    }
    let interfaces = Some(vec!["eth0".to_owned()]);
    let view = MachineFiles::of(&ROOT, Focus { interfaces, ..Focus::default() });
    for finding in examine(rules, &view) {
        assert!(!finding.says.is_empty(), "{finding:?}");
        assert!(!finding.verdict.costs() || !finding.evidence.is_empty(), "{finding:?}");
        for write in finding.mend.iter().flat_map(|mend| &mend.writes) {
            assert!(!write.path.starts_with('/') && !write.text.contains('\n'), "{finding:?}");
        }
    }
});
