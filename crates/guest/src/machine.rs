//! The emulated machine: its start, its console and its end.

use crate::error::{Error, at};
use crate::job;
use crate::kernel::BootKernel;
use crate::processor::Processor;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The lines of a console in an error.
const SHOWN: usize = 12;

/// The properties of the machine.
#[derive(Clone, Debug)]
pub struct GuestMachine {
    /// The number of CPUs.
    pub cpus: usize,
    /// The hardware threads of a core (SMT); `cpus` is a multiple of it.
    pub threads: usize,
    /// Memory, MiB.
    pub memory_mib: usize,
    /// QEMU's model of the CPU; empty for the usual one of the kernel's processor.
    pub cpu: String,
    /// `tcg` (software), or `kvm` where the host supports it.
    pub accelerator: String,
    /// Words for the kernel's command line in addition to the console's.
    pub command_line: Vec<String>,
    /// Arguments of QEMU for devices and their back ends.
    pub devices: Vec<String>,
    /// Descriptors that QEMU's arguments name by their numbers in this process.
    pub inherited: Vec<Arc<OwnedFd>>,
    /// The machine's own options after `q35` or `virt` (`kernel-irqchip=split` for an IOMMU).
    pub chipset: String,
    /// The time limit.
    pub limit: Duration,
}

impl Default for GuestMachine {
    fn default() -> Self {
        Self {
            cpus: 2,
            threads: 1,
            memory_mib: 512,
            cpu: String::new(),
            accelerator: "tcg".to_owned(),
            command_line: Vec::new(),
            devices: Vec::new(),
            inherited: Vec::new(),
            chipset: String::new(),
            limit: Duration::from_secs(300),
        }
    }
}

/// The result of a guest.
#[derive(Clone, Debug)]
pub struct GuestResult {
    /// The exit status of its command.
    pub status: i32,
    /// The command's output.
    pub output: String,
    /// The console output of kernel and command.
    pub console: String,
    /// The time from start to power-off.
    pub took: Duration,
}

impl GuestResult {
    /// Returns the last message of the command, or of the guest's first process behind it, without
    /// the name of the program. After a failure it is the error.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        const BEGINNINGS: [&str; 3] = ["millstream: ", "millstream guest: ", "error: "];
        let message = |line| BEGINNINGS.into_iter().find_map(|one| str::strip_prefix(line, one));
        self.console.lines().rev().map(str::trim_end).find_map(message)
    }
}

impl GuestMachine {
    /// Boots `kernel` with the initial file system `image`, passes every line of the console to
    /// `watch`, and waits for the power-off.
    ///
    /// # Errors
    /// When QEMU is missing or fails, the guest exceeds the limit, or it ends without a result.
    pub fn run(
        &self,
        kernel: &BootKernel,
        image: &[u8],
        watch: impl FnMut(&str) + Send,
    ) -> Result<GuestResult, Error> {
        let directory = tempfile::tempdir().map_err(at(std::env::temp_dir()))?;
        let [initrd, output] = ["initrd", "output"].map(|name| directory.path().join(name));
        std::fs::write(&initrd, image).map_err(at(&initrd))?;
        let started = Instant::now();
        let mut child = self.spawn(kernel, &initrd, &output)?;
        let (console, in_time) = self.follow(&mut child, watch);
        let mut said = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let ended = child.wait().map_err(at(kernel.processor.emulator()))?;
        let took = started.elapsed();
        let raw = std::fs::read(&output).unwrap_or_default();
        let raw = String::from_utf8_lossy(&raw);
        if let (output, Some(status)) = job::split(&raw) {
            return Ok(GuestResult { status, output: output.to_owned(), console, took });
        }
        let program = kernel.processor.emulator().to_owned();
        let (kernel, console) = (kernel.name.clone(), last_lines(&console));
        if !in_time {
            return Err(Error::TimedOut { kernel, limit: self.limit, console });
        }
        if !ended.success() {
            return Err(Error::Failed { program, said: last_lines(&said) });
        }
        Err(Error::Silent { kernel, console })
    }

    fn spawn(&self, kernel: &BootKernel, initrd: &Path, output: &Path) -> Result<Child, Error> {
        let program = kernel.processor.emulator();
        let mut command = Command::new(program);
        command.args(self.arguments(kernel.processor));
        command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(initrd);
        command.args(["-serial", "stdio"]);
        command.args(kernel.processor.output_arguments(output));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let inherited = self.inherited.iter().map(Arc::clone).collect();
        millstream_host::child::inherit(&mut command, inherited);
        // A guest ends with the process that waits for it.
        millstream_host::child::tie(&mut command, None);
        let missing = |source| Error::Missing {
            program: program.to_owned(),
            package: kernel.processor.package(),
            source,
        };
        command.spawn().map_err(missing)
    }

