//! A real converter, through the kernel's Industrial I/O: the kernel takes the time at the
//! trigger's interrupt and puts it into the scan; the user reads it with the samples.
//!
//! With a timer as the trigger the edges are known except for a constant: they lie on a grid whose
//! period the kernel maintains exactly, so the earliest of all interrupts shows where the grid
//! begins. The lateness of the others relative to it is a part of its own; the lateness that all
//! have in common is in no part.

use super::host::{IrqError, PATIENCE};
use super::stages::sum_up;
use super::{IrqSamples, IrqSpec};
use millstream_cpu::alarm::now_ns;
use millstream_cpu::usage::thread_cpu_time;
use millstream_cpu::{sched, thread::pin_current_thread};
use millstream_host::iio::{CaptureSpec, IioCapture, IioError};
use millstream_host::journal::Journal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::Path;
use std::time::Instant;

/// Scans that the device's buffer has room for.
const ROOM: usize = 128;
/// Bytes per read.
const AT_A_TIME: usize = 8192;
/// Interval at which a wait checks whether to end.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Names of the parts when the edges are known.
const OF_TIMER: [&str; 3] =
    ["timer's edge to interrupt", "interrupt to user's wake-up", "wake-up to read"];
/// Names of the parts when they are unknown.
const OF_OTHERS: [&str; 2] = ["interrupt to user's wake-up", "wake-up to read"];

/// The choice of a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct IioChoice<'c> {
    /// Its name; `None`: the first one with a buffer.
    pub device: Option<&'c str>,
    /// The name of its trigger; `None`: its current one, or a timer with the plan's period.
    pub trigger: Option<&'c str>,
}

/// The times of a scan, nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scan {
    stamp_ns: i64,
    wake_ns: i64,
    read_ns: i64,
}

/// The observations of the reader.
struct Seen {
    scans: Vec<Scan>,
    cpu_s: f64,
    values: Vec<(String, i64)>,
}

/// Measures once; `plan` gives the reader's CPU and class, and the number of scans.
pub(super) fn measure(
    plan: &IrqSpec,
    choice: &IioChoice<'_>,
    ended: fn() -> bool,
) -> Result<IrqSamples, IrqError> {
    let begun = Instant::now();
    // On a thread of its own, so that no pinning remains.
    let run = || -> Result<_, IrqError> {
        pin_current_thread(plan.cpu)?;
        sched::set_current_thread(plan.class)?;
        let wanted = CaptureSpec {
            device: choice.device,
            trigger: choice.trigger,
            period_ns: plan.period_ns,
            length: ROOM,
        };
        // A timer's interrupt comes on the CPU where it was started: this one.
        let mut capture = IioCapture::begin(Path::new("/"), &wanted, &Journal::of_process())?;
        let about = (capture.device.name.clone(), capture.trigger.clone());
        let grid_ns = capture.grid_ns;
        let seen = take(plan, &mut capture, ended)?;
        capture.end()?;
        Ok((about, grid_ns, seen))
    };
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    let ((device, trigger), grid_ns, seen) =
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    if seen.scans.is_empty() {
        return Err(IrqError::Nothing);
    }
    let stamps: Vec<i64> = seen.scans.iter().map(|scan| scan.stamp_ns).collect();
    let grid = grid_ns.map(|period_ns| Grid::through(&stamps, period_ns as i64));
    let stations = |scan: &Scan| [scan.stamp_ns, scan.wake_ns, scan.read_ns];
    let found = match grid {
        Some(grid) => {
            let edge = |scan: &Scan| vec![grid.before(scan.stamp_ns)];
            let blocks = seen.scans.iter().map(|scan| [edge(scan), stations(scan).into()].concat());
            sum_up(&OF_TIMER, blocks)
        }
        None => sum_up(&OF_OTHERS, seen.scans.iter().map(|scan| stations(scan).into())),
    };
    let by = if grid_ns.is_some() { "a timer" } else { &*trigger };
    Ok(IrqSamples {
        overruns: grid.map_or(0, |grid| grid.without(&stamps)),
        observed: found.observed,
        stages: found.stages,
        total_ns: found.total_ns,
        wrong_samples: 0,
        negative: found.negative,
        // The kernel and this program use one clock.
        clock_bound_ns: 0.0,
        clock_error_ns: None,
        cpu_ns_per_block: seen.cpu_s * 1e9 / seen.scans.len() as f64,
        seconds: begun.elapsed().as_secs_f64(),
        device: Some(format!("{device} by {by}")),
        values: seen.values,
    })
}

