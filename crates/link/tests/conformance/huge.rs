//! The rules over DPDK's ports once more, with huge pages: EAL decides that once in a process, so
//! it is another one.

use std::process::Command;

/// Says in the environment that this is the run with huge pages.
pub const HUGE: &str = "MILLSTREAM_HUGE";

/// Pages of 2 MiB that a rule needs, both ends together.
const PAGES: u64 = 256;

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// Reserves pages beyond those that are taken, until this is dropped.
struct Reserved {
    before: u64,
}

fn number(file: &str) -> Option<u64> {
    std::fs::read_to_string(format!("{POOL}/{file}")).ok()?.trim().parse().ok()
}

fn set(pages: u64) {
    // Without the right to, what there is has to do.
    let _ = std::fs::write(format!("{POOL}/nr_hugepages"), pages.to_string());
}

impl Reserved {
    fn new() -> Option<Self> {
        let before = number("nr_hugepages")?;
        let missing = PAGES.saturating_sub(number("free_hugepages")?);
        let reserved = Self { before };
        if missing > 0 {
            set(before + missing);
        }
        (number("free_hugepages")? >= PAGES).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        set(self.before);
    }
}

/// Every rule over four ports: memif, virtio, ring and a packet socket.
#[test]
fn dpdk_ports_keep_the_rules_with_huge_pages_too() {
    if !millstream_link::dpdk::AVAILABLE || std::env::var_os(HUGE).is_some() {
        return;
    }
    let Some(_reserved) = Reserved::new() else {
        eprintln!("skipped: this machine has no {PAGES} huge pages to spare, and gives none");
        return;
    };
    let program = std::env::current_exe().expect("this program has a file");
    let ports = ["dpdk_memif::", "dpdk_vhost::", "dpdk_ring::", "dpdk_af_packet::"];
    let done = Command::new(program).args(ports).arg("--test-threads=1").env(HUGE, "on").output();
    let done = done.expect("this program can be started");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}: {text}", done.status);
    assert!(!text.contains(" 0 passed"), "some rules were tried: {text}");
}
