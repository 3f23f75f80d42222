//! `millstream watch` beside a program, between two network namespaces.

use crate::common::{Running, eventually};
use millstream_testkit::netns::{Namespace, PairOptions, VethPair};
use std::path::Path;
use std::process::Stdio;

/// Starts the built command inside a namespace.
fn inside(side: &Namespace, folder: &Path, args: &[&str]) -> Running {
    let mut command = side.command(crate::PROGRAM);
    command.current_dir(folder).args(args).env("XDG_STATE_HOME", folder.join(".state"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)
}

/// Starts a radio on the left side, which loses three packets; returns its device arguments.
fn radio(pair: &VethPair, folder: &Path) -> (Running, String) {
    let address = pair.left.address.to_string();
    let fault = "lose to_host data skip=100 every=300 count=3";
    let radio = ["sim", "radio", "--addr", &address, "--fault", fault];
    let radio =
        inside(&pair.left, folder, &[&radio[..], &["--rx-buffer-samples", "16777216"]].concat());
    radio.line("ready");
    (radio, format!("addr={address}"))
}

#[test]
fn packets_that_never_came_are_lost_on_the_wire_and_counted() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_radio, args) = radio(&pair, folder.path());
    let rx = [crate::PROGRAM, "rx", "--args", &args, "--rate", "1e6", "--freq", "100e6"];
    let rx = [&rx[..], &["--nsamps", "1000000", "--out", "a.sc16"]].concat();
    let watch = ["watch", "--json", "--max-lost", "2", "--record", "a.pcapng", "--"];
    let watched = inside(&pair.right, folder.path(), &[&watch[..], &rx].concat()).wait();
    watched.fails(1, "3 losses, and --max-lost 2 allows no more");
    let results = &watched.json()["results"];
    let program = &results["programs"][0];
    assert!(program["name"] == "millstream" && program["status"] == 0, "{results}");
    assert_eq!(results["flows"][0]["lost_before"], 3, "{results}");
    let losses = results["losses"].as_array().unwrap();
    // The counters of a CPU's backlog are of the whole machine, where other tests run, too.
    let places = losses.iter().map(|loss| (&loss["kind"], &loss["hop"], &loss["packets"]));
    assert!(places.clone().all(|place| place.0 == "lost" && place.1 == "wire"), "{results}");
    assert_eq!(places.map(|place| place.2.as_u64().unwrap()).sum::<u64>(), 3, "{results}");
    // Its recording tells the same elsewhere.
    let inspected = inside(&pair.left, folder.path(), &["inspect", "a.pcapng", "--json"]).wait();
    assert_eq!(inspected.succeeds().json()["results"]["losses"], results["losses"]);
}

#[test]
fn a_program_is_watched_in_its_network_namespace_until_it_ends() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (_radio, args) = radio(&pair, folder.path());
    let rx = ["rx", "--args", &args, "--rate", "1e6", "--freq", "100e6", "--out", "a.sc16"];
    let rx = inside(&pair.right, folder.path(), &rx);
    let pid = rx.pid().to_string();
    let watch = inside(&pair.left, folder.path(), &["watch", "--json", "--pid", &pid]);
    watch.line("");
    let samples = folder.path().join("a.sc16.part");
    let length = || samples.metadata().map_or(0, |samples| samples.len());
    let before = length();
    eventually("samples", || length() > before + 4_000_000);
    rx.signal(libc::SIGINT);
    rx.wait().succeeds();
    let results = watch.wait().succeeds().json()["results"].take();
    let flow = &results["flows"][0];
    let host = flow["destination"].as_str().unwrap();
    assert!(host.starts_with(&format!("{}:", pair.right.address)), "{results}");
    assert!(flow["packets"].as_u64() > Some(1000), "{results}");
    assert_eq!(results["programs"][0]["pid"].to_string(), pid, "{results}");
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let number = i32::MAX.to_string();
    let watched = crate::common::millstream(folder.path(), &["watch", "--pid", &number]);
    watched.fails(1, &format!("there is no process {number}"));
}
