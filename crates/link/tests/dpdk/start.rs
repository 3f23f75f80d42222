//! Starts that fail, starts without rights, and their leftovers.

use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::role::open;

#[test]
fn a_start_that_fails_says_what_to_do_and_says_it_again() {
    crate::run("refused", "");
}

/// Requests huge pages where there are none: EAL refuses, permanently for this process.
pub fn play_refused() {
    let file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let pages = std::fs::read_to_string(file).unwrap_or_default();
    if pages.trim() != "0" {
        eprintln!("skipped: this machine has huge pages, or does not know them");
        return;
    }
    for _ in 0..2 {
        let error = open("dpdk:ring0,huge=on").err();
        let error = error.expect("there are no huge pages").to_string();
        assert!(error.contains("cannot open dpdk on ring0 (failed step: start DPDK)"), "{error}");
        assert!(error.contains("sysctl vm.nr_hugepages=512"), "{error}");
    }
    assert_nothing_left(std::process::id());
}

#[test]
fn an_ordinary_user_can_have_ports_in_memory() {
    let Some(mut command) = crate::role("open", "dpdk:memif0,role=server,socket=ms-user") else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return crate::run("open", "dpdk:memif0,role=server,socket=ms-user");
    }
    // The user "nobody".
    command.uid(65_534).gid(65_534).current_dir("/");
    match command.output() {
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{} {text}", done.status);
        }
        Err(error) => eprintln!("skipped: another user cannot run this program ({error})"),
    }
}

#[test]
fn an_unusable_device_names_itself() {
    if !millstream_link::dpdk::AVAILABLE {
        return;
    }
    let error = open("dpdk:0000:ff:1f.7").err().expect("there is no such device").to_string();
    let start = "cannot open dpdk on 0000:ff:1f.7 (failed step: look at the device)";
    assert!(error.starts_with(start) && error.contains("lspci"), "{error}");
}

/// A second link of that kind would make DPDK close a descriptor of another owner.
#[test]
fn memif_without_copies_is_had_once() {
    let link = "dpdk:memif7,role=client,zero-copy=trust-peer,socket=ms-none";
    if !millstream_link::dpdk::AVAILABLE {
        return;
    }
    drop(open(link).unwrap_or_else(|error| panic!("{error}")));
    let error = open(link).err().expect("it was had").to_string();
    assert!(error.contains("once in a process: leave out zero-copy="), "{error}");
}

/// Checks that a process has left no file, folder or socket.
#[track_caller]
pub fn assert_nothing_left(pid: u32) {
    for folder in ["/var/run/dpdk", "/tmp/dpdk", "/dev/hugepages", "/dev/shm"] {
        let names = std::fs::read_dir(Path::new(folder)).into_iter().flatten().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        let ours = format!("millstream-{pid}");
        assert!(!names.iter().any(|name| name.to_string_lossy().contains(&ours)), "{names:?}");
    }
}
