//! EAL: started once, by a separate thread.

use std::ffi::CString;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::{DpdkError, cause, log};
use crate::quiet::{SignalsBlocked, be_ordinary};
use crate::raw;

/// The settings of EAL's start; the first ones in a process decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EalOptions {
    /// Whether memory comes from huge pages, which must be free.
    pub huge: bool,
    /// Memory without huge pages, MiB: an address range whose pages are allocated at their first
    /// use. With huge pages the memory grows as needed.
    pub memory_mib: usize,
    /// Whether physical addresses are used in place of virtual ones, for drivers without an IOMMU
    /// (UIO).
    pub physical: bool,
    /// CPUs that DPDK's own threads may use. Empty: those of the caller.
    pub cpus: Vec<usize>,
}

/// The properties of EAL in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eal {
    /// Whether it uses huge pages.
    pub huge: bool,
    /// Whether the surrounding application has started it, with its own settings.
    pub shared: bool,
}

static STARTED: Mutex<Option<Result<Eal, (i32, String)>>> = Mutex::new(None);

/// Starts EAL, or uses the running one.
///
/// The caller's affinity, its signals and its standard error stay unchanged, and nothing is left in
/// the file system.
///
/// # Errors
/// [`DpdkError::Eal`]; every later attempt in this process then returns the same error.
pub fn start(options: &EalOptions) -> Result<Eal, DpdkError> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = started.get_or_insert_with(|| first(options)).clone();
    outcome.map_err(|(errno, log)| {
        let source = cause(errno);
        DpdkError::Eal { source, log }
    })
}

fn first(options: &EalOptions) -> Result<Eal, (i32, String)> {
    // SAFETY: it reads a counter.
    if unsafe { raw::ms_eal_runs() } {
        // SAFETY: it reads the settings of EAL, which was started.
        return Ok(Eal { huge: unsafe { raw::ms_eal_has_huge_pages() }, shared: true });
    }
    let options = options.clone();
    let errno = |error: &io::Error| error.raw_os_error().unwrap_or(libc::EAGAIN);
    let quiet = SignalsBlocked::new();
    let thread = std::thread::Builder::new().name("ms-dpdk".to_owned());
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let spawned = thread.spawn(move || {
        let done = init(&options);
        let stays = done.is_ok();
        let _ = tell.send(done);
        drop(tell);
        // This is the main lcore: the thread that EAL takes for the application's.
        if stays {
            loop {
                std::thread::park();
            }
        }
    });
    spawned.map_err(|error| (errno(&error), String::new()))?;
    let outcome = told.recv().unwrap_or(Err((libc::EIO, String::new())));
    drop(quiet);
    outcome
}

/// Starts EAL on the thread that stays.
fn init(options: &EalOptions) -> Result<Eal, (i32, String)> {
    let prefix = prefix();
    be_ordinary();
    confine(&options.cpus);
    let words = arguments(options, &prefix).map_err(|error| (libc::EINVAL, error.to_string()))?;
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    // SAFETY: it is a stream of our own, before EAL has one.
    unsafe { raw::ms_log_keep() };
    // SAFETY: the count is the number of C strings, which EAL copies and may reorder.
    let done = unsafe { raw::ms_eal_start(pointers.len() as i32, pointers.as_mut_ptr()) };
    remove_folder(&prefix);
    match done {
        0 => {
            log();
            Ok(Eal { huge: options.huge, shared: false })
        }
        code => Err((-code, log())),
    }
}

