//! The same work without a runtime: one hand-written loop over two buffers.

use super::GraphRate;
use super::case::GraphCase;
use super::kernel::{KernelBlock, KernelItem};
use super::meter::Meter;
use millstream_flow::OneToOne;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Batches between two readings of the clock.
const BATCHES: usize = 64;
/// Alignment of buffers: a page, as for the memory of rings. Of all distances modulo the page, zero
/// was among the fastest.
const PAGE_BYTES: usize = 4096;

/// Runs the loop for `warm_up` and then `time`, with batches of `batch_bytes`.
pub fn run<T: KernelItem>(
    case: GraphCase,
    batch_bytes: usize,
    warm_up: Duration,
    time: Duration,
) -> GraphRate {
    let batch = (batch_bytes / size_of::<T>()).max(1);
    let stages = || (0..case.shape.stages).map(|_| KernelBlock::<T>::new(case.kernel)).collect();
    let mut pipes: Vec<Vec<KernelBlock<T>>> = (0..case.shape.pipes).map(|_| stages()).collect();
    let mut memory = [(); 2].map(|()| vec![T::default(); batch + PAGE_BYTES]);
    let mut buffers = memory.each_mut().map(|memory| {
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        &mut memory[start..start + batch]
    });
    let mut turn = |pipes: &mut Vec<Vec<KernelBlock<T>>>| {
        for stages in pipes {
            let [from, to] = &mut buffers;
            black_box(&mut *from).fill(T::default());
            let (mut from, mut to) = (from, to);
            for stage in stages {
                stage.run(from, black_box(to));
                std::mem::swap(&mut from, &mut to);
            }
            black_box(from);
        }
    };
    let mut run_for = |time: Duration| {
        let (start, mut items) = (Instant::now(), 0);
        while start.elapsed() < time {
            for _ in 0..BATCHES {
                turn(&mut pipes);
            }
            items += (BATCHES * batch * case.shape.pipes) as u64;
        }
        items
    };
    run_for(warm_up);
    let meter = Meter::start();
    let items = run_for(time);
    meter.rate(items)
}
