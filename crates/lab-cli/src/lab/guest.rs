//! `millstream-lab lab guest`: any command of both programs under other kernels.

use super::adc;
use crate::live::{TimeLeft, during};
use crate::numbers::{seconds, whole};
use crate::output::{self, Report};
use anyhow::{Context, ensure};
use millstream_cpu::{KernelOrigin, folders};
use millstream_guest::cards::{self, Cards};
use millstream_guest::ivshmem::SharedWindow;
use millstream_guest::{
    BootKernel, GuestJob, GuestMachine, GuestResult, Processor, iio, image, iommu, program,
};
use millstream_lab::irq::Imitation;
use serde_json::Value;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Folder of modules in a guest.
const MODULES: &str = "/modules";

/// Runs a command of millstream-lab or millstream in a virtual machine (QEMU), under each of the
/// given kernels.
///
/// The first process of the virtual machine is this program: it loads the modules, writes the
/// settings, runs the command and powers off. Nothing is installed, and nothing on this machine
/// changes. QEMU must be installed (Debian: qemu-system-x86, or qemu-system-arm for kernels of
/// ARM64). It emulates the CPU in software. So the result shows whether something works and how
/// kernels behave differently; the times say nothing about real hardware.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub guest: GuestOptions,

    /// The command to run, without the name of the program.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  millstream-lab lab guest --kernel linux-image-6.12-rt-amd64 -- find
  millstream-lab lab guest --kernel linux-image-6.1.0-56-rt-amd64 --adc -- latency irq --via vfio
  millstream-lab lab guest --kernel linux-image-6.1.0-56-amd64 --cards vmxnet3 --memory 1024 -- \\
    lab card --card 0000:00:04.0
  millstream-lab lab guest --kernel linux-image-6.12-rt-amd64 --iio -- latency irq --via iio
  millstream-lab lab guest --kernel ./linux-image-6.1.0-50-arm64_6.1.176-1_arm64.deb \\
    --program target/aarch64-unknown-linux-musl/release/millstream-lab -- find
  millstream-lab lab guest --kernel /boot/vmlinuz-6.1.0 --append mitigations=off -- bench convert";

/// Options of the virtual machines, which several commands share.
#[derive(clap::Args)]
pub struct GuestOptions {
    /// Kernel to boot: a vmlinuz file, a Debian linux-image package (.deb), or the name of such a
    /// package, which apt-get downloads (NAME=VERSION for one version). A package that only depends
    /// on a kernel, such as linux-image-6.12-amd64, stands for that kernel. Repeat the option for
    /// more.
    #[arg(long = "kernel", required = true, value_name = "KERNEL")]
    pub kernels: Vec<String>,

    /// Kernel module to load before the command, with the modules that it needs. Parameters may
    /// follow its name (`i2c-stub chip_addr=0x0f`). Repeat the option for more.
    #[arg(long = "module", value_name = "NAME")]
    pub modules: Vec<String>,

    /// Write a setting (a file below /proc or /sys) before the command runs. Repeat the option for
    /// more.
    #[arg(long = "write", value_name = "PATH=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    /// Copy this file to the same path in the virtual machine. Repeat the option for more.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Copy this program to the same path in the virtual machine, with the libraries that it is
    /// linked with. Repeat the option for more.
    #[arg(long = "with", value_name = "PROGRAM")]
    pub programs: Vec<PathBuf>,

    /// Word for the kernel's command line. Repeat the option for more.
    #[arg(long = "append", value_name = "WORD")]
    pub command_line: Vec<String>,

    /// Device, written as for QEMU's option -device. Repeat the option for more.
    #[arg(long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,

    /// Back end of a network device, written as for QEMU's option -netdev; --device and --module
    /// add the device and its driver. All interfaces are up before the command runs. Repeat the
    /// option for more.
    #[arg(long = "netdev", value_name = "BACK-END")]
    pub backs: Vec<String>,

