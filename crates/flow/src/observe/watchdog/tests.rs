use super::*;

const LIMIT: Duration = Duration::from_secs(2);

fn block(name: &str, calls: u64, progress: u64, hindrance: Option<Why>) -> BlockScene {
    BlockScene { name: name.to_owned(), finished: false, calls, progress, hindrance }
}

fn starved() -> Option<Why> {
    Some(Why::Starved { wanted: 4096, available: 812, writer: "source".into() })
}

fn call(block: Option<(&str, u64)>, sweeps: u64) -> RunningBlock {
    let block = block.map(|(name, calls)| (name.to_owned(), calls));
    RunningBlock { partition: "front".into(), block, sweeps }
}

#[test]
fn a_block_that_stays_in_one_call_is_named() {
    let (start, mut watch) = (Instant::now(), WatchdogState::default());
    let mut look = |ms: u64, call: RunningBlock, progress: u64| {
        let blocks = vec![block("a", 0, progress, None)];
        let scene = Scene { blocks, running: vec![call] };
        watch.look(start + Duration::from_millis(ms), LIMIT, &scene)
    };
    assert!(look(0, call(Some(("a", 7)), 3), 1).is_empty());
    assert!(look(1900, call(Some(("a", 7)), 3), 2).is_empty(), "not yet");
    assert!(look(2100, call(Some(("a", 8)), 3), 3).is_empty(), "the next call");
    assert!(look(4000, call(None, 4), 4).is_empty(), "it sleeps");
    assert!(look(9000, call(None, 4), 5).is_empty(), "a thread may sleep for long");
    assert!(look(9001, call(Some(("a", 8)), 5), 6).is_empty());
    let stalls = look(11_501, call(Some(("a", 8)), 5), 7);
    let [stall] = &stalls[..] else { panic!("{stalls:?}") };
    let text = "block `a` of partition `front` has been in one call for 2.5 s";
    assert_eq!(stall.to_string(), text);
}

#[test]
fn a_graph_that_does_not_move_is_explained_from_its_cause() {
    let (start, mut watch) = (Instant::now(), WatchdogState::default());
    let mut look = |ms: u64, calls: u64, progress: u64| {
        let blocks = vec![
            BlockScene { finished: true, ..block("over", 9, 9, None) },
            block("demod", 5, progress, starved()),
            block("source", calls, 0, None),
            block("clock", 3, 0, None),
        ];
        watch.look(start + Duration::from_millis(ms), LIMIT, &Scene { blocks, running: vec![] })
    };
    assert!(look(0, 100, 1).is_empty());
    assert!(look(1900, 200, 1).is_empty(), "not yet");
    assert!(look(2100, 200, 2).is_empty(), "it has moved");
    assert!(look(4000, 300, 2).is_empty());
    let stalls = look(4200, 400, 2);
    let [stall] = &stalls[..] else { panic!("{stalls:?}") };
    let text = "no item has moved for 2.1 s: `source` is called and gives no items; `clock` has \
                asked to be called later; `demod` waits for 4096 items of `source`, and has 812";
    assert_eq!(stall.to_string(), text);
    assert!(look(4300, 400, 3).is_empty(), "it moves again");
}

#[test]
fn a_full_ring_names_who_does_not_empty_it() {
    let why = Why::Blocked {
        output: "demod.out".into(),
        wanted: 832,
        room: 12,
        capacity: 16_384,
        readers: vec!["viterbi".into(), "scope".into()],
    };
    let reason = StallReason { block: "demod".into(), why };
    let text = "`demod` waits for room for 832 items in `demod.out` (12 of 16384 free), which \
                `viterbi`, `scope` have not emptied";
    assert_eq!(reason.to_string(), text);
}
