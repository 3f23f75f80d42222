//! The source of a converter or sensor of the kernel's Industrial I/O.

use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Counter, Out, Ports, TagTime, TagValue, Work, keys,
};
use millstream_host::iio::{self, CaptureSpec, IioCapture, IioError, ValueScale};
use millstream_host::journal::Journal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest pause without a scan where the rate is known, at least; or ten scans.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most scans of one read.
const SCANS: usize = 256;

/// Reads the channels of an Industrial I/O device, which the kernel samples into a buffer (Linux,
/// Documentation/driver-api/iio/buffers.rst).
///
/// # Stream outputs
/// - `out0`, `out1`, …: the values of each channel, in the order of their indices, in the unit of
///   the kernel's ABI (millivolts, m/s², …): raw plus offset, times scale. Tags on the first item:
///   `rx_rate_hz`, if the rate is known, and `rx_time`. Where scans are missing before an item:
///   `rx_time`, `loss_cause` (`iio_buffer`) and `loss_items`. Times are those of the monotonic
///   clock, as the kernel took them.
///
/// # Metrics
/// `scans`; `missed`, scans that the buffer had no room for, or that the device did not make in
/// time. Without a known rate they are unknown.
#[derive(Ports)]
pub struct IioSource {
    #[port("out")]
    outs: Vec<Out<f32>>,
    capture: Option<IioCapture>,
    scales: Vec<ValueScale>,
    room: Vec<u8>,
    /// The bytes of scans that have been read and not passed on: their start and end in `room`.
    unread: (usize, usize),
    /// The time of the last scan.
    last_ns: Option<i64>,
    /// When the last read had a scan.
    last: Option<Instant>,
    scans: Counter,
    missed: Counter,
}

impl IioSource {
    /// Sets up a device below a root folder (`/` for this machine), and starts it. Its settings are
    /// restored when the source is dropped.
    ///
    /// # Errors
    /// [`IioError`], which names the next step.
    pub fn open(
        root: &Path,
        wanted: &CaptureSpec<'_>,
        journal: &Arc<Journal>,
    ) -> Result<Self, IioError> {
        let capture = IioCapture::begin(root, wanted, journal)?;
        let scales: Vec<_> =
            capture.layout.names().map(|name| capture.device.scale(name)).collect();
        Ok(Self {
            outs: scales.iter().map(|_| Out::new()).collect(),
            room: vec![0; SCANS * capture.layout.size],
            capture: Some(capture),
            scales,
            unread: (0, 0),
            last_ns: None,
            last: None,
            scans: Counter::new(),
            missed: Counter::new(),
        })
    }

    /// Reads scans, and waits for them as long as the context allows.
    fn fill(&mut self, may_block: Duration, now: Instant) -> Result<(), BlockError> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let mut bytes = capture.read(&mut self.room)?.len();
        if bytes == 0 && !may_block.is_zero() {
            let mut watched = [PollFd::new(&*capture, PollFlags::IN)];
            let timeout = Timespec::try_from(may_block).ok();
            match poll(&mut watched, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
            bytes = capture.read(&mut self.room)?.len();
        }
        self.unread = (0, bytes);
        let last = *self.last.get_or_insert(now);
        if bytes > 0 {
            self.last = Some(now);
            if capture.layout.time_ns(&self.room) == 0 {
                return Err(IioError::Untimed { device: capture.device.name.clone() }.into());
            }
        } else if let Some(period_ns) = capture.period_ns {
            let patience = PATIENCE.max(Duration::from_nanos((10.0 * period_ns) as u64));
            if now.saturating_duration_since(last) > patience {
                let device = capture.device.name.clone();
                return Err(IioError::Silent { device, seconds: patience.as_secs() }.into());
            }
        }
        Ok(())
    }

