//! Rules of every block type of this program: what it does outside of a graph is stated, and a
//! rehearsal leaves no trace there.

use super::registry;
use millstream_flow::registry::{BlockEffect, ParameterKind};
use millstream_flow::{BlockFacts, InputPort, Mock, OutputPort, PortVisitor};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Ends every input, so that a block runs from its start to its finish.
struct Inputs(Vec<String>);

impl PortVisitor for Inputs {
    fn input(&mut self, name: &str, _: &mut dyn InputPort) {
        self.0.push(name.to_owned());
    }

    fn output(&mut self, _: &str, _: &mut dyn OutputPort) {}
}

/// The files of this thread, by what they lead to.
fn open_files() -> Vec<PathBuf> {
    let listed = std::fs::read_dir("/proc/thread-self/fd").unwrap();
    let mut files: Vec<_> =
        listed.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok()).collect();
    files.retain(|file| !file.ends_with("fd"));
    files.sort();
    files
}

/// The files of a folder, with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Runs the block of each example in its rehearsal form, in a thread with files and a folder of its
/// own; returns those that left a trace.
fn traces(folder: &Path) -> Vec<String> {
    // SAFETY: only this thread's table of files and its working folder are split off; the tables of
    // other threads keep the descriptors that they own.
    unsafe { unshare_unsafe(UnshareFlags::FILES | UnshareFlags::FS).unwrap() };
    std::env::set_current_dir(folder).unwrap();
    let (registry, _) = registry();
    let mut traces = Vec::new();
    for known in registry.types() {
        let (name, files, before) = (known.name(), open_files(), contents(folder));
        let mut block = match registry.make_example(name) {
            Ok(block) => block,
            // It reads a file, and none is there.
            Err(_) if known.effect() == BlockEffect::Reads => continue,
            Err(error) => panic!("{error}"),
        };
        let mut inputs = Inputs(Vec::new());
        block.ports(&mut inputs);
        let made = open_files();
        let mut mock = Mock::new(block);
        let rings = open_files();
        mock.call().unwrap();
        let during = open_files();
        inputs.0.iter().for_each(|input| mock.end(input));
        if !inputs.0.is_empty() {
            mock.run().unwrap();
        }
        let are_open = made != files || during != rings || open_files() != rings;
        // A file that is only read stays open.
        let may_read = known.effect() == BlockEffect::Reads;
        if (are_open && !may_read) || contents(folder) != before {
            traces.push(format!("{name}: {made:?} {during:?}"));
        }
    }
    traces
}

#[test]
fn no_rehearsal_of_any_type_touches_a_file_a_network_or_a_device() {
    let folder = tempfile::tempdir().unwrap();
    // What a sink would destroy, and what a source may read.
    for name in ["out.u8", "out.wav", "out.sigmf-meta", "out.sigmf-data", "packets.jsonl"] {
        std::fs::write(folder.path().join(name), "an older recording").unwrap();
    }
    std::fs::write(folder.path().join("in.sc16"), [0; 64]).unwrap();
    let path = folder.path().to_owned();
    let traces = std::thread::spawn(move || traces(&path)).join().unwrap();
    assert_eq!(traces, Vec::<String>::new());
}

#[test]
fn stand_ins_take_the_messages_and_listed_types_are_made() {
    let (registry, _) = registry();
    for known in registry.types().filter(|known| known.outside_ports().is_none()) {
        let made = registry.make_example(known.name());
        assert!(made.is_ok(), "{}: {:?}", known.name(), made.err());
    }
    for (name, message) in [("radio_rx", "freq_hz"), ("radio_rx", "stop"), ("nats_sink", "event")] {
        let messages = BlockFacts::of(&registry.make_example(name).unwrap()).messages;
        assert!(messages.iter().any(|known| known.name == message), "{name}: {messages:?}");
    }
}

#[test]
fn graphs_that_differ_only_in_a_name_outside_share_their_plans() {
    let (registry, _) = registry();
    for known in registry.types().filter(|known| known.effect() != BlockEffect::Pure) {
        for parameter in known.parameters() {
            let names = parameter.kind == ParameterKind::Text && parameter.default.is_none();
            let shared = known.is_incidental(parameter.name);
            assert!(!names || shared, "{} of {} is not incidental", parameter.name, known.name());
        }
    }
}