    /// Add the imitated converter of `latency irq` as a PCI device with MSI-X behind an IOMMU.
    /// `latency irq --via vfio` measures it.
    #[arg(long)]
    pub adc: bool,

    /// Add two network cards of this model (e1000e, e1000, vmxnet3) that a cable connects, an IOMMU
    /// and DPDK's drivers. `lab card` tests them.
    #[arg(long, value_name = "MODEL")]
    pub cards: Option<String>,

    /// Add a converter of the kernel's Industrial I/O whose bus exists only in memory (kernels from
    /// 6.12). `latency irq --via iio` measures it.
    #[arg(long)]
    pub iio: bool,

    /// Options of QEMU's machine (q35, or virt for ARM64), for example `kernel-irqchip=split`,
    /// which an IOMMU needs.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "OPTIONS")]
    pub chipset: String,

    /// Number of CPUs.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = whole::<usize>(1..))]
    pub vcpus: usize,

    /// Hardware threads of each core (SMT). The number of CPUs must be a multiple of it.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole::<usize>(1..))]
    pub threads: usize,

    /// Memory, in MiB.
    #[arg(long, default_value_t = 512, value_name = "MIB", value_parser = whole::<usize>(1..))]
    pub memory: usize,

    /// QEMU's model of the CPU. The default is max, and cortex-a53 for kernels of ARM64 (host with
    /// `--accel kvm`).
    #[arg(long, default_value = "", hide_default_value = true, value_name = "MODEL")]
    pub cpu_model: String,

    /// Static millstream-lab program for kernels of another processor than this one's, as the
    /// package for ARM64 has it.
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<PathBuf>,

    /// How QEMU runs the CPUs: `tcg` emulates them in software; `kvm` needs virtualisation by the
    /// processor.
    #[arg(long, default_value = "tcg", value_name = "NAME")]
    pub accel: String,

    /// Time limit of a virtual machine.
    #[arg(long, default_value = "5min", value_name = "TIME", value_parser = seconds)]
    pub timeout: f64,

    /// Folder for downloaded kernels. The default is $XDG_CACHE_HOME/millstream/kernels.
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,

    /// Compare all settings and threads before and after the command, byte for byte. If the command
    /// has left changes, it fails with status 124, and the console lists them.
    #[arg(long)]
    pub unchanged: bool,

    /// Show the consoles of the virtual machines.
    #[arg(long)]
    pub console: bool,
}

crate::results! {
    /// A command under several kernels.
    struct GuestResults<'a> {
        /// Each kernel.
        guests: Vec<GuestOutput<'a>>,
    }

    /// A command under one kernel.
    struct GuestOutput<'a> {
        /// The kernel.
        kernel: &'a str,
        /// The command's status.
        status: i32,
        /// How long the virtual machine ran, seconds.
        seconds: f64,
        /// The command's own document if it wrote one, its text otherwise.
        output: Value,
    }
}

/// Runs the command under every kernel.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let (mut text, mut results, mut failed) = (String::new(), Vec::new(), Vec::new());
    let kernels = args.guest.kernels.iter().map(|wanted| args.guest.kernel(wanted));
    let kernels = kernels.collect::<anyhow::Result<Vec<_>>>()?;
    args.guest.check_program(&kernels)?;
    let mut estimate = TimeLeft::new(Instant::now());
    for (done, kernel) in kernels.iter().enumerate() {
        let what = format!("guest {} of {}, {}", done + 1, args.guest.kernels.len(), kernel.name);
        // The guests before tell how long it takes.
        let expected = estimate.each(Instant::now(), done);
        let (command, files) = (args.command.clone(), image::Files::new());
        let run = || args.guest.run(kernel, &[], command, files);
        // A console shows how far the guest is, and would share its lines.
        let outcome = if args.guest.console { run() } else { during(&what, expected, run) }?;
        let (name, seconds) = (&kernel.name, outcome.took.as_secs_f64());
        output::note(format_args!("{name}: status {} after {seconds:.1} s", outcome.status));
        if outcome.status != 0 {
            let said = outcome.error().map_or(String::new(), |error| format!(" ({error})"));
            failed.push(format!("{name}{said}"));
        }
        text.push_str(&format!("== {name}\n{}", outcome.output.trim_start()));
        results.push(document(kernel, &outcome));
    }
    let failure = (!failed.is_empty()).then(|| {
        format!("the command failed under {}; --console shows the whole output", failed.join(", "))
    });
    Ok(Report::of(text, &GuestResults { guests: results }).failing(failure))
}