    /// Passes scans on as far as there is room.
    fn unload(&mut self) {
        let Some(capture) = &self.capture else { return };
        let (from, to) = self.unread;
        let layout = &capture.layout;
        let space = self.outs.iter_mut().map(|out| out.slice_mut().len()).min().unwrap_or(0);
        let count = space.min((to - from) / layout.size);
        for (index, scan) in self.room[from..to].chunks_exact(layout.size).take(count).enumerate() {
            for ((out, (_, raw)), scale) in
                self.outs.iter_mut().zip(layout.values(scan)).zip(&self.scales)
            {
                out.slice_mut()[index] = scale.apply(raw);
            }
            let time_ns = layout.time_ns(scan);
            let first = self.last_ns.is_none();
            let missed = missed(self.last_ns, time_ns, capture.period_ns);
            self.last_ns = Some(time_ns);
            if !first && missed == 0 {
                continue;
            }
            self.missed.add(missed);
            let time = TagTime::from_ticks(time_ns.max(0) as u64, 1e9);
            for out in &mut self.outs {
                match capture.period_ns.filter(|_| first) {
                    Some(period_ns) => out.tag(index, keys::RX_RATE_HZ, 1e9 / period_ns),
                    None if first => {}
                    None => {
                        out.tag(index, keys::LOSS_CAUSE, TagValue::text("iio_buffer"));
                        out.tag(index, keys::LOSS_ITEMS, missed);
                    }
                }
                out.tag(index, keys::RX_TIME, time);
            }
        }
        self.outs.iter_mut().for_each(|out| out.produce(count));
        self.scans.add(count as u64);
        self.unread.0 += count * layout.size;
    }
}

/// Returns the number of scans lost between two scans with these times.
fn missed(last_ns: Option<i64>, now_ns: i64, period_ns: Option<f64>) -> u64 {
    let (Some(last_ns), Some(period_ns)) = (last_ns, period_ns) else { return 0 };
    // A scan that is late by more than half a period counts as a missed one.
    let periods = (now_ns.saturating_sub(last_ns) as f64 / period_ns).round();
    (periods as u64).saturating_sub(1)
}

impl Block for IioSource {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        if context.stopping {
            if let Some(capture) = self.capture.take() {
                capture.end()?;
                return Ok(Work::Finished);
            }
        }
        if self.unread.0 == self.unread.1 {
            self.fill(context.may_block, context.now)?;
        }
        self.unload();
        Ok(Work::Again(Duration::ZERO))
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metric("scans", &self.scans).metric("missed", &self.missed);
    }
}

/// Reads the channels of an Industrial I/O device.
#[derive(BlockParameters)]
#[block(iio_source, live, example = "device = \"iio:device0\"")]
struct IioParameters {
    /// name of the device, or iio:device0; empty: the first with a buffer
    device: Option<String>,
    /// name of its trigger; empty: the one that is set, or a timer
    trigger: Option<String>,
    /// rate of a timer, Hz
    #[parameter(default = 100.0, least = 0.001, most = 1e6)]
    rate_hz: f64,
    /// size of the kernel's buffer, scans
    #[parameter(default = 1024, least = 2, most = 65_536)]
    buffer_scans: usize,
}

impl IioParameters {
    fn make(self) -> Result<IioSource, IioError> {
        let wanted = CaptureSpec {
            device: self.device.as_deref(),
            trigger: self.trigger.as_deref(),
            period_ns: (1e9 / self.rate_hz) as u64,
            length: self.buffer_scans,
        };
        IioSource::open(Path::new("/"), &wanted, &Journal::of_process())
    }

    /// Makes a source of zeros with the channels of the device, if there is one.
    fn rehearse(self) -> RehearsedBlock<f32> {
        let device = iio::find(Path::new("/"), self.device.as_deref());
        let layout = device.and_then(|device| device.layout());
        let channels = layout.map_or(1, |layout| layout.names().count());
        RehearsedBlock::numbered_source(channels).at_rate(self.rate_hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_are_missed_by_the_times_of_those_that_came() {
        let after = |ns: i64| missed(Some(1_000), 1_000 + ns, Some(100.0));
        assert_eq!([60, 100, 149, 151, 300, 1049].map(after), [0, 0, 0, 1, 2, 9]);
        assert_eq!(missed(None, 5, Some(1.0)) + missed(Some(0), 500, None), 0);
        assert_eq!(missed(Some(500), 0, Some(100.0)), 0, "the clock was set back");
    }
}
