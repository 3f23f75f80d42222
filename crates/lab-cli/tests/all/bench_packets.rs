//! `millstream-lab bench packets` and `latency udp|link`: their counts, not their speed.

use crate::common::{Outcome, Running, command, eventually, is_alive, millstream};
use millstream_cpu::proc::Stat;
use serde_json::Value;
use std::path::Path;

const QUICK: [&str; 8] =
    ["bench", "packets", "--repeat", "2", "--duration", "0.05", "--size", "1514"];

#[test]
fn without_rights_kernel_sockets_are_measured_on_loopback() {
    let args = ["--loopback", "--json"];
    let outcome = millstream(Path::new("/"), &[&QUICK[..], &args].concat());
    let document = outcome.succeeds().json();
    assert!(outcome.stderr.contains(": kernel UDP, 1514 bytes\n"), "{outcome:?}");
    let lines = lines(&document);
    assert!(lines.len() >= 5, "{document}");
    for line in lines {
        assert!(line["refused"].is_null(), "{line}");
        assert_eq!(line["runs"].as_array().unwrap().len(), 2);
        for run in line["runs"].as_array().unwrap() {
            let run = &run[1];
            assert!(run["rate_pps"].as_f64().unwrap() > 0.0, "{run}");
            let count = |name: &str| run[name].as_u64().unwrap();
            assert!(count("received") <= count("sent"), "{run}");
        }
    }
    assert_eq!(lines[0]["name"], "kernel UDP");
    assert_eq!(lines[0]["ratio"]["median"], 1.0);
    // Either the kernel counted system calls, or the document has the reason and the remedy.
    let why = document["results"]["untraced"].as_str();
    let can = lines[0]["traced"].is_object();
    assert_eq!(can, why.is_none(), "{document}");
    assert!(why.is_none_or(|why| why.contains("mount -t tracefs") || why.contains("root")));
}

#[test]
fn a_batch_divides_the_calls_and_a_plan_can_compare_the_cost() {
    let folder = tempfile::tempdir().unwrap();
    let measurement = |batch: u32| {
        format!(
            r#"[[measurement]]
            name = "batches of {batch}"
            args = ["bench", "packets", "--loopback", "--workload", "transmit", "--size", "64",
                    "--no-trace", "--only", "kernel UDP", "--duration", "0.05", "--batch",
                    "{batch}", "--repeat", "{{samples}}"]
            "#
        )
    };
    let plan = [1, 64].map(measurement).concat();
    let head = "name = \"batches\"\nrestarts = 1\nsamples = 2\nsettle_s = 0.0\n";
    std::fs::write(folder.path().join("plan.toml"), format!("{head}{plan}")).unwrap();
    let run = ["lab", "run", "plan.toml", "--no-store", "--records", "r.jsonl"];
    millstream(folder.path(), &run).succeeds();
    let records = std::fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
    let records: Vec<Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 4, "two measurements of one row, two samples each: {records:?}");
    let mut costs = Vec::new();
    for (name, calls) in [("batches of 1", 1.0), ("batches of 64", 1.0 / 64.0)] {
        for record in records.iter().filter(|record| record["name"] == name) {
            let measured = &record["measured"];
            let series = "kernel UDP, transmit only, 64 bytes, send: CPU time of a packet";
            assert_eq!(measured["series"], series);
            let seen = measured["details"]["calls_per_packet"].as_f64().unwrap();
            assert!((seen / calls - 1.0).abs() < 0.2, "{name}: {seen} calls a packet");
            costs.push(measured["observed"]["histogram"]["classes_ns"][0][0].as_u64().unwrap());
        }
    }
    assert!(costs.len() == 4 && costs.iter().all(|ns| (20..1_000_000).contains(ns)), "{costs:?}");
}

#[test]
fn a_receivers_calls_take_as_many_packets_as_it_is_told() {
    let args = ["bench", "packets", "--loopback", "--only", "kernel UDP", "--size", "64"];
    for (takes, calls) in [("1", 1.0), ("8", 0.125), ("64", 1.0 / 64.0)] {
        let more = ["--receive-batch", takes, "--repeat", "1", "--duration", "0.2", "--no-trace"];
        let outcome = millstream(Path::new("/"), &[&args[..], &more, &["--json"]].concat());
        let document = outcome.succeeds().json();
        let records = document["results"]["records"].as_array().unwrap();
        let side = |record: &&Value| record["series"].as_str().unwrap().contains("receive: CPU");
        let received = records.iter().find(side).unwrap();
        let seen = received["details"]["calls_per_packet"].as_f64().unwrap();
        // Beside full calls there is one, when the queue is empty, for each wait of 20 ms.
        assert!(seen >= calls && seen < calls * 1.3, "{takes} a call: {seen} calls a packet");
        assert_eq!(received["topology"], "loopback");
    }
    for (wrong, why) in [
        (&["--workload", "swap"][..], "needs a side that receives and sends nothing"),
        (&["--only", "udp port"], "does not: add --only 'kernel UDP'"),
    ] {
        let args = [&QUICK[..2], &["--loopback", "--receive-batch", "8"], wrong].concat();
        millstream(Path::new("/"), &args).fails(1, why);
    }
}

