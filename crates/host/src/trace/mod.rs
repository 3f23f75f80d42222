//! The kernel's trace events, in a separate ring (Documentation/trace/ftrace.rst, "Instances").
//!
//! Other users of tracing are not disturbed, and the ring is removed with its [`Instance`]. The
//! next process removes the ring of a killed one of its own PID namespace; that of a container that
//! is gone stays until somebody removes its folder from `instances`.

mod line;
mod timerlat;

pub use line::{TraceEvent, TraceEventKind, parse};
pub use timerlat::{TIMERLAT_PERIODS_US, Timerlat, TimerlatContext, TimerlatEvent, TimerlatLine};

use crate::journal::JournalError;
use crate::unique;

use millstream_cpu::folders;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::id;

/// The folder of tracefs, on kernels since 4.1 and before.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The prefix of our instances' [names](unique::name).
const PREFIX: &str = "millstream-";

/// The largest part of a trace that is read, bytes.
const BYTES_MAX: u64 = 256 << 20;

/// The reason why tracing is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no tracefs.
    #[error(
        "the kernel's trace is not available: mount it as root with `mount -t tracefs none \
         /sys/kernel/tracing`"
    )]
    NotMounted,
    /// The kernel has no tracer `timerlat`.
    #[error(
        "this kernel has no tracer timerlat (it has only {tracers}): boot a kernel with \
         CONFIG_TIMERLAT_TRACER, for example Debian's linux-image-rt-amd64, or use one in a \
         virtual machine (millstream-lab lab guest --kernel linux-image-rt-amd64 -- latency timer \
         --timerlat)"
    )]
    NoTimerlat {
        /// The tracers that it has.
        tracers: String,
    },
    /// A setting of a tracer could not be changed.
    #[error(transparent)]
    Setting(#[from] JournalError),
    /// A file of it could not be used.
    #[error("cannot use {} of the kernel's trace: {source}{}", path.display(), hint(.source))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn hint(source: &io::Error) -> &'static str {
    let is_denied = source.kind() == io::ErrorKind::PermissionDenied;
    if is_denied { "; run the command as root" } else { "" }
}

/// A ring of trace events, removed on drop.
#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
}

impl Instance {
    /// Makes a stopped ring of this size for each CPU, on CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn create(kib_per_cpu: u32) -> Result<Self, TraceError> {
        let has_instances = |mount: &&&str| Path::new(mount).join("instances").is_dir();
        let mount = MOUNTS.iter().find(has_instances).ok_or(TraceError::NotMounted)?;
        let instances = Path::new(mount).join("instances");
        remove_orphans(&instances);
        let folder = instances.join(unique::name(""));
        fs::create_dir(&folder)
            .map_err(|source| TraceError::File { path: folder.clone(), source })?;
        let instance = Self { folder };
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &kib_per_cpu.to_string())?;
        Ok(instance)
    }

    /// Enables events: `sched/sched_switch`, or a whole group, `irq_vectors`. Returns whether the
    /// kernel has them.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn enable(&self, events: &str) -> Result<bool, TraceError> {
        if !self.folder.join("events").join(events).is_dir() {
            return Ok(false);
        }
        self.set(&format!("events/{events}/enable"), "1").map(|()| true)
    }

    /// Records only the events of a group that match a condition (Documentation/trace/events.rst,
    /// 5).
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn filter(&self, group: &str, condition: &str) -> Result<(), TraceError> {
        self.set(&format!("events/{group}/filter"), condition)
    }

    /// Empties the ring and starts it.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn start(&self) -> Result<(), TraceError> {
        let path = self.folder.join("trace");
        // Opening it with truncation empties it.
        File::create(&path).map_err(|source| TraceError::File { path, source })?;
        self.set("tracing_on", "1")
    }

    /// Returns the file in which `0` stops the ring, to hold open for a fast stop.
    #[must_use]
    pub fn switch(&self) -> PathBuf {
        self.folder.join("tracing_on")
    }

    /// Stops the ring.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn stop(&self) -> Result<(), TraceError> {
        self.set("tracing_on", "0")
    }

    /// Returns the events in the ring, in the order of time. Lines that cannot be parsed are left
    /// out.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn events(&self) -> Result<Vec<TraceEvent>, TraceError> {
        let path = self.folder.join("trace");
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut text));
        read.map_err(|source| TraceError::File { path, source })?;
        Ok(parse(&String::from_utf8_lossy(&text)))
    }

    /// The folder in which tracefs is mounted.
    fn mount(&self) -> &Path {
        self.folder.ancestors().nth(2).unwrap_or(&self.folder)
    }

    fn set(&self, file: &str, text: &str) -> Result<(), TraceError> {
        let path = self.folder.join(file);
        let written = OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| TraceError::File { path, source })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A process with an open file of it prevents its removal: the next one removes it then.
        let _ = self.stop();
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes the rings that dead processes left, and ends their tracers.
pub fn recover() {
    for mount in MOUNTS {
        remove_orphans(&Path::new(mount).join("instances"));
    }
}

