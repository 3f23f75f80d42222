//! A device that captures scans into its buffer, until the value is dropped.

use super::scan::{Element, ScanFormat, ScanLayout, TIMESTAMP};
use super::{IioDevice, IioError, at, find, list, named};
use crate::journal::{Changes, Journal, Origins};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configfs folder for timer triggers (Documentation/iio/iio_configfs.rst).
const TIMERS: &str = "sys/kernel/config/iio/triggers/hrtimer";

/// The requested device and its settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureSpec<'w> {
    /// The name; `None`: the first device with a buffer.
    pub device: Option<&'w str>,
    /// The name of its trigger, which is not changed; `None`: the trigger that is set, or else a
    /// new timer.
    pub trigger: Option<&'w str>,
    /// The time between scans with a new timer, nanoseconds.
    pub period_ns: u64,
    /// The capacity of the buffer, scans.
    pub length: usize,
}

/// A capturing device. Its times are of the monotonic clock.
#[derive(Debug)]
pub struct IioCapture {
    /// The first field, so that the buffer is off before its file is closed.
    changes: Changes,
    /// The device.
    pub device: IioDevice,
    /// The name of its trigger; empty when it has none and needs none.
    pub trigger: String,
    /// The period of the new timer, exactly as the kernel has it, nanoseconds.
    pub grid_ns: Option<u64>,
    /// The time between scans, nanoseconds: the new timer's, or the one that the trigger tells, or
    /// the device if it has no trigger but its own.
    pub period_ns: Option<f64>,
    /// The layout of the scans.
    pub layout: ScanLayout,
    node: File,
}

impl IioCapture {
    /// Sets up a device below a root folder (`/` for this machine), and starts it.
    ///
    /// # Errors
    /// [`IioError`]; then everything is restored.
    pub fn begin(
        root: &Path,
        wanted: &CaptureSpec<'_>,
        journal: &Arc<Journal>,
    ) -> Result<Self, IioError> {
        let device = find(root, wanted.device)?;
        let mut changes = Changes::new(journal);
        let folder = &device.folder;
        let layout = device.layout()?;
        // A buffer that is on refuses every change: its owner needs it.
        let (trigger, grid_ns) = trigger(root, &device, wanted, &mut changes)?;
        for name in enablers(folder)? {
            changes.write_file(&name, "1")?;
        }
        changes.write_file(&folder.join("current_timestamp_clock"), "monotonic")?;
        changes.write_file(&folder.join("buffer/length"), &wanted.length.to_string())?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let node = options.open(&device.node).map_err(at(&device.node))?;
        changes.write_file(&folder.join("buffer/enable"), "1")?;
        let period_ns = grid_ns.map(|period_ns| period_ns as f64);
        let period_ns = period_ns.or_else(|| told_period_ns(root, &device, &trigger));
        Ok(Self { changes, device, trigger, grid_ns, period_ns, layout, node })
    }

    /// Reads the whole scans that are available, without waiting; empty when there are none.
    ///
    /// # Errors
    /// [`IioError::File`].
    pub fn read<'b>(&mut self, room: &'b mut [u8]) -> Result<&'b [u8], IioError> {
        let whole = room.len() - room.len() % self.layout.size;
        match self.node.read(&mut room[..whole]) {
            Ok(count) => Ok(&room[..count - count % self.layout.size]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(&[]),
            Err(error) => Err(at(&self.device.node)(error)),
        }
    }

    /// Stops the device and restores all settings; returns the first error.
    ///
    /// # Errors
    /// [`IioError::File`] with the first error; that setting stays in the journal, and the next
    /// start tries again.
    pub fn end(self) -> Result<(), IioError> {
        self.changes.undo().map(drop).map_err(at(&self.device.folder))
    }
}

/// For waiting until scans are available.
impl AsFd for IioCapture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.node.as_fd()
    }
}

/// Returns the time between scans that the trigger of this name tells. The device's rate is that of
/// its converter, which is the rate of scans only without a foreign trigger. Drivers name their own
/// triggers `NAME-dev0`.
fn told_period_ns(root: &Path, device: &IioDevice, trigger: &str) -> Option<f64> {
    let triggers = named(root, "trigger");
    let of_trigger = triggers.iter().find(|(_, name)| name == trigger).map(|(folder, _)| folder);
    let is_own = trigger.is_empty() || trigger.starts_with(&format!("{}-dev", device.name));
    let own = is_own.then_some(&*device.folder);
    let folders = of_trigger.map(PathBuf::as_path).into_iter().chain(own);
    let mut rates = folders.filter_map(|folder| {
        let text = fs::read_to_string(folder.join("sampling_frequency")).ok()?;
        text.trim().parse::<f64>().ok().filter(|rate_hz| *rate_hz > 0.0)
    });
    rates.next().map(|rate_hz| 1e9 / rate_hz)
}