#[test]
fn a_bridge_is_on_the_way_of_every_round_trip_and_is_gone() {
    let before = interfaces();
    let measure = |ways: &[&str]| {
        let args = ["latency", "udp", "--count", "200", "--repeat", "2", "--only", "kernel UDP"];
        millstream(Path::new("/"), &[&args[..], ways, &["--json"]].concat())
    };
    let outcome = measure(&["--bridge"]);
    if outcome.stderr.contains("cannot make a network namespace")
        || outcome.stdout.contains("does this kernel have bridges?")
    {
        eprintln!("skipped: {}", outcome.stderr);
        return;
    }
    let records = |outcome: &Outcome| outcome.succeeds().json()["results"]["records"].clone();
    let bridged = records(&outcome);
    assert_eq!(bridged.as_array().unwrap().len(), 2);
    for record in bridged.as_array().unwrap() {
        assert_eq!(record["topology"], "bridge");
        assert_eq!(record["counters"]["lost"], 0);
        // Each round trip, with 20 before counting begins, is two frames; the bridge counts them.
        let frames = record["details"]["bridge_frames"].as_u64().unwrap();
        assert_eq!(frames, 2 * 220, "{record}");
    }
    let direct = records(&measure(&[]));
    assert_eq!(direct[0]["topology"], "veth");
    assert!(direct[0]["details"]["bridge_frames"].is_null(), "{direct}");
    assert_eq!(interfaces(), before);
}

#[test]
fn a_packet_by_single_calls_has_one_call_and_one_copy_each_way() {
    let args = ["--loopback", "--per-packet", "--batch", "1", "--only", "kernel UDP", "--no-trace"];
    let document = millstream(Path::new("/"), &[&QUICK[..], &args, &["--json"]].concat());
    let document = document.succeeds().json();
    for run in lines(&document)[0]["runs"].as_array().unwrap() {
        let figure = |of: &str, name: &str| run[1][of][name].as_f64().unwrap();
        for side in ["sender", "receiver"] {
            let calls = figure(side, "calls_per_packet");
            assert!((calls - 1.0).abs() < 0.05, "{side}: {calls} calls a packet: {run}");
            let wakeups = figure(side, "wakeups_per_packet");
            assert!((0.0..=1.5).contains(&wakeups), "{side}: {run}");
        }
        let copies = ["sender_copies", "receiver_copies"].map(|side| figure("budget", side));
        assert_eq!(copies, [1.0, 1.0]);
        let [median, p99] = ["delay_median_us", "delay_p99_us"].map(|of| figure("budget", of));
        assert!(0.0 < median && median <= p99 && p99 < 10e6, "{run}");
    }
    let text = millstream(Path::new("/"), &[&QUICK[..], &args].concat());
    let text = &text.succeeds().stdout;
    assert!(text.contains("budget of a packet, frames of 1514 bytes\n"), "{text}");
    assert!(text.contains("delay us") && text.contains("- where a driver"), "{text}");
}

#[test]
fn frames_of_xdp_take_far_less_than_a_call_and_a_port_copies_nothing_more() {
    // On a busy machine a thread may sleep through a shorter one.
    let long = ["bench", "packets", "--repeat", "2", "--duration", "0.4", "--size", "1514"];
    let args = ["--per-packet", "--only", "xdp native", "--no-trace", "--json"];
    let outcome = millstream(Path::new("/"), &[&long[..], &args].concat());
    if outcome.stderr.contains("cannot make a network namespace") {
        eprintln!("skipped: {}", outcome.stderr);
        return;
    }
    let document = outcome.json();
    for name in ["xdp native, spin", "xdp native port, spin"] {
        let line = lines(&document).iter().find(|line| line["name"] == name).unwrap();
        if let Some(reason) = line["refused"].as_str() {
            eprintln!("skipped: {name}: {reason}");
            continue;
        }
        let run = &line["runs"][0][1];
        // veth has no zero-copy: the kernel copies once on each side, and the port nothing more.
        assert_eq!(run["budget"]["sender_copies"], 1.0, "{name}: {run}");
        assert_eq!(run["budget"]["receiver_copies"], 1.0, "{name}: {run}");
        assert!(run["budget"]["delay_median_us"].as_f64().unwrap() > 0.0, "{name}: {run}");
        for side in ["sender", "receiver"] {
            let runs = line["runs"].as_array().unwrap().iter().map(|run| &run[1][side]);
            let mut busy = runs.filter(|side| side["packets"].as_u64().unwrap() > 100).peekable();
            assert!(busy.peek().is_some(), "{name}, {side}: {line}");
            // A port does not count its calls.
            let few = |side: &Value| side["calls_per_packet"].as_f64().is_none_or(|n| n < 0.2);
            assert!(busy.all(few), "{name}, {side}: {line}");
        }
    }
}

