//! The kernel's tracer `timerlat` beside a measurement: how late the timer's interrupt came, and a
//! thread of the kernel after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millstream_cpu::CpuSet;
use millstream_host::trace::{Timerlat, TimerlatContext, TimerlatEvent, TimerlatLine, TraceError};
use millstream_measure::Observed;
use millstream_measure::record::Stage;
use millstream_stats::Histogram;

/// Interval at which the tracer's ring is read.
const LOOK: Duration = Duration::from_millis(50);

/// The two parts of a latency of the kernel's thread.
const PARTS: [&str; 2] = ["timer to interrupt", "interrupt to thread"];

/// What the tracer saw on a CPU.
#[derive(Debug, Clone)]
pub struct TimerlatSamples {
    /// The CPU.
    pub cpu: usize,
    /// Latencies of the kernel's thread, from the time of its timer.
    pub observed: Observed,
    /// Their two parts, of which each is the sum.
    pub stages: Vec<Stage>,
    /// Interrupts or threads whose other line is missing.
    pub unpaired: u64,
    /// Duration, seconds.
    pub seconds: f64,
    began_ns: Option<u64>,
    interrupt: Option<(u64, u64)>,
}

impl TimerlatSamples {
    fn new(cpu: usize) -> Self {
        let stage = |name: &str| {
            let (name, histogram) = (name.to_owned(), Histogram::default());
            Stage { name, histogram, total_ns: 0 }
        };
        Self {
            cpu,
            observed: Observed::default(),
            stages: PARTS.map(stage).into(),
            unpaired: 0,
            seconds: 0.0,
            began_ns: None,
            interrupt: None,
        }
    }

    fn add(&mut self, event: &TimerlatEvent) {
        let began_ns = *self.began_ns.get_or_insert(event.at_ns);
        let at_ns = event.at_ns.saturating_sub(began_ns);
        self.seconds = at_ns as f64 / 1e9;
        if event.context == TimerlatContext::Interrupt {
            self.unpaired += u64::from(self.interrupt.is_some());
            self.interrupt = Some((event.number, event.latency_ns));
            return;
        }
        let interrupt = self.interrupt.take().filter(|(number, _)| *number == event.number);
        let parts = interrupt.and_then(|(_, interrupt_ns)| {
            Some([interrupt_ns, event.latency_ns.checked_sub(interrupt_ns)?])
        });
        let Some(parts) = parts else {
            self.unpaired += 1;
            return;
        };
        self.observed.record(event.latency_ns, at_ns);
        for (stage, ns) in self.stages.iter_mut().zip(parts) {
            stage.histogram.record(ns);
            stage.total_ns += ns;
        }
    }
}

/// What the tracer saw.
#[derive(Debug, Clone)]
pub struct TimerlatFound {
    /// Each CPU.
    pub cpus: Vec<TimerlatSamples>,
    /// Events that the ring had no room for.
    pub lost: u64,
    /// Lines that are none of the tracer's.
    pub malformed: u64,
}

impl TimerlatFound {
    fn new(cpus: &CpuSet) -> Self {
        let cpus = cpus.iter().map(TimerlatSamples::new).collect();
        Self { cpus, lost: 0, malformed: 0 }
    }

    fn add(&mut self, line: TimerlatLine) {
        match line {
            TimerlatLine::Event(event) => {
                match self.cpus.iter_mut().find(|seen| seen.cpu == event.cpu) {
                    Some(seen) => seen.add(&event),
                    None => self.malformed += 1,
                }
            }
            TimerlatLine::Lost(lost) => self.lost += lost,
            TimerlatLine::Malformed => self.malformed += 1,
            TimerlatLine::Empty => {}
        }
    }
}

/// The running tracer, and the thread that reads it.
#[derive(Debug)]
pub struct TimerlatMonitor {
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Result<TimerlatFound, TraceError>>>,
}

impl TimerlatMonitor {
    /// Starts the tracer.
    ///
    /// # Errors
    /// [`TraceError`], with the remedy.
    pub fn start(cpus: &CpuSet, period_us: u64) -> Result<Self, TraceError> {
        let mut timerlat = Timerlat::start(cpus, period_us)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut found) = (Arc::clone(&stop), TimerlatFound::new(cpus));
        let read = move || loop {
            let is_last = stopped.load(Ordering::Relaxed);
            if is_last {
                timerlat.stop()?;
            }
            timerlat.read(|line| found.add(line))?;
            if is_last {
                return Ok(found);
            }
            thread::sleep(LOOK);
        };
        let reader = thread::Builder::new().name("ms-timerlat".to_owned()).spawn(read);
        let reader =
            reader.map_err(|source| TraceError::File { path: "trace_pipe".into(), source })?;
        Ok(Self { stop, reader: Some(reader) })
    }

    /// Ends the tracer, restores its settings, and returns what it saw.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn end(mut self) -> Result<TimerlatFound, TraceError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(found)) => found,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("the reader is joined once"),
        }
    }
}

impl Drop for TimerlatMonitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_pair_sum_to_the_threads_latency_and_others_are_counted() {
        // Of two CPUs, as a kernel wrote it: the first interrupt of CPU 1 is missing.
        let text = "# tracer: timerlat\n\
            <...>-90 [001] ..... 10.000010: #6 context thread timer_latency 9000 ns\n\
            <idle>-0 [000] d.h1. 10.000500: #3 context irq timer_latency 1000 ns\n\
            <...>-89 [000] ..... 10.000507: #3 context thread timer_latency 8000 ns\n\
            <idle>-0 [001] d.h1. 10.001000: #7 context irq timer_latency 2000 ns\n\
            <...>-90 [001] ..... 10.001010: #7 context thread timer_latency 12000 ns\n\
            CPU:1 [LOST 2 EVENTS]\n\
            what is this\n\
            <idle>-0 [001] d.h1. 10.003000: #9 context irq timer_latency 2000 ns\n\
            <idle>-0 [001] d.h1. 10.004000: #10 context irq timer_latency 2000 ns\n\
            <...>-90 [001] ..... 10.004001: #10 context thread timer_latency 1000 ns\n\
            <idle>-0 [005] d.h1. 10.005000: #1 context irq timer_latency 2000 ns\n";
        let mut found = TimerlatFound::new(&"0-1".parse().unwrap());
        text.lines().for_each(|line| found.add(TimerlatLine::parse(line)));
        assert_eq!((found.lost, found.malformed), (2, 2));
        let [first, second] = &found.cpus[..] else { panic!("two CPUs") };
        let totals = |one: &TimerlatSamples| one.stages.iter().map(|part| part.total_ns).collect();
        let (first_ns, second_ns): (Vec<_>, Vec<_>) = (totals(first), totals(second));
        assert_eq!((first_ns, second_ns), (vec![1000, 7000], vec![2000, 10_000]));
        // A thread without its interrupt, an interrupt without its thread, a thread before it.
        assert_eq!((first.unpaired, second.unpaired), (0, 3));
        assert_eq!((first.observed.histogram.count(), second.observed.histogram.count()), (1, 1));
        assert!((second.seconds - 0.003_991).abs() < 1e-9, "{}", second.seconds);
    }
}