impl GuestOptions {
    /// A kernel, found or fetched.
    pub fn kernel(&self, wanted: &str) -> anyhow::Result<BootKernel> {
        let cache = match &self.cache {
            Some(cache) => cache.clone(),
            None => folders::cache(folders::variable)
                .context(
                    "there is no folder for downloaded kernels, because neither XDG_CACHE_HOME \
                     nor HOME is set: give --cache FOLDER",
                )?
                .join("millstream/kernels"),
        };
        std::fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
        Ok(BootKernel::find(wanted, &cache)?)
    }

    /// Runs one command under one kernel, with additional words for its command line and additional
    /// files.
    pub fn run(
        &self,
        kernel: &BootKernel,
        words: &[String],
        arguments: Vec<String>,
        mut files: image::Files,
    ) -> anyhow::Result<GuestResult> {
        for path in &self.files {
            let content = std::fs::read(path).with_context(|| path.display().to_string())?;
            let place = std::path::absolute(path)?;
            files.push((place.to_string_lossy().into_owned(), content));
        }
        ensure!(
            self.threads > 0 && self.vcpus.is_multiple_of(self.threads),
            "--vcpus {} is no multiple of --threads {}: each core has the same number of threads",
            self.vcpus,
            self.threads
        );
        let converter = self.adc.then(Converter::start).transpose()?;
        let rig = self.cards.as_deref().map(Rig::new).transpose()?;
        let mut machine = self.machine(words);
        let (mut modules, mut wanted) = (Vec::new(), self.modules.clone());
        let (mut settings, mut objects) = (self.settings.clone(), Vec::new());
        for program in &self.programs {
            objects.push(std::path::absolute(program)?);
        }
        if let Some(converter) = &converter {
            settings.extend(SharedWindow::settings());
            machine.devices.extend(converter.window.arguments());
            machine.inherited.push(converter.window.socket());
        }
        if let Some(rig) = &rig {
            wanted.extend(rig.cards.modules().map(str::to_owned));
            objects.extend(rig.cards.plug_ins()?);
            machine.devices.extend(rig.cards.arguments());
            machine.command_line.extend(cards::KERNEL_WORDS.map(str::to_owned));
        }
        if converter.is_some() || rig.is_some() {
            wanted.extend(iommu::MODULES.map(str::to_owned));
            // An IOMMU comes before the devices that it serves.
            machine.devices.splice(0..0, iommu::ARGUMENTS.map(str::to_owned));
            machine.command_line.extend(iommu::KERNEL_WORDS.map(str::to_owned));
            if machine.chipset.is_empty() {
                iommu::CHIPSET.clone_into(&mut machine.chipset);
            }
        }
        if self.iio {
            wanted.extend(iio::MODULES.map(str::to_owned));
            settings.extend(iio::settings());
        }
        for module in kernel.modules(&wanted)? {
            let path = format!("{MODULES}/{}.ko", module.name);
            modules.push(format!("{path} {}", module.parameters));
            files.push((path, module.content));
        }
        // A record reads there the hash that distinguishes kernels of one release.
        files.extend(kernel.configuration());
        let origin = serde_json::to_vec(&kernel.origin()?)?;
        files.push((KernelOrigin::GUEST_FILE.to_owned(), origin));
        let (up, unchanged) = (!self.backs.is_empty(), self.unchanged);
        let job = GuestJob { modules, settings, arguments, up, unchanged };
        let program = self.program_for(kernel)?;
        let image = image::build(program, &job, &files, &objects)?;
        let watch = |line: &str| {
            if self.console {
                output::note(format_args!("  {}| {line}", kernel.name));
            }
        };
        Ok(machine.run(kernel, &image, watch)?)
    }

