//! `millstream-lab bench soak`: a few rounds, and errors that it has to find.

use crate::common::{Running, command, fault, millstream};
use serde_json::Value;
use std::path::Path;

/// The command with these arguments, over loopback.
fn soak<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["bench", "soak", "--loopback", "--json"][..], rest].concat()
}

#[test]
fn a_few_rounds_lose_what_they_inject_and_go_on_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let part = |count| {
        let args = ["--only", "one packet lost", "--state", "soak.json", "--count", count];
        let outcome = millstream(folder.path(), &[&soak(&args)[..], &["--seed", "3"]].concat());
        outcome.succeeds().json()["results"].take()
    };
    let first = part("1");
    assert_eq!(first["soak"]["rounds"], 1, "{first}");
    let results = part("3");
    let soak = &results["soak"];
    assert_eq!((&soak["rounds"], &soak["seed"]), (&3.into(), &3.into()), "{soak}");
    assert_eq!(soak["parts"][1]["first_round"], 1, "{soak}");
    assert_eq!(soak["complaint_count"], 0, "{soak}");
    let tally = &soak["faults"]["one packet lost"];
    let lost = tally["lost"].as_object().unwrap().values().filter_map(Value::as_u64);
    assert!(tally["hits"].as_u64() >= Some(1) && lost.sum::<u64>() >= 100, "{soak}");
    let without = &soak["faults"]["none"]["lost"];
    assert!(without.as_object().is_none_or(|lost| lost.is_empty()), "{soak}");
    let processes = results["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 4, "this process and the radio, twice: {results}");
    assert!(processes.iter().all(|one| one["rss_kib"][1].as_u64() > Some(1000)), "{results}");
    // What is done is not done again.
    assert_eq!(part("2")["soak"]["rounds"], 3);
}

#[test]
fn a_round_alone_has_its_number_and_a_round_that_was_cut_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let start = |rest: &[&str]| {
        let args = [&["--only", "one packet lost", "--seed", "3"][..], rest].concat();
        Running::start(command(folder.path(), &soak(&args)))
    };
    let alone = start(&["--round", "7"]);
    alone.line("soak    seed 3, only round 7");
    let results = alone.wait().succeeds().json()["results"].take();
    assert_eq!(results["soak"]["rounds"], 1, "{results}");
    assert_eq!(results["soak"]["parts"][0]["first_round"], 7, "{results}");
    let cut = start(&["--state", "soak.json"]);
    cut.line("radio   the radio on loopback");
    cut.signal(libc::SIGINT);
    cut.wait().fails(1, "interrupted after 0 s of 60.0 min: run the command again to go on");
    let state = std::fs::read_to_string(folder.path().join("soak.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state).unwrap()["rounds"], 0, "{state}");
}

/// Somebody else makes the radio lose packets: samples are lost, and the soak has not injected it.
#[test]
fn a_loss_that_nobody_injected_is_found_and_an_interrupt_saves_it() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--only", "short stall", "--state", "soak.json", "--seed", "5"];
    let running = Running::start(command(folder.path(), &soak(&args)));
    let line = running.line("radio   the radio on loopback");
    let control = line.rsplit(' ').next().unwrap();
    for way in ["to_host", "to_device"] {
        fault(control, &["add", "lose", way, "data", "every=50"]).succeeds();
    }
    running.line("millstream: round ");
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    let document = outcome.fails(1, "samples that were lost and not injected").json();
    let soak = &document["results"]["soak"];
    let told = |complaint: &Value| {
        complaint["text"].as_str().unwrap().contains("samples were lost that no fault hit")
    };
    assert!(soak["complaints"].as_array().unwrap().iter().any(told), "{soak}");
    let state = std::fs::read_to_string(folder.path().join("soak.json")).unwrap();
    assert_eq!(&serde_json::from_str::<Value>(&state).unwrap(), soak);
}

#[test]
fn a_state_that_cannot_be_saved_ends_the_soak_with_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("soak.json");
    let args = soak(&["--only", "one packet lost", "--state", "soak.json", "--seed", "3"]);
    let running = Running::start(command(folder.path(), &args));
    running.line("radio   the radio on loopback");
    millstream(folder.path(), &args).fails(1, "another `bench soak` works with the state");
    // The name cannot be given to another file.
    std::fs::remove_file(&state).unwrap();
    std::fs::create_dir(&state).unwrap();
    let outcome = running.wait();
    let document = outcome.fails(1, "cannot write the file soak.json").json();
    assert!(document["results"]["soak"]["rounds"].as_u64() >= Some(1), "{document}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn what_cannot_be_soaked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], part| {
        millstream(folder.path(), &soak(args)).fails(1, part);
    };
    refused(&["--only", "gremlins"], "there is no fault whose name contains \"gremlins\"");
    refused(&["--state", "/no/such/folder/x"], "cannot write the file /no/such/folder/x");
    std::fs::write(folder.path().join("x.json"), "{}").unwrap();
    refused(&["--state", "x.json"], "x.json is not a state of `bench soak` that this version");
    let state = ["--state", "y.json", "--only", "one packet lost", "--count", "1", "--seed"];
    millstream(folder.path(), &soak(&[&state[..], &["1"]].concat())).succeeds();
    refused(&[&state[..], &["2"]].concat(), "--seed is 2, and the soak in --state has 1");
    refused(
        &["--state", "y.json", "--only", "reboot"],
        "--only is \"reboot\", and the soak in --state has \"one packet lost\": leave out --only",
    );
    let path = folder.path().join("y.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let more = text.replace(r#"["udp on loopback"]"#, r#"["udp on loopback","xdp on veth"]"#);
    assert_ne!(more, text);
    std::fs::write(&path, more).unwrap();
    refused(
        &["--state", "y.json"],
        "the soak in --state has the links udp on loopback, xdp on veth, and this one would have \
         udp on loopback: give the rights and the options of its begin, or another file",
    );
    millstream(Path::new("/"), &soak(&["--round", "7"])).fails(2, "--seed <N>");
    millstream(Path::new("/"), &soak(&["--count", "0"])).fails(2, "give a whole number from 1 to");
}
