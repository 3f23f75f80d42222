//! `millstream host net`, inside namespaces that the tests make.

use crate::common::{Outcome, Running, millstream};
use millstream_testkit::netns::{INTERFACE, Namespace, PairOptions, VethPair};
use std::path::Path;

/// Runs the built command inside a namespace.
fn inside(side: &Namespace, args: &[&str]) -> Outcome {
    let output = side.command(env!("CARGO_BIN_EXE_millstream")).args(args).output().unwrap();
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn an_import_reproduces_the_kernel_and_checks_clean() {
    let Some(pair) = VethPair::new(PairOptions { mtu: 3000, queues: 2 }) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.toml");
    let file = file.to_str().unwrap();
    pair.left.sh(&format!("ip route add 192.0.2.0/24 via {}", pair.right.address));
    inside(&pair.left, &["host", "net", "import", INTERFACE, "--out", file]).succeeds();
    let text = std::fs::read_to_string(file).unwrap();
    for part in ["mtu = 3000", "addresses = [\"10.99.0.1/24\"]", "to = \"192.0.2.0/24\""] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let again = inside(&pair.left, &["host", "net", "import", "--out", file]);
    again.fails(1, "exists already");
    let clean = inside(&pair.left, &["host", "net", "check", file]);
    assert!(clean.succeeds().stdout.contains(&format!("xdp:{INTERFACE}")), "{clean:?}");
    pair.left.sh(&format!("ip link set {INTERFACE} mtu 1500"));
    let dirty = inside(&pair.left, &["host", "net", "check", file, "--json"]);
    dirty.fails(1, "1 obstacle");
    let findings = &dirty.json()["results"]["findings"];
    let obstacle = findings.as_array().unwrap().iter().find(|one| one["kind"] == "obstacle");
    let expected = format!("its MTU is 1500, not 3000: `ip link set {INTERFACE} mtu 3000`");
    assert_eq!(obstacle.unwrap()["text"], expected);
}

#[test]
fn show_tells_driver_queues_and_links() {
    let Some(pair) = VethPair::new(PairOptions { queues: 3, ..Default::default() }) else { return };
    let shown = inside(&pair.left, &["host", "net", "show"]);
    for part in [
        "lo: up",
        &format!("{INTERFACE}: up, driver veth, MTU 1500, "),
        "3 receive (of 3), 3 transmit (of 3)",
        &format!("link       packet:{INTERFACE}: "),
    ] {
        assert!(shown.succeeds().stdout.contains(part), "{part} in {}", shown.stdout);
    }
    let one = inside(&pair.left, &["host", "net", "show", INTERFACE, "--json"]).json();
    assert_eq!(one["results"]["survey"]["interfaces"].as_array().unwrap().len(), 1);
    assert_eq!(one["results"]["survey"]["interfaces"][0]["driver"], "veth");
    inside(&pair.left, &["host", "net", "show", "eth9"])
        .fails(1, "no network interface \"eth9\" here");
}

#[test]
fn a_configuration_is_in_force_while_a_verb_runs() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.toml");
    let text = format!("[[interface]]\nname = \"{INTERFACE}\"\nlink = \"xdp\"\nmtu = 9000\n");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let radio = ["--config", file, "sim", "radio", "--addr", "127.0.0.1", "--duration", "0.1"];
    let refused = inside(&pair.left, &radio);
    refused.fails(1, &format!("the MTU of {INTERFACE} is 1500, not 9000"));
    // Verbs without links ignore it.
    inside(&pair.left, &["--config", file, "host", "net", "schema"]).succeeds();
    pair.left.sh(&format!("ip link set {INTERFACE} mtu 9000"));
    inside(&pair.left, &radio).succeeds();
}

#[test]
fn threads_are_listed_with_what_they_do() {
    let own = std::process::id().to_string();
    let folder = Path::new("/");
    let listed = millstream(folder, &["host", "net", "threads", &own, "--duration", "20ms"]);
    assert!(listed.succeeds().stdout.contains("wake-ups/s"), "{listed:?}");
    let document =
        millstream(folder, &["host", "net", "threads", &own, "--duration", "20ms", "--json"])
            .json();
    let threads = document["results"]["processes"][0]["threads"].as_array().unwrap();
    assert!(threads.iter().any(|one| one["thread"]["tid"] == std::process::id()), "{document}");
    millstream(folder, &["host", "net", "threads", "4194305"])
        .fails(1, "there is no process 4194305");
}

#[test]
fn a_wrong_file_is_answered_with_place_key_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), "[[interface]]\nname = \"a\"\nlink = \"tcp\"\n")
        .unwrap();
    let outcome = millstream(folder.path(), &["host", "net", "check", "x.toml"]);
    let said = "x.toml:3:8: interface[0].link: unknown link `tcp`, expected one of `xdp`";
    outcome.fails(1, said);
    let missing = millstream(
        folder.path(),
        &[
            "--config",
            "y.toml",
            "rx",
            "--args",
            "addr=127.0.0.1",
            "--rate",
            "1e6",
            "--nsamps",
            "1",
            "--out",
            "z",
        ],
    );
    missing.fails(1, "cannot read the configuration file y.toml");
    let schema = millstream(folder.path(), &["host", "net", "schema", "--json"]).json();
    assert_eq!(schema["results"]["type"], "object");
}

#[test]
fn links_are_listed_with_every_option_that_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |args: &[&str]| millstream(folder.path(), &[&["host", "net", "links"], args].concat());
    let all = run(&[]);
    assert!(all.stdout.contains("packet:INTERFACE "), "{}", all.stdout);
    let one = run(&["packet"]);
    for line in ["slots=2-65536 (slots of the receive ring", "address=IP/PREFIX (", "vlan=1-4094 ("]
    {
        assert!(one.stdout.contains(line), "{line}: {}", one.stdout);
    }
    let json = run(&["udp", "--json"]).json();
    assert_eq!(json["results"]["links"][0]["options"][0]["name"], "gro");
    run(&["warp"]).fails(1, "there is no link called \"warp\"");
}

#[test]
fn frames_on_a_queue_that_nobody_watches_are_explained_at_the_end() {
    let Some(pair) = VethPair::new(PairOptions { queues: 4, ..Default::default() }) else { return };
    let host = |queues: &str| {
        let link = format!("xdp:{INTERFACE},mode=generic,queues={queues}");
        let mut command = pair.left.command(env!("CARGO_BIN_EXE_millstream"));
        command.args(["host", "net", "host", "--link", &link, "--echo-port", "7000"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let running = Running::start(command);
        running.line("ready: ");
        // The kernel's hash assigns a queue to each flow: of this many flows, three quarters use
        // other queues.
        pair.right.run(|| {
            for _ in 0..64 {
                let socket = std::net::UdpSocket::bind((pair.right.address, 0)).unwrap();
                socket.send_to(b"?", (pair.left.address, 7000)).unwrap();
            }
        });
        running.signal(libc::SIGINT);
        running.wait()
    };
    let astray = host("0");
    assert!(astray.succeeds().stderr.contains("this link watches queue 0 only: open it with"));
    assert!(!host("all").succeeds().stderr.contains("watches queue"));
}