fn remove_orphans(instances: &Path) {
    for name in folders::names(instances) {
        let is_alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
        if owner(&name).is_some_and(|pid| !is_alive(pid)) {
            let _ = fs::remove_dir(instances.join(&name));
        }
    }
}

/// The owner of a ring, if it lives or lived in our PID namespace, and `/proc` shows that one.
fn owner(ring: &str) -> Option<u32> {
    let mut parts = ring.strip_prefix(PREFIX)?.split('-').map(str::parse::<u64>);
    let (space, owner) = (parts.next()?.ok()?, parts.next()?.ok()?);
    parts.next()?.ok()?;
    let shown = fs::read_link("/proc/self").is_ok_and(|pid| pid == Path::new(&id().to_string()));
    (shown && space != 0 && space == unique::pid_namespace()).then(|| u32::try_from(owner).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_holds_what_happened_and_goes_with_its_owner() {
        let instance = match Instance::create(256) {
            Ok(instance) => instance,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        assert!(instance.enable("sched/sched_switch").unwrap());
        assert!(!instance.enable("sched/nonsense").unwrap());
        // On a busy machine other threads would push it out of the ring. The test examines how it
        // goes to sleep, not how it wakes: on an idle CPU kernel 6.18 does not report that.
        let pid = rustix::thread::gettid().as_raw_nonzero().get();
        instance.filter("sched/sched_switch", &format!("prev_pid == {pid}")).unwrap();
        instance.start().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        fs::write(instance.switch(), "0").unwrap();
        let events = instance.events().unwrap();
        let is_ours = |event: &TraceEvent| match event.what {
            TraceEventKind::Switch { previous, .. } => previous == pid,
            _ => false,
        };
        assert!(events.iter().any(is_ours), "this thread, {pid}, slept: {events:?}");
        let folder = instance.folder.clone();
        drop(instance);
        assert!(!folder.exists());
    }

    #[test]
    fn only_rings_of_our_own_pid_namespace_have_owners() {
        let space = unique::pid_namespace();
        assert!(space > 0);
        assert_eq!(owner(&format!("millstream-{space}-17-0")), Some(17));
        for other in [
            format!("millstream-{}-17-0", space + 1),
            format!("millstream-{space}-17"),
            format!("millstream-{space}-x-0"),
            format!("other-{space}-17-0"),
            "millstream-17-0".to_owned(),
            "millstream-0-17-0".to_owned(),
        ] {
            assert_eq!(owner(&other), None, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_traced_says_why() {
        assert!(TraceError::NotMounted.to_string().contains("mount -t tracefs"));
        let source = io::ErrorKind::PermissionDenied.into();
        let error = TraceError::File { path: "/x".into(), source };
        assert!(error.to_string().ends_with("; run the command as root"), "{error}");
    }
}
