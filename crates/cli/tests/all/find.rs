//! `millstream find`.

use crate::common::{Radio, address, millstream};
use std::path::Path;

#[test]
fn a_radio_is_found_by_its_address() {
    let radio = Radio::start(Path::new("/"), &["--serial", "FIND-ME", "--name", "roof"]);
    let addr = radio.addr.to_string();
    let find = ["find", "--addr", &addr, "--timeout", "60s"];
    let outcome = millstream(Path::new("/"), &find);
    let expected = format!("{addr:<15} e320 (type e3xx, serial FIND-ME, name roof)\n");
    let shown = &outcome.succeeds().stdout;
    assert!(shown.starts_with(&expected), "{shown}");
    for part in ["                MPM ", " (UHD ", ", RFNoC ", ", usable\n"] {
        assert!(shown.contains(part), "no {part:?}: {shown}");
    }
    let document = millstream(Path::new("/"), &[&find[..], &["--json"]].concat()).json();
    let found = &document["results"]["radios"][0];
    assert_eq!((&found["addr"], &found["claimed"]), (&addr.as_str().into(), &false.into()));
    assert_eq!(found["fields"]["serial"], "FIND-ME");
    assert_eq!((&found["usable"], &found["obstacle"]), (&true.into(), &serde_json::Value::Null));
    // Its management server is not there: it is listed with the reason.
    let other = millstream(Path::new("/"), &[&find[..], &["--rpc-port", "9"]].concat());
    other.succeeds();
    assert!(other.stdout.contains(", name roof)\n"), "{}", other.stdout);
    assert!(
        other.stdout.contains("not usable: cannot connect to the management"),
        "{}",
        other.stdout
    );
    assert!(radio.stop()["discovery_requests"].as_u64() >= Some(2));
}

#[test]
fn nobody_there_says_what_to_do() {
    let addr = address().to_string();
    let outcome = millstream(Path::new("/"), &["find", "--addr", &addr, "--timeout", "20ms"]);
    outcome.fails(1, "start an emulated one with `millstream sim radio`");
    outcome.fails(1, &format!("no radio answers at {addr} (UDP port 49600)"));
    // No radio listens on this port. Tests ask this machine only: its networks belong to others.
    let nobody = ["find", "--local", "--discovery-port", "9", "--timeout", "20ms"];
    millstream(Path::new("/"), &nobody).fails(1, "no radio answers on this machine (UDP port 9)");
}

#[test]
fn radios_on_this_machine_are_found_without_an_address() {
    // A private port: other tests serve radios on the usual one.
    let port = (20_000 + std::process::id() % 10_000).to_string();
    let serve =
        |serial| Radio::start(Path::new("/"), &["--serial", serial, "--discovery-port", &port]);
    // Two of them with one serial number: neither hides the other.
    let radios = [serve("1A"), serve("1A"), serve("2B")];
    let outcome = millstream(Path::new("/"), &["find", "--local", "--discovery-port", &port]);
    let found = &outcome.succeeds().stdout;
    for radio in &radios {
        let addr = radio.addr.to_string();
        assert!(found.lines().any(|line| line.starts_with(&addr)), "{addr}: {found}");
    }
    assert_eq!(found.matches("serial 1A,").count(), 2, "{found}");
    assert_eq!(found.matches(", same serial as 127.").count(), 1, "{found}");
    for radio in radios {
        radio.stop();
    }
}
