//! `millstream guest`: any `millstream` command under other kernels.

use crate::output::{self, Report};
use crate::verbs::lab::adc;
use anyhow::Context;
use millstream_guest::ivshmem::Window;
use millstream_guest::{Job, Kernel, Machine, Outcome, image};
use millstream_lab::irq::Imitation;
use millstream_sys::folders;
use serde_json::{Value, json};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where modules lie in a guest.
const MODULES: &str = "/modules";

/// Runs a millstream command in a guest that QEMU emulates, under each of the kernels given.
///
/// The guest's first process is this very program: it loads the modules, writes the settings, runs
/// the command and powers the guest off. Nothing is installed and nothing on this machine changes;
/// QEMU (Debian: qemu-system-x86) must be there. Emulation in software shows that something works
/// and how kernels differ in kind; its times say nothing about silicon.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub guest: Options,

    /// The command, as one would give it to millstream.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  millstream guest --kernel linux-image-6.12-rt-amd64 -- find
  millstream guest --kernel linux-image-6.1.0-56-rt-amd64 --adc -- latency irq --via vfio
  millstream guest --kernel /boot/vmlinuz-6.1.0 --append mitigations=off -- --json bench convert";

/// What the guests have. Shared by the commands that start guests.
#[derive(clap::Args)]
pub struct Options {
    /// A kernel: a vmlinuz file, a Debian linux-image package (.deb), or the name of one, which
    /// apt-get fetches. May be given several times.
    #[arg(long = "kernel", required = true, value_name = "KERNEL")]
    pub kernels: Vec<String>,

    /// A module to load first, with what it needs. May be given several times.
    #[arg(long = "module", value_name = "NAME")]
    pub modules: Vec<String>,

    /// A setting to write in the guest before the command runs. May be given several times.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    /// A file to take along, as the same path in the guest. May be given several times.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A word for the kernel's command line. May be given several times.
    #[arg(long = "append", value_name = "WORD")]
    pub command_line: Vec<String>,

    /// A device: what QEMU's -device takes. May be given several times.
    #[arg(long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,

    /// The back end of a network device: what QEMU's -netdev takes. May be given several times.
    #[arg(long = "netdev", value_name = "BACK-END")]
    pub backs: Vec<String>,

    /// Give the guests the imitated converter of `latency irq`, behind PCI, MSI-X and an IOMMU:
    /// there, `latency irq --via vfio` measures it.
    #[arg(long)]
    pub adc: bool,

    /// Options of the machine (q35), as `kernel-irqchip=split`, which an IOMMU needs.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "OPTIONS")]
    pub chipset: String,

    /// CPUs of a guest.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub cpus: usize,

    /// Memory of a guest, MiB.
    #[arg(long, default_value_t = 512, value_name = "MIB")]
    pub memory: usize,

    /// `tcg` emulates in software; `kvm` needs a machine whose guests work.
    #[arg(long, default_value = "tcg", value_name = "NAME")]
    pub accel: String,

    /// Seconds that a guest may take.
    #[arg(long, default_value_t = 300, value_name = "S")]
    pub limit: u64,

    /// Where fetched kernels are kept; otherwise $XDG_CACHE_HOME/millstream/kernels.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,

    /// Show the guests' consoles.
    #[arg(long)]
    pub console: bool,
}

/// Runs the command under every kernel.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let (mut text, mut results, mut failed) = (String::new(), Vec::new(), Vec::new());
    for wanted in &args.guest.kernels {
        let kernel = args.guest.kernel(wanted)?;
        let outcome = args.guest.run(&kernel, &[], args.command.clone(), image::Files::new())?;
        let (name, seconds) = (&kernel.name, outcome.took.as_secs_f64());
        output::note(format_args!("{name}: status {} after {seconds:.1} s", outcome.status));
        if outcome.status != 0 {
            failed.push(name.clone());
        }
        text.push_str(&format!("== {name}\n{}", outcome.output.trim_start()));
        results.push(document(&kernel, &outcome));
    }
    let failure = (!failed.is_empty())
        .then(|| format!("the command failed under {}; --console shows more", failed.join(", ")));
    Ok(Report { text, results: json!({ "guests": results }), failure })
}