#[test]
fn the_base_alone_is_no_success() {
    let once = ["--loopback", "--repeat", "1", "--no-trace"];
    for (wanted, reason) in [
        (
            ["--only", "warp"],
            "no row has a name that contains warp: run the command without --only to see all names",
        ),
        (["--link", "udp:gro=maybe"], "no row could be measured"),
    ] {
        millstream(Path::new("/"), &[&QUICK[..2], &once, &wanted].concat()).fails(1, reason);
    }
}

#[test]
fn a_pair_in_namespaces_is_made_and_is_gone() {
    let before = interfaces();
    let args = ["--only", "udp port", "--workload", "drop,transmit,swap", "--json"];
    let outcome = millstream(Path::new("/"), &[&QUICK[..], &args].concat());
    if outcome.stderr.contains("cannot make a network namespace") {
        eprintln!("skipped: {}", outcome.stderr);
        return;
    }
    let document = outcome.succeeds().json();
    assert_eq!(document["results"]["places"][0]["interface"], "ms-a");
    for workload in document["results"]["workloads"].as_array().unwrap() {
        for line in workload["tables"][0]["lines"].as_array().unwrap() {
            assert!(line["rate_pps"]["median"].as_f64().unwrap() > 0.0, "{line}");
        }
    }
    assert_eq!(interfaces(), before);
}

#[test]
fn killed_it_leaves_no_process_behind() {
    let args = ["bench", "packets", "--loopback", "--repeat", "1000", "--no-trace"];
    let running = Running::start(command(Path::new("/"), &args));
    running.line("place");
    let sides = children(running.pid());
    assert_eq!(sides.len(), 2, "{sides:?}");
    running.signal(libc::SIGKILL);
    for pid in sides {
        eventually("the end of a side", || !is_alive(pid));
    }
}

#[test]
fn asked_to_end_it_prints_what_it_has() {
    let args =
        ["latency", "udp", "--loopback", "--count", "1000000", "--packet-rate", "100", "--json"];
    let running = Running::start(command(Path::new("/"), &args));
    running.line("place");
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    outcome.fails(1, "interrupted before the measurement had a result: run the command again");
    assert!(outcome.json()["results"]["rows"].is_array());
}

#[test]
fn every_round_trip_is_in_the_distribution() {
    for more in
        [&[][..], &["--packet-rate", "2000"], &["--load", "1000,20000", "--packet-rate", "1000"]]
    {
        let args = ["latency", "udp", "--loopback", "--count", "50", "--repeat", "2", "--json"];
        let outcome = millstream(Path::new("/"), &[&args[..], more].concat());
        let document = outcome.succeeds().json();
        assert!(outcome.stderr.lines().any(|line| line.starts_with("1 of ")), "{outcome:?}");
        for row in document["results"]["rows"].as_array().unwrap() {
            let classes = row["histogram"]["classes_ns"].as_array().unwrap();
            let count: u64 = classes.iter().map(|class| class[1].as_u64().unwrap()).sum();
            assert_eq!(count, 100, "{row}");
        }
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (args, status, part) in [
        (&["bench", "packets", "--size", "10"][..], 2, "give a whole number from 60 to 65535"),
        (&["bench", "packets", "--interface", "eth7"], 2, "--peer"),
        (&["latency", "udp", "--bridge", "--loopback"], 2, "cannot be used with"),
        (&["bench", "packets", "--duration", "0"], 2, "give a number of seconds above 0"),
        (
            &["bench", "packets", "--loopback", "--cpu", "999"],
            1,
            "this process may not use CPU 999: give one of the CPUs",
        ),
        (&["bench", "packets", "--loopback", "--only", "x", "--link", "warp"], 1, "no row"),
        (&["bench", "packets", "--loopback", "--class", "fifo:1", "--peer-cpu", "0"], 1, "one CPU"),
        (&["latency", "udp", "--count", "1"], 2, "give a whole number from 10 to"),
        (
            &["latency", "link", "--link", "udp"],
            1,
            "carries no Ethernet frames: use `millstream-lab latency udp`",
        ),
        (&["latency", "udp", "--loopback", "--link", "warp"], 1, "there is no link called"),
    ] {
        millstream(Path::new("/"), args).fails(status, part);
    }
}

fn lines(document: &Value) -> &Vec<Value> {
    document["results"]["workloads"][0]["tables"][0]["lines"].as_array().unwrap()
}

fn interfaces() -> Vec<String> {
    crate::common::names(Path::new("/sys/class/net"))
}

fn children(pid: u32) -> Vec<u32> {
    let all = crate::common::names(Path::new("/proc"));
    let pids = all.iter().filter_map(|name| name.parse::<u32>().ok());
    let parent = |pid: &u32| Stat::read(format!("/proc/{pid}").as_ref())?.field::<u32>(4);
    pids.filter(|child| parent(child) == Some(pid)).collect()
}
