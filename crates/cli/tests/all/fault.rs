//! `millstream sim fault`: faults come and go while a radio serves.

use crate::common::{Radio, fault, millstream};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn radio(args: &[&str]) -> (Radio, String) {
    let args = [&["--rx-antenna", "ramp", "--time-scale", "0.5"], args].concat();
    Radio::start_with_control(Path::new("/"), &args)
}

#[test]
fn a_fault_is_added_seen_at_work_and_removed() {
    let (radio, control) = radio(&["--fault", "lose to_host data skip=10 count=2"]);
    let added =
        fault(&control, &["add", "--json", "lose", "to_host", "data", "skip=50", "count=1"]);
    assert_eq!(added.succeeds().json()["results"]["id"], 2);
    let folder = tempfile::tempdir().unwrap();
    let device = radio.args();
    let rx = ["rx", "--json", "--args", &device, "--rate", "1e6", "--nsamps", "300000"];
    let rx = millstream(folder.path(), &[&rx[..], &["--out", "x.sc16"]].concat());
    let ledger = rx.json()["results"]["ledger"].take();
    assert_eq!(ledger["balances"], true, "{ledger}");
    assert_eq!(ledger["expected"], 300_000);
    let list = fault(&control, &["list", "--json"]).succeeds().json();
    let faults = &list["results"]["faults"];
    assert_eq!((&faults[0]["hit"], &faults[1]["hit"]), (&2.into(), &1.into()), "{faults}");
    let text = fault(&control, &["list"]);
    assert!(text.succeeds().stdout.contains("lose to_host data skip=10 count=2  (done)"));
    assert!(fault(&control, &["remove", "1"]).succeeds().stdout.contains("skip=10"));
    fault(&control, &["remove", "1"]).fails(1, "there is no fault 1; there are: 2");
    assert_eq!(fault(&control, &["clear"]).succeeds().stdout, "removed: 1\n");
    assert_eq!(fault(&control, &["list"]).succeeds().stdout, "no faults\n");
    assert!(fault(&control, &["counters"]).succeeds().stdout.contains("rx_packets"));
    radio.stop();
}

#[test]
fn what_cannot_be_done_says_what_can() {
    let (radio, control) = radio(&[]);
    fault(&control, &["add", "loose", "to_host"])
        .fails(1, "`loose` is no fault; did you mean `lose`? give one of lose, ");
    fault(&control, &["remove", "9"]).fails(1, "there is no fault 9; no fault is active");
    fault("nowhere", &["list"]).fails(2, "expected IPV4:PORT or a port number");
    radio.stop();
    fault(&control, &["list"]).fails(1, "start the radio with `--control");
    let refused = ["sim", "radio", "--addr", "127.0.12.9", "--fault", "stall"];
    millstream(Path::new("/"), &refused).fails(
        1,
        "cannot use fault `stall`: `ms=` is missing: it has no default; `millstream sim fault add \
         --help` lists all forms",
    );
}

#[test]
fn hostile_bytes_on_the_control_channel_do_no_harm() {
    let (radio, control) = radio(&[]);
    let mut held = Vec::new();
    for bytes in
        [vec![0xff; 100_000], b"{\"op\":".repeat(1000), vec![b'\n'; 30_000], vec![b'['; 90]]
    {
        let mut stream = TcpStream::connect(&control).unwrap();
        // The radio may close the connection before it has read everything.
        let _ = stream.write_all(&bytes);
        held.push(stream);
    }
    // More connections than it accepts: the surplus is refused.
    held.extend((0..40).map_while(|_| TcpStream::connect(&control).ok()));
    drop(held);
    crate::common::eventually("room for a polite request", || {
        let Ok(mut stream) = TcpStream::connect(&control) else { return false };
        let mut line = String::new();
        stream.write_all(b"{\"op\":\"list\"}\n").is_ok()
            && BufReader::new(stream.take(1000)).read_line(&mut line).is_ok()
            && line == "{\"faults\":[],\"ok\":true}\n"
    });
    let counters = radio.stop();
    assert!(counters["control_channel_refused"].as_u64() > Some(0), "{counters}");
}