/// Sets the CPUs of EAL's threads, which inherit those of the thread that starts it.
fn confine(cpus: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < LCORES_MAX).for_each(|cpu| set.set(*cpu));
    if set.count() > 0 {
        // If the CPUs were removed meanwhile, the thread stays on its caller's.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

/// Returns EAL's prefix of its files: one word for each process.
fn prefix() -> String {
    format!("millstream-{}", std::process::id())
}

/// Removes the folder that EAL creates even for files that it was configured not to create.
fn remove_folder(prefix: &str) {
    let user = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default();
    let places = ["/var/run", user.as_str(), "/tmp"];
    for place in places.iter().filter(|place| !place.is_empty()) {
        let dpdk = Path::new(place).join("dpdk");
        // Both are removed only if they are empty.
        let _ = std::fs::remove_dir(dpdk.join(prefix));
        let _ = std::fs::remove_dir(dpdk);
    }
}

fn arguments(options: &EalOptions, prefix: &str) -> io::Result<Vec<CString>> {
    let lcores = format!("--lcores=0@({})", cpus());
    let memory = format!("-m{}", options.memory_mib);
    let pages: &[&str] = match options.huge {
        true => &["--in-memory"],
        false => &["--no-huge", "--no-shconf", &memory],
    };
    let iova = if options.physical { "--iova-mode=pa" } else { "--iova-mode=va" };
    let prefix = format!("--file-prefix={prefix}");
    // No device is taken before it is named: only an address that cannot exist is allowed at the
    // start.
    let none = "-a0000:00:00.0";
    // A peer can only map memory that has one descriptor (memif without copies, virtio-user).
    let shared = "--single-file-segments";
    let common = ["millstream", &prefix, &lcores, "--no-telemetry", iova, none, shared];
    let words = common.into_iter().chain(pages.iter().copied());
    words.map(|word| CString::new(word).map_err(io::Error::from)).collect()
}

/// Returns the CPUs that this thread may use, in EAL's format: lcore 0 is all of them together.
fn cpus() -> String {
    let allowed = rustix::thread::sched_getaffinity(None);
    let mut cpus: Vec<usize> = match allowed {
        Ok(set) => (0..LCORES_MAX).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => Vec::new(),
    };
    if cpus.is_empty() {
        cpus.push(0);
    }
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// The CPUs that Debian's DPDK supports (`RTE_MAX_LCORE`).
const LCORES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structs_of_the_shim_are_as_long_as_ours() {
        let mut sizes = [0usize; 4];
        // SAFETY: it writes four numbers.
        unsafe { raw::ms_sizes(sizes.as_mut_ptr()) };
        let ours = [
            size_of::<raw::Wanted>(),
            size_of::<raw::Port>(),
            size_of::<raw::Part>(),
            size_of::<raw::Counted>(),
        ];
        assert_eq!(sizes, ours);
    }

    #[test]
    fn no_lcore_0_is_needed() {
        let options = EalOptions { huge: false, memory_mib: 64, physical: false, cpus: Vec::new() };
        let words = arguments(&options, "x").unwrap();
        let lcores = words.iter().find(|word| word.to_bytes().starts_with(b"--lcores")).unwrap();
        assert!(lcores.to_str().unwrap().starts_with("--lcores=0@("), "{lcores:?}");
    }

    /// The surrounding application: it has started EAL, on a thread of its own, with its own
    /// settings.
    #[test]
    fn an_eal_that_runs_is_shared() {
        let prefix = prefix();
        let own = format!("--file-prefix={prefix}");
        let words = ["app", "--no-huge", "-m64", "--no-shconf", "--no-telemetry", "--no-pci", &own];
        let words = words.map(|word| CString::new(word).unwrap());
        let mut words: Vec<_> = words.iter().map(|word| word.as_ptr() as usize).collect();
        let done = std::thread::scope(|scope| {
            let started = scope.spawn(|| {
                // SAFETY: the count is the number of C strings.
                unsafe { raw::ms_eal_start(words.len() as i32, words.as_mut_ptr().cast()) }
            });
            started.join().unwrap()
        });
        // The folder that the application would leave.
        remove_folder(&prefix);
        assert_eq!(done, 0);
        let options = EalOptions { huge: false, memory_mib: 64, physical: false, cpus: Vec::new() };
        for _ in 0..2 {
            assert!(start(&options).unwrap().shared);
        }
    }
}
