//! The receiver's graph file on the flowgraph runtime.

use crate::common::{Channel, check_numbered, receive, receiver, signal};
use millstream_atsc::blocks::register;
use millstream_atsc::monitor::LockState;
use millstream_flow::file::GraphFile;
use millstream_flow::registry::Registry;
use std::path::Path;

fn graph() -> GraphFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/atsc-rx.toml");
    GraphFile::read(&path).unwrap()
}

#[test]
fn the_graph_gives_the_same_packets_as_the_receiver_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("signal.cf32"), folder.path().join("out.ts"));
    let samples = signal(11, 0.12, Channel { cn_db: Some(25.0), ..Channel::default() });
    let bytes: Vec<u8> =
        samples.iter().flat_map(|s| [s.re.to_le_bytes(), s.im.to_le_bytes()]).flatten().collect();
    std::fs::write(&input, bytes).unwrap();
    let mut registry = Registry::builtin();
    let monitors = register(&mut registry);
    let file = graph();
    let overrides =
        [format!("in={}", input.display()), format!("out={}", output.display())].to_vec();
    let graph = file.build(&registry, &overrides).unwrap();
    graph.run(file.plan()).unwrap();
    let mut receiver = receiver(6.25e6);
    let mut alone = receive(&mut receiver, &samples);
    let before = alone.len();
    receiver.finish(&mut |packet| alone.push(*packet));
    assert!(alone.len() > before, "nothing was left at the end");
    check_numbered(11, &alone);
    assert!(alone.len() > 500, "{} packets", alone.len());
    assert!(std::fs::read(&output).unwrap() == alone.as_flattened(), "the streams differ");
    let status = monitors.of("atsc").status();
    assert_eq!((status.state, status.packets), (LockState::Locked, alone.len() as u64));
    assert!(status.mer_db.unwrap() > 22.0, "{status:?}");
    assert_eq!(monitors.all().len(), 1);
}

#[test]
fn a_wrong_rate_is_refused_with_the_blocks_name_and_advice() {
    let mut registry = Registry::builtin();
    let _ = register(&mut registry);
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("signal.sc16");
    std::fs::write(&input, [0; 64]).unwrap();
    let overrides = [format!("in={}", input.display()), "out=x.ts".into(), "rate=5e6".into()];
    let Err(error) = graph().build(&registry, &overrides) else { panic!("a wrong rate is taken") };
    let text = error.to_string();
    assert!(text.contains("demod") && text.contains("choose a rate from 5450000"), "{text}");
}
