//! The receiver's graph, moved between plans while it decodes.

use crate::common::Random;
use millstream_atsc::blocks::register;
use millstream_flow::{GraphFile, MoveError, Partition, Plan, Registry, WaitMode};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const MOVES: usize = 100;

/// Returns a plan with every block in one of up to four partitions.
fn plan(random: &mut Random, blocks: &[String]) -> Plan {
    let mut below = |limit| random.next() as usize % limit;
    let mut parts = vec![Vec::new(); 1 + below(4)];
    for block in blocks {
        let part = below(parts.len());
        parts[part].push(block.clone());
    }
    let partitions = parts.into_iter().enumerate().filter(|(_, blocks)| !blocks.is_empty());
    let partition = |(index, blocks)| Partition {
        name: format!("part-{index}"),
        blocks,
        cpu: None,
        wait: WaitMode::Park,
    };
    Plan { partitions: partitions.map(partition).collect(), ..Plan::default() }
}

/// Writes the capture into a pipe. Its last twentieth comes slowly until `moved` is true, so that
/// the recording does not end before the moves do, however busy the machine is.
fn feed(capture: &[u8], pipe: &Path, moved: &AtomicBool) {
    let mut pipe = std::fs::OpenOptions::new().write(true).open(pipe).unwrap();
    let (most, last) = capture.split_at(capture.len() / 80 * 76);
    pipe.write_all(most).unwrap();
    for bytes in last.chunks(256) {
        if !moved.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        pipe.write_all(bytes).unwrap();
    }
}

/// Decodes a capture with `moves` moves during the run, and returns the output.
fn decode(capture: &Path, random: &mut Random, moves: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, moved) = (folder.path().join("in.sc16"), AtomicBool::new(false));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let samples = std::fs::read(capture).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| feed(&samples, &pipe, &moved));
        decode_pipe(&pipe, samples.len() as u64 / 4, random, moves, &moved)
    })
}

fn decode_pipe(
    pipe: &Path,
    samples: u64,
    random: &mut Random,
    moves: usize,
    moved: &AtomicBool,
) -> Vec<u8> {
    let output = pipe.with_file_name("out.ts");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/atsc-rx.toml");
    let file = GraphFile::read(&path).unwrap();
    let mut registry = Registry::builtin();
    let _monitors = register(&mut registry);
    let set = [format!("in={}", pipe.display()), format!("out={}", output.display())];
    let graph = file.build(&registry, &set).unwrap();
    let blocks: Vec<String> = graph.block_names().map(str::to_owned).collect();
    let mut running = graph.start(file.plan()).unwrap();
    for number in 0..moves {
        // Spread over the first nine tenths.
        let due = samples * 9 / 10 * number as u64 / moves as u64;
        while running.snapshot().blocks[1].items_in < due {
            std::thread::yield_now();
        }
        match running.repartition(&plan(random, &blocks), Duration::from_secs(2)) {
            Ok(_) => {}
            Err(MoveError::Ended) => panic!("it ended after {number} moves"),
            Err(error) => panic!("move {number}: {error}"),
        }
    }
    moved.store(true, Ordering::Relaxed);
    running.wait().unwrap();
    std::fs::read(&output).unwrap()
}

#[test]
fn a_hundred_moves_while_it_decodes_change_no_byte() {
    let seed = std::env::var("MILLSTREAM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x8b5b_a75c_u64);
    println!("seed {seed} (set MILLSTREAM_SEED to change it)");
    let mut random = Random::new(seed);
    let Some(capture) = crate::common::capture("8vsb-cn30-cfo2kHz-3ppm-6.25MSps.sc16") else {
        return;
    };
    let moved = decode(&capture, &mut random, MOVES);
    let unmoved = decode(&capture, &mut random, 0);
    println!("{} bytes with {MOVES} moves, {} without", moved.len(), unmoved.len());
    assert!(unmoved.len() > 1_000_000 && moved == unmoved, "the streams differ");
}
