//! The end of a run.

use super::RehearsalError;
use millstream_cpu::usage::process_cpu_time;
use millstream_flow::runtime::{RunningGraph, Snapshot};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The interval at which the user's request to end is polled: a poll costs the CPU time that is
/// measured.
const TICK: Duration = Duration::from_millis(20);
/// The longest time to the end of a stopped graph, and after the user's request.
const GRACE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(2)];

/// The end of a run.
pub(super) struct RunEnd {
    pub(super) snapshot: Snapshot,
    pub(super) at: Instant,
    pub(super) cpu: Duration,
    /// It was stopped, and would have continued.
    pub(super) was_stopped: bool,
}

/// Waits for the end of a graph, which is stopped after `limit`, or at the user's request. A graph
/// that continues all the same is abandoned with its threads. Another thread waits, so that the run
/// is not disturbed and the end is noticed at once.
pub(super) fn await_end(
    running: RunningGraph,
    limit: Duration,
    asked: &dyn Fn() -> bool,
) -> Result<RunEnd, RehearsalError> {
    let (stopper, began) = (running.stopper(), Instant::now());
    let (tell, ended) = channel();
    std::thread::spawn(move || {
        let outcome = running.wait();
        // The receiver may be gone.
        let _ = tell.send((outcome, Instant::now(), process_cpu_time()));
    });
    let mut stopped = None;
    loop {
        let is_asked = asked();
        match stopped {
            None if is_asked || began.elapsed() >= limit => {
                stopper.stop();
                stopped = Some(Instant::now());
            }
            Some(at) if at.elapsed() >= GRACE[usize::from(is_asked)] => {
                return Err(match is_asked {
                    true => RehearsalError::Interrupted,
                    false => RehearsalError::Stuck(at.elapsed()),
                });
            }
            _ => {}
        }
        if let Ok((outcome, at, cpu)) = ended.recv_timeout(TICK) {
            return Ok(RunEnd { snapshot: outcome?, at, cpu, was_stopped: stopped.is_some() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Ports;
    use millstream_flow::blocks::{NullSink, NullSource};
    use millstream_flow::plan::{Plan, WaitMode};
    use millstream_flow::{Block, BlockError, Context, Graph, Out, Work};
    use std::sync::mpsc::{Receiver, Sender};

    const LONG: Duration = Duration::from_secs(600);

    /// A source that returns when it is released.
    #[derive(Ports)]
    struct Stuck {
        output: Out<u8>,
        inside: Sender<()>,
        release: Receiver<()>,
    }

    impl Block for Stuck {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            self.inside.send(())?;
            let _ = self.release.recv();
            Ok(Work::Finished)
        }
    }

    fn start(source: impl Block + 'static) -> RunningGraph {
        let mut graph = Graph::new();
        graph.add("source", source).unwrap();
        graph.add("sink", NullSink::<u8>::new()).unwrap();
        graph.chain(&["source", "sink"]).unwrap();
        let plan = Plan::single(&graph, WaitMode::Park);
        graph.start(&plan).unwrap()
    }

    #[test]
    fn who_asks_ends_a_run_that_would_go_on() {
        let end = await_end(start(NullSource::<u8>::new()), LONG, &|| true).unwrap();
        assert!(end.was_stopped);
        assert!(end.snapshot.block("sink").is_some());
    }

    #[test]
    fn a_block_that_does_not_come_back_is_left_behind() {
        let ((inside, arrived), (let_go, release)) = (channel(), channel());
        let running = start(Stuck { output: Out::new(), inside, release });
        arrived.recv().unwrap();
        let began = Instant::now();
        let outcome = await_end(running, LONG, &|| true);
        assert!(matches!(outcome, Err(RehearsalError::Interrupted)));
        assert!(began.elapsed() >= GRACE[1]);
        drop(let_go);
    }
}
