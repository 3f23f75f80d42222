//! The rules over DPDK's ports again, with huge pages, in another process because EAL decides on
//! them once in a process.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The environment variable that marks the run with huge pages.
pub const HUGE: &str = "MILLSTREAM_HUGE";

/// Locked by the tests here, which change the same setting of the machine.
static ALONE: Mutex<()> = Mutex::new(());

/// Pages of 2 MiB for a rule, both ends together.
const PAGES: u64 = 256;

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// Pages reserved beyond those in use, until this is dropped or its process ends in any way: a
/// separate process, the keeper, then restores the previous number.
struct Reserved {
    keeper: Child,
}

fn number(file: &str) -> Option<u64> {
    std::fs::read_to_string(format!("{POOL}/{file}")).ok()?.trim().parse().ok()
}

impl Reserved {
    fn new() -> Option<Self> {
        let before = number("nr_hugepages")?;
        let missing = PAGES.saturating_sub(number("free_hugepages")?);
        // It reads until there is no writer any more.
        let put_back = format!("cat >/dev/null; echo {before} >{POOL}/nr_hugepages");
        let mut keeper = Command::new("sh");
        keeper.args(["-c", &put_back]).process_group(0);
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let reserved = Self { keeper: keeper.spawn().ok()? };
        if missing > 0 {
            // Without the right to reserve pages the present ones must suffice.
            let wanted = (before + missing).to_string();
            let _ = std::fs::write(format!("{POOL}/nr_hugepages"), wanted);
        }
        (number("free_hugepages")? >= PAGES).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Every rule over the ports in memory: memif, virtio and ring.
#[test]
fn dpdk_ports_keep_the_rules_with_huge_pages_too() {
    if !millstream_link::dpdk::AVAILABLE || std::env::var_os(HUGE).is_some() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(_reserved) = Reserved::new() else {
        eprintln!("skipped: this machine has no {PAGES} huge pages to spare, and gives none");
        return;
    };
    let program = std::env::current_exe().expect("this program has a file");
    let ports = ["dpdk_memif::", "dpdk_vhost::", "dpdk_ring::"];
    let mut command = Command::new(program);
    command.args(ports).arg("--test-threads=1").env(HUGE, "on");
    millstream_host::child::tie(&mut command, None);
    let done = command.output().expect("this program can be started");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}: {text}", done.status);
    assert!(!text.contains(" 0 passed"), "some rules were tried: {text}");
}

/// A killed user leaves as many pages as it found.
#[test]
fn pages_are_put_back_when_their_user_is_killed() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(before) = number("nr_hugepages") else { return };
    if std::env::var_os(KILLED).is_some() {
        let reserved = Reserved::new();
        println!("{}", if reserved.is_some() { "reserved" } else { "none" });
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    if !millstream_link::dpdk::AVAILABLE || std::env::var_os(HUGE).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("this program has a file");
    let name = "huge::pages_are_put_back_when_their_user_is_killed";
    let mut command = Command::new(program);
    command.args([name, "--exact", "--nocapture"]).env(KILLED, "yes").stdout(Stdio::piped());
    millstream_host::child::tie(&mut command, None);
    let mut child = command.spawn().expect("this program can be started");
    let lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    let said: Vec<_> = lines.map_while(Result::ok).take_while(|line| !is_told(line)).collect();
    child.kill().expect("it sleeps");
    child.wait().expect("it was started");
    let until = Instant::now() + Duration::from_secs(20);
    while number("nr_hugepages") != Some(before) {
        assert!(Instant::now() < until, "pages are left: {said:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a line is the one behind the test harness's output.
fn is_told(line: &str) -> bool {
    line.ends_with("reserved") || line.ends_with("none")
}

/// The environment variable that marks the process to be killed.
const KILLED: &str = "MILLSTREAM_HUGE_KILLED";