/// Returns the files that enable an element in scans, in their order.
fn enablers(folder: &Path) -> Result<Vec<PathBuf>, IioError> {
    let folder = folder.join("scan_elements");
    let entries = fs::read_dir(&folder).map_err(at(&folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut all: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with("_en")).collect();
    all.sort();
    Ok(all)
}

/// Returns all elements that scans can have.
impl IioDevice {
    /// Reads the layout of a scan of all its channels. Nothing is set.
    ///
    /// # Errors
    /// [`IioError`]: the kernel's description of a channel cannot be read.
    pub fn layout(&self) -> Result<ScanLayout, IioError> {
        ScanLayout::new(&self.name, elements(&self.folder)?)
    }
}

fn elements(folder: &Path) -> Result<Vec<Element>, IioError> {
    let mut elements = Vec::new();
    for enabler in enablers(folder)? {
        let name = enabler.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches("_en").to_owned();
        let path = |what: &str| enabler.with_file_name(format!("{name}_{what}"));
        let read = |path: &Path| fs::read_to_string(path).map_err(at(path));
        let (index, packing) = (read(&path("index"))?, read(&path("type"))?);
        let wrong = |what: &str, text: &str| IioError::Packing {
            path: path(what),
            text: text.trim().to_owned(),
        };
        elements.push(Element {
            index: index.trim().parse().map_err(|_| wrong("index", &index))?,
            packing: ScanFormat::parse(&packing).ok_or_else(|| wrong("type", &packing))?,
            name: name.clone(),
        });
    }
    debug_assert!(elements.iter().filter(|one| one.name == TIMESTAMP).count() <= 1);
    Ok(elements)
}

/// Sets the trigger; returns its name, and its period if it is a new timer.
fn trigger(
    root: &Path,
    device: &IioDevice,
    wanted: &CaptureSpec<'_>,
    changes: &mut Changes,
) -> Result<(String, Option<u64>), IioError> {
    let current = device.folder.join("trigger/current_trigger");
    let Ok(now) = fs::read_to_string(&current) else {
        // The hardware fills its buffer without a trigger.
        return Ok((String::new(), None));
    };
    let known: Vec<String> = named(root, "trigger").into_iter().map(|(_, name)| name).collect();
    let (name, grid_ns) = match (wanted.trigger, now.trim()) {
        (Some(name), _) if known.iter().any(|other| other == name) => (name.to_owned(), None),
        (None, set) if !set.is_empty() => return Ok((set.to_owned(), None)),
        (None, _) if root.join(TIMERS).is_dir() => {
            let (name, period_ns) = timer(root, wanted.period_ns, changes)?;
            (name, Some(period_ns))
        }
        _ => {
            let (device, known) = (device.name.clone(), list(known));
            return Err(IioError::NoTrigger { device, known });
        }
    };
    changes.write_file(&current, &name)?;
    Ok((name, grid_ns))
}

/// Makes a timer trigger; returns its name, and its period as the kernel has it.
fn timer(root: &Path, period_ns: u64, changes: &mut Changes) -> Result<(String, u64), IioError> {
    let name = format!("millstream-{}", std::process::id());
    let timer = root.join(TIMERS).join(&name);
    changes.push(changes.journal().make_group(&timer, Origins::default())?);
    let made = named(root, "trigger").into_iter().find(|(_, other)| *other == name);
    let folder = made.map_or_else(|| root.join(TIMERS).join(&name), |(folder, _)| folder);
    let file = folder.join("sampling_frequency");
    // The kernel stores thousandths of a hertz, and converts them to whole nanoseconds.
    let millihertz = (1_000_000_000_000 / period_ns.max(1)).max(1);
    let text = format!("{}.{:03}", millihertz / 1000, millihertz % 1000);
    fs::write(&file, text).map_err(at(&file))?;
    Ok((name, 1_000_000_000_000 / millihertz))
}