impl Options {
    /// A kernel, found or fetched.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn kernel(&self, wanted: &str) -> anyhow::Result<Kernel> {
        let cache = match &self.cache {
            Some(cache) => cache.clone(),
            None => folders::cache(folders::variable)
                .context("no home directory for the cache: give --cache DIR")?
                .join("millstream/kernels"),
        };
        std::fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
        Ok(Kernel::find(wanted, &cache)?)
    }

    /// Runs one command under one kernel, with more words for its command line and more files.
    ///
    /// # Errors
    /// When the guest cannot be made or does not come to its end.
    pub fn run(
        &self,
        kernel: &Kernel,
        words: &[String],
        arguments: Vec<String>,
        mut files: image::Files,
    ) -> anyhow::Result<Outcome> {
        for path in &self.files {
            let content = std::fs::read(path).with_context(|| path.display().to_string())?;
            let place = std::path::absolute(path)?;
            files.push((place.to_string_lossy().into_owned(), content));
        }
        let converter = self.adc.then(Converter::start).transpose()?;
        let (mut modules, mut wanted) = (Vec::new(), self.modules.clone());
        if self.adc {
            wanted.extend(Window::MODULES.map(str::to_owned));
        }
        for (name, content) in kernel.modules(&wanted)? {
            modules.push(format!("{MODULES}/{name}.ko"));
            files.push((format!("{MODULES}/{name}.ko"), content));
        }
        let mut settings = self.settings.clone();
        if self.adc {
            settings.extend(Window::settings());
        }
        let job = Job { modules, settings, arguments };
        let image = image::build(Path::new("/proc/self/exe"), &job, &files)?;
        let show = self.console;
        let watch = |line: &str| {
            if show {
                output::note(format_args!("  {}| {line}", kernel.name));
            }
        };
        let mut machine = self.machine(words);
        if let Some(converter) = &converter {
            converter.attach(&mut machine);
        }
        Ok(machine.run(kernel, &image, watch)?)
    }

    fn machine(&self, words: &[String]) -> Machine {
        let backs = self.backs.iter().flat_map(|back| ["-netdev".into(), back.clone()]);
        let devices = self.devices.iter().flat_map(|device| ["-device".into(), device.clone()]);
        Machine {
            cpus: self.cpus,
            memory_mib: self.memory,
            accelerator: self.accel.clone(),
            command_line: [&self.command_line[..], words].concat(),
            devices: backs.chain(devices).collect(),
            inherited: Vec::new(),
            chipset: self.chipset.clone(),
            limit: Duration::from_secs(self.limit),
        }
    }
}

/// The imitated converter, a process of this host, and its way into a guest.
struct Converter {
    _imitation: Imitation,
    window: Window,
}

impl Converter {
    fn start() -> anyhow::Result<Self> {
        let imitation = Imitation::start(&adc::command, None).context("the imitated converter")?;
        let window = Window::new(imitation.memory.as_fd(), imitation.line.as_fd())?;
        Ok(Self { _imitation: imitation, window })
    }

    fn attach(&self, machine: &mut Machine) {
        // An IOMMU stands in front of the devices that it is for.
        machine.devices.splice(0..0, self.window.arguments());
        machine.inherited.push(self.window.socket());
        machine.command_line.push(Window::KERNEL_WORD.to_owned());
        if machine.chipset.is_empty() {
            Window::CHIPSET.clone_into(&mut machine.chipset);
        }
    }
}

/// A command's own document where it wrote one, its text otherwise.
fn document(kernel: &Kernel, outcome: &Outcome) -> Value {
    let output = serde_json::from_str(&outcome.output)
        .unwrap_or_else(|_| Value::String(outcome.output.clone()));
    json!({
        "kernel": kernel.name,
        "status": outcome.status,
        "seconds": outcome.took.as_secs_f64(),
        "output": output,
    })
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if path.starts_with('/') => Ok((path.to_owned(), value.to_owned())),
        _ => Err("a setting is PATH=VALUE with a path from /".to_owned()),
    }
}