    /// Checks before the first boot that a program can run under every kernel, and says so when
    /// --program has none to run under.
    pub fn check_program<'k>(
        &self,
        kernels: impl IntoIterator<Item = &'k BootKernel>,
    ) -> anyhow::Result<()> {
        let mut used = false;
        for kernel in kernels {
            if let Some(path) = self.program_for(kernel)? {
                program::check(path, kernel.processor).context("--program")?;
                used = true;
            }
        }
        if !used && self.program.is_some() {
            output::note(
                "--program is not used: all kernels are for the processor of this program, which \
                 runs under them itself",
            );
        }
        Ok(())
    }

    /// The program that runs under a kernel, unless it is this one.
    fn program_for(&self, kernel: &BootKernel) -> anyhow::Result<Option<&Path>> {
        if kernel.processor == Processor::OWN {
            return Ok(None);
        }
        let program = self.program.as_deref().with_context(|| {
            format!(
                "the kernel {} is for another processor than this program: give the static \
                 program for it with --program FILE (`make arm64` compiles one)",
                kernel.name
            )
        })?;
        ensure!(
            !self.adc && self.cards.is_none() && !self.iio,
            "--adc, --cards and --iio are for kernels of this machine's processor, and {} is for \
             another: leave them out",
            kernel.name
        );
        Ok(Some(program))
    }

    fn machine(&self, words: &[String]) -> GuestMachine {
        let backs = self.backs.iter().flat_map(|back| ["-netdev".into(), back.clone()]);
        let devices = self.devices.iter().flat_map(|device| ["-device".into(), device.clone()]);
        GuestMachine {
            cpus: self.vcpus,
            threads: self.threads,
            memory_mib: self.memory,
            cpu: self.cpu_model.clone(),
            accelerator: self.accel.clone(),
            command_line: [&self.command_line[..], words].concat(),
            devices: backs.chain(devices).collect(),
            inherited: Vec::new(),
            chipset: self.chipset.clone(),
            limit: Duration::from_secs_f64(self.timeout),
        }
    }
}

/// The imitated converter, a process of this host, and its connection to a guest.
struct Converter {
    _imitation: Imitation,
    window: SharedWindow,
}

impl Converter {
    fn start() -> anyhow::Result<Self> {
        let imitation = Imitation::start(&adc::command, None).context("the imitated converter")?;
        let window = SharedWindow::new(imitation.memory.as_fd(), imitation.line.as_fd())?;
        Ok(Self { _imitation: imitation, window })
    }
}

/// Two network cards, and the folder of the socket through which the guest pulls their cable.
struct Rig {
    cards: Cards,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new(model: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let cards = Cards::new(model, folder.path().join("monitor"));
        let cards = cards.map_err(|error| anyhow::anyhow!("--cards: {error}"))?;
        Ok(Self { cards, _folder: folder })
    }
}

/// A command's own document if it wrote one, its text otherwise.
fn document<'a>(kernel: &'a BootKernel, outcome: &GuestResult) -> GuestOutput<'a> {
    let output = serde_json::from_str(&outcome.output)
        .unwrap_or_else(|_| Value::String(outcome.output.clone()));
    let (status, seconds) = (outcome.status, outcome.took.as_secs_f64());
    GuestOutput { kernel: &kernel.name, status, seconds, output }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if path.starts_with('/') => Ok((path.to_owned(), value.to_owned())),
        _ => Err("write PATH=VALUE, with a path that begins with /".to_owned()),
    }
}