fn take(plan: &IrqSpec, capture: &mut IioCapture, ended: fn() -> bool) -> Result<Seen, IrqError> {
    let count = plan.count as usize;
    let mut scans = Vec::with_capacity(count + AT_A_TIME);
    let mut room = vec![0; AT_A_TIME];
    let mut values = Vec::new();
    let cpu_before = thread_cpu_time();
    let mut last = Instant::now();
    while scans.len() < count && !ended() {
        let mut wait = [PollFd::new(capture, PollFlags::IN)];
        let ready = poll(&mut wait, Some(&TICK)).map_err(std::io::Error::from)?;
        let wake_ns = now_ns() as i64;
        let bytes = if ready == 0 { &[][..] } else { capture.read(&mut room)? };
        let read_ns = now_ns() as i64;
        let size = capture.layout.size;
        if bytes.is_empty() {
            if last.elapsed() > PATIENCE {
                let device = capture.device.name.clone();
                return Err(IioError::Silent { device, seconds: PATIENCE.as_secs() }.into());
            }
            continue;
        }
        last = Instant::now();
        for scan in bytes.chunks_exact(size) {
            let stamp_ns = capture.layout.time_ns(scan);
            if stamp_ns == 0 {
                return Err(IioError::Untimed { device: capture.device.name.clone() }.into());
            }
            // A scan that came between wake-up and read did not wait.
            scans.push(Scan { stamp_ns, wake_ns: wake_ns.max(stamp_ns), read_ns });
        }
        if values.is_empty() {
            let first = capture.layout.values(bytes);
            values = first.map(|(name, value)| (name.to_owned(), value)).collect();
        }
    }
    scans.truncate(count);
    Ok(Seen { scans, cpu_s: (thread_cpu_time() - cpu_before).as_secs_f64(), values })
}

/// The edges of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grid {
    /// One of them, nanoseconds.
    origin_ns: i64,
    period_ns: i64,
}

impl Grid {
    /// Finds the latest grid of this period with no scan before its edge: lateness covers a part of
    /// the period, and the widest part without scans ends with an edge.
    fn through(stamps: &[i64], period_ns: i64) -> Self {
        let mut phases: Vec<i64> = stamps.iter().map(|stamp| stamp.rem_euclid(period_ns)).collect();
        phases.sort_unstable();
        let last = phases.last().map_or(0, |last| last - period_ns);
        let before = [last].into_iter().chain(phases.iter().copied());
        let widest = before.zip(&phases).max_by_key(|(before, phase)| *phase - before);
        Self { origin_ns: widest.map_or(0, |(_, phase)| *phase), period_ns }
    }

    fn index(&self, stamp_ns: i64) -> i64 {
        (stamp_ns - self.origin_ns).div_euclid(self.period_ns)
    }

    /// The edge before an interrupt at this time.
    fn before(&self, stamp_ns: i64) -> i64 {
        self.origin_ns + self.index(stamp_ns) * self.period_ns
    }

    /// The number of edges, of those between the first and the last, without a scan.
    fn without(&self, stamps: &[i64]) -> u64 {
        let gap = |pair: &[i64]| self.index(pair[1]) - self.index(pair[0]) - 1;
        stamps.windows(2).map(|pair| gap(pair).max(0) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_found_from_late_interrupts() {
        let noise = |n: i64| 3_000 + (n * 7919 % 400) * 1_000;
        for origin in [17, 500_000, 990_000] {
            let edges: Vec<i64> = (0..500).filter(|n| n % 50 != 7).collect();
            let stamps: Vec<i64> =
                edges.iter().map(|n| origin + n * 1_000_000 + noise(*n)).collect();
            let grid = Grid::through(&stamps, 1_000_000);
            // All are at least 3 µs late, which the grid cannot show.
            let late: Vec<i64> = stamps.iter().map(|stamp| stamp - grid.before(*stamp)).collect();
            let expected: Vec<i64> = edges.iter().map(|n| noise(*n) - 3_000).collect();
            assert_eq!(late, expected);
            assert_eq!(grid.without(&stamps), 10);
        }
    }

    #[test]
    fn one_scan_is_a_grid_too() {
        let grid = Grid::through(&[5_500], 1_000);
        assert_eq!(
            (grid.before(5_500), grid.before(6_499), grid.without(&[5_500])),
            (5_500, 5_500, 0)
        );
    }

    #[test]
    fn without_a_device_the_error_says_what_to_do() {
        if Path::new("/sys/bus/iio/devices/iio:device0").exists() {
            eprintln!("skipped: there is a device here");
            return;
        }
        let class = millstream_cpu::sched::Class::Other;
        let cpu = millstream_cpu::thread::allowed_cpus().unwrap().iter().next().unwrap();
        let plan = IrqSpec {
            cpu,
            device_cpu: cpu,
            class,
            period_ns: 1_000_000,
            count: 10,
            interrupts: super::super::Interrupts::One,
        };
        let error = measure(&plan, &IioChoice::default(), || false).unwrap_err().to_string();
        assert!(error.contains("guest --iio"), "{error}");
    }
}