    fn arguments(&self, processor: Processor) -> Vec<String> {
        let mut chipset = processor.machine().to_owned();
        if !self.chipset.is_empty() {
            chipset = format!("{chipset},{}", self.chipset);
        }
        let usual = || processor.cpu(&self.accelerator, self.threads);
        let cpu = if self.cpu.is_empty() { usual() } else { &self.cpu };
        let (cores, threads) = (self.cpus / self.threads.max(1), self.threads);
        let cpus = format!("{},sockets=1,cores={cores},threads={threads}", self.cpus);
        let console = format!("console={}", processor.console());
        let mut line = vec![console.as_str(), "panic=-1", "loglevel=4"];
        line.extend(self.command_line.iter().map(String::as_str));
        let fixed = [
            ["-machine", &chipset],
            ["-accel", &self.accelerator],
            ["-cpu", cpu],
            ["-smp", &cpus],
            ["-m", &self.memory_mib.to_string()],
            ["-append", &line.join(" ")],
            ["-display", "none"],
            ["-monitor", "none"],
            ["-vga", "none"],
            ["-nic", "none"],
        ];
        let mut arguments: Vec<String> = fixed.iter().flatten().map(|&s| s.to_owned()).collect();
        arguments.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        arguments.extend(self.devices.iter().cloned());
        arguments
    }

    /// Reads the console to its end, or ends the machine at the limit. True when it ended by
    /// itself.
    fn follow(&self, child: &mut Child, mut watch: impl FnMut(&str) + Send) -> (String, bool) {
        let stdout = child.stdout.take().expect("piped");
        let (lines, arrivals) = std::sync::mpsc::channel();
        let deadline = Instant::now() + self.limit;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut reader = BufReader::new(stdout);
                let mut line = Vec::new();
                while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                    line.clear();
                    if lines.send(text).is_err() {
                        break;
                    }
                }
            });
            let (mut console, mut in_time) = (String::new(), true);
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match arrivals.recv_timeout(left) {
                    Ok(line) => {
                        watch(&line);
                        console.push_str(&line);
                        console.push('\n');
                    }
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) if in_time => {
                        in_time = false;
                        // The console ends with the machine, and so does this loop.
                        let _ = child.kill();
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
            (console, in_time)
        })
    }
}

/// Returns the end of a console; after a kernel panic, from the kernel's message on.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let first = panic.unwrap_or(lines.len().saturating_sub(SHOWN));
    lines[first..(first + SHOWN).min(lines.len())].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_end_of_a_console() {
        let text: String = (0..40).map(|n| format!("line {n}\n\n")).collect();
        let shown = last_lines(&text);
        assert!(shown.starts_with("line 28\n") && shown.ends_with("line 39"), "{shown}");
        let text = text.replace("line 20", "Kernel panic - not syncing: no init");
        let shown = last_lines(&text);
        assert!(shown.starts_with("Kernel panic") && shown.ends_with("line 31"), "{shown}");
    }

    #[test]
    fn the_last_error_of_a_command_is_found_between_lines_of_the_kernel() {
        let result = |console: &str| GuestResult {
            status: 1,
            output: String::new(),
            console: console.to_owned(),
            took: Duration::ZERO,
        };
        let lines = "millstream: a module\r\nmillstream: no radio answers\r\n[ 2.1] reboot\n";
        assert_eq!(result(lines).error(), Some("no radio answers"));
        assert_eq!(result("[ 2.1] reboot\n").error(), None);
        let lines = "millstream: a note\nerror: unexpected argument '--x' found\n\nUsage: …\n";
        assert_eq!(result(lines).error(), Some("unexpected argument '--x' found"));
    }

    #[test]
    fn words_for_the_kernel_follow_the_console() {
        let machine = GuestMachine {
            command_line: vec!["mitigations=off".into()],
            ..GuestMachine::default()
        };
        for (processor, console) in [(Processor::X86, "ttyS0"), (Processor::Arm64, "ttyAMA0")] {
            let wanted = format!("console={console} panic=-1 loglevel=4 mitigations=off");
            assert!(machine.arguments(processor).contains(&wanted));
        }
    }

    #[test]
    fn hardware_threads_are_shown_by_a_cpu_of_intel() {
        let machine = GuestMachine { cpus: 4, threads: 2, ..GuestMachine::default() };
        let arguments = machine.arguments(Processor::X86);
        let has = |text: &str| arguments.iter().any(|argument| argument == text);
        assert!(has("4,sockets=1,cores=2,threads=2"), "{arguments:?}");
        assert!(has("max,vendor=GenuineIntel"), "{arguments:?}");
        let arguments = GuestMachine::default().arguments(Processor::X86);
        assert!(arguments.contains(&"2,sockets=1,cores=2,threads=1".to_owned()), "{arguments:?}");
    }

    #[test]
    fn a_guest_of_kvm_has_the_hosts_cpu_and_an_emulated_one_a_known_model() {
        let cpu = |accelerator: &str, processor| {
            let accelerator = accelerator.to_owned();
            let machine = GuestMachine { accelerator, ..GuestMachine::default() };
            let arguments = machine.arguments(processor);
            let place = arguments.iter().position(|argument| argument == "-cpu").unwrap();
            arguments[place + 1].clone()
        };
        assert_eq!(cpu("tcg", Processor::Arm64), "cortex-a53");
        assert_eq!(cpu("kvm", Processor::Arm64), "host");
        assert_eq!(cpu("kvm,dirty-ring-size=1024", Processor::Arm64), "host");
        assert_eq!(cpu("kvm", Processor::X86), "max");
    }
}
