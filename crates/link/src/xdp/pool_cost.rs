//! What taking and giving back a buffer costs, printed with `--nocapture`: could a cache of a core
//! save anything?

use super::*;
use rustix::mm::MapFlags;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Mutex;

const CHUNKS: usize = 4096;
const BATCH: usize = 64;
/// Batches of a round. Unoptimised code is only tried.
const TURNS: usize = if cfg!(debug_assertions) { 100 } else { 20_000 };

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[test]
fn pool_costs_are_those_of_its_list() {
    let geometry = Geometry { chunk: 2048, unaligned: false };
    let new = || FramePool::new(geometry, CHUNKS, CHUNKS / 2);
    let memory = FrameMemory::anonymous(CHUNKS * 2048, MapFlags::empty()).unwrap();
    let mut frames = Vec::with_capacity(BATCH);
    // A batch is lent to transmit and comes back.
    let mut turn = |pool: &mut FramePool| {
        assert_eq!(pool.reserve(&memory, &mut frames, BATCH), BATCH);
        frames.drain(..).for_each(|frame| pool.put(&memory, frame));
    };
    let time = |turn: &mut dyn FnMut()| {
        let before_ns = cpu_ns();
        (0..TURNS).for_each(|_| turn());
        (cpu_ns() - before_ns) / (TURNS * BATCH) as f64
    };
    let (mut own, shared) = (new(), Mutex::new(new()));
    let mut costs = [const { Vec::new() }; 2];
    for _ in 0..9 {
        costs[0].push(time(&mut || turn(&mut own)));
        costs[1].push(time(&mut || turn(&mut shared.lock().unwrap())));
    }
    assert_eq!((own.free(), shared.lock().unwrap().free()), (CHUNKS, CHUNKS), "none is lost");
    for (name, costs) in ["one thread's", "behind a lock"].iter().zip(&mut costs) {
        costs.sort_by(f64::total_cmp);
        let [median, least, most] = [costs[costs.len() / 2], costs[0], costs[costs.len() - 1]];
        println!("{name:<14} {median:.2} ns a buffer ({least:.2} to {most:.2})");
    }
}
