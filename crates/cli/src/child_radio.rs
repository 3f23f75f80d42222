//! An emulated radio in a process of its own, which shares only the network with this one.

use anyhow::{Context, anyhow};
use millstream_emulator::DeviceKind;
use millstream_radio::DeviceArgs;
use millstream_wire::mpm::DISCOVERY_PORT;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Time limit of the radio's own end, which a busy machine delays by seconds.
const STOP_TIME: Duration = Duration::from_secs(30);

/// The most addresses that are tried for a radio.
const ADDRESSES_TRIED: usize = 100;

/// A radio process; dropping it ends the process.
pub struct ChildRadio {
    child: Child,
    /// Its address.
    pub addr: Ipv4Addr,
    /// The address of its second link, if it has one.
    second_addr: Option<Ipv4Addr>,
    device: DeviceKind,
}

impl ChildRadioOptions<'_> {
    /// Arguments only, in which a space separates two.
    pub fn new(args: &str) -> Self {
        let args = args.split_whitespace().map(str::to_owned).collect();
        Self { args, ..Self::default() }
    }
}

/// Changes a command before its start.
pub type Prepare<'a> = dyn Fn(&mut Command) -> std::io::Result<()> + 'a;

/// The options of a child radio.
#[derive(Default)]
pub struct ChildRadioOptions<'a> {
    /// Its address; `None`: a loopback address that no other process uses.
    pub addr: Option<Ipv4Addr>,
    /// The address of its second link, if it has one.
    pub second_addr: Option<Ipv4Addr>,
    /// The kind of device that it emulates.
    pub device: DeviceKind,
    /// Arguments of `millstream sim radio` beside its address.
    pub args: Vec<String>,
    /// Its input at `/dev/stdin`.
    pub stdin: Option<&'static [u8]>,
    /// The CPU of all its threads.
    pub cpu: Option<usize>,
    /// Changes its command before the start, for example to another network.
    pub prepare: Option<&'a Prepare<'a>>,
}

impl ChildRadio {
    /// Starts a radio and waits until it listens.
    pub fn start(options: &ChildRadioOptions<'_>) -> anyhow::Result<Self> {
        let addr = options.addr.unwrap_or_else(free_address);
        let child = spawn(addr, options)?;
        let (second_addr, device) = (options.second_addr, options.device);
        let mut radio = Self { child, addr, second_addr, device };
        let stderr =
            radio.child.stderr.take().context("the process of the emulated radio has no output")?;
        wait_until_ready(stderr)?;
        Ok(radio)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the thread that serves the stream.
    pub fn device_thread(&self) -> anyhow::Result<i32> {
        let tasks = format!("/proc/{}/task", self.pid());
        let mut threads = std::fs::read_dir(&tasks)?.filter_map(Result::ok);
        let named = |folder: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(folder.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "ms-device")
        };
        let found = threads.find(named).context("the emulated radio has ended")?;
        let number = found.file_name().to_string_lossy().parse();
        number.context("cannot read the threads of the emulated radio")
    }

    /// Replaces the error of a failed reception if this process has ended by itself.
    pub fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        match self.child.try_wait() {
            Ok(Some(status)) => {
                anyhow!("the emulated radio ended before the measurement was complete ({status})")
            }
            _ => error,
        }
    }

    /// Ends the process, and returns its final counters.
    pub fn stop(mut self) -> anyhow::Result<Value> {
        if !self.end() {
            anyhow::bail!(
                "the emulated radio did not end within {} s and was killed: its counters are lost; \
                 measure again on a machine with less load",
                STOP_TIME.as_secs()
            );
        }
        let mut text = String::new();
        let mut stdout =
            self.child.stdout.take().context("the process of the emulated radio has no output")?;
        stdout
            .read_to_string(&mut text)
            .context("cannot read the last output of the emulated radio")?;
        let mut document: Value = serde_json::from_str(&text)
            .context("the emulated radio ended without its final report")?;
        Ok(document["results"]["counters"].take())
    }

    /// Ends it, by SIGTERM first; returns whether that sufficed.
    fn end(&mut self) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return true;
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let until = Instant::now() + STOP_TIME;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = !matches!(self.child.try_wait(), Ok(None));
        // Both do nothing when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        ended
    }
}

impl Drop for ChildRadio {
    fn drop(&mut self) {
        self.end();
    }
}

/// A radio: the user's, or an emulated one that lives as long as the measurement.
pub enum RadioUnderTest {
    /// The user's.
    Given(Box<DeviceArgs>),
    /// One of this program's.
    Emulated(ChildRadio),
}

impl RadioUnderTest {
    /// The given radio, or an emulated one.
    pub fn start(
        given: Option<&DeviceArgs>,
        options: ChildRadioOptions<'_>,
    ) -> anyhow::Result<Self> {
        Ok(match given {
            Some(given) => Self::Given(Box::new(given.clone())),
            None => Self::Emulated(ChildRadio::start(&options)?),
        })
    }

    /// The arguments that open it.
    pub fn device_args(&self) -> DeviceArgs {
        match self {
            Self::Given(args) => (**args).clone(),
            Self::Emulated(radio) => DeviceArgs {
                further_addrs: radio.second_addr.into_iter().collect(),
                ..DeviceArgs::new(radio.addr)
            },
        }
    }

    /// The process of an emulated radio.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Given(_) => None,
            Self::Emulated(radio) => Some(radio.pid()),
        }
    }

    /// A line about it, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Given(args) => format!("radio   {args:?}"),
            Self::Emulated(radio) => {
                let product = radio.device.product().to_uppercase();
                let second = radio.second_addr.map(|addr| format!(" and {addr}"));
                format!(
                    "radio   {product} emulated by process {} at {}{}",
                    radio.pid(),
                    radio.addr,
                    second.unwrap_or_default()
                )
            }
        }
    }

    /// Replaces an error by its cause in the radio, if it has one.
    pub fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        match self {
            Self::Given(_) => error,
            Self::Emulated(radio) => radio.explain(error),
        }
    }

    /// Ends an emulated radio and returns its counters.
    pub fn stop(self) -> anyhow::Result<Option<Value>> {
        match self {
            Self::Given(_) => Ok(None),
            Self::Emulated(radio) => radio.stop().map(Some),
        }
    }
}

/// Returns a loopback address at which no radio answers: every address of 127/8 is this machine.
pub fn free_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(83);
    // Two radios of this process never have the same.
    let own = NEXT.fetch_add(1, Ordering::Relaxed);
    // Numbers of processes repeat themselves in containers, which may share a network.
    let random = std::iter::repeat_with(|| RandomState::new().build_hasher().finish());
    let address = |bits: u64| {
        let [high, low, ..] = bits.to_le_bytes();
        Ipv4Addr::new(127, own, high, low.clamp(1, 254))
    };
    first_free(random.take(ADDRESSES_TRIED).map(address))
}

/// Returns the first of these addresses at which the discovery of radios has no port yet, or else
/// the last: the radio's own error then says what is wrong.
fn first_free(addresses: impl Iterator<Item = Ipv4Addr>) -> Ipv4Addr {
    let mut last = Ipv4Addr::LOCALHOST;
    for address in addresses {
        last = address;
        if UdpSocket::bind((address, DISCOVERY_PORT)).is_ok() {
            break;
        }
    }
    last
}

fn spawn(addr: Ipv4Addr, options: &ChildRadioOptions<'_>) -> anyhow::Result<Child> {
    let stdin = options.stdin.map(in_memory).transpose()?;
    let program = std::env::current_exe()
        .context("cannot find the file of this program, to start the emulated radio")?;
    let mut command = Command::new(program);
    command
        .args(["sim", "radio", "--json", "--any-rate", "--chdr-port", "0"])
        .args(["--addr", &addr.to_string(), "--device", options.device.name()])
        .args(options.second_addr.map(|addr| format!("--second-addr={addr}")))
        .args(&options.args)
        // Ctrl-C goes to this process, which then ends the radio.
        .process_group(0)
        .stdin(stdin.map_or(Stdio::null(), Stdio::from))
        // Its final counters, which fit a pipe.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(prepare) = options.prepare {
        prepare(&mut command).context("cannot prepare the process of the emulated radio")?;
    }
    millstream_host::child::tie(&mut command, options.cpu);
    command.spawn().context("cannot start the emulated radio")
}

/// An unnamed file, which vanishes however this program ends.
fn in_memory(content: &[u8]) -> anyhow::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = rustix::fs::memfd_create("radio-input", flags).map(File::from);
    let mut file =
        file.context("cannot create a file in memory for the samples of the emulated radio")?;
    file.write_all(content)
        .context("cannot write the file in memory for the samples of the emulated radio")?;
    Ok(file)
}

/// Reads until the radio reports that it listens; forwards its later output to standard error.
fn wait_until_ready(stderr: ChildStderr) -> anyhow::Result<()> {
    let mut lines = BufReader::new(stderr);
    let mut said = String::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            let reason = said.trim().trim_start_matches("millstream: ");
            anyhow::bail!("the emulated radio did not start: {reason}");
        }
        if line.starts_with("ready") {
            break;
        }
        said.push_str(&line);
    }
    // Keeps the pipe from filling; ends with the process.
    std::thread::Builder::new().name("ms-child-radio".to_owned()).spawn(move || {
        let mut rest = [0; 4096];
        while let Ok(count @ 1..) = lines.read(&mut rest) {
            // Standard error may have no reader.
            let _ = std::io::stderr().write_all(&rest[..count]);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_at_which_a_radio_answers_is_not_given_to_another() {
        let [taken, free] = [free_address(), free_address()];
        assert_ne!(taken, free);
        let _radio = UdpSocket::bind((taken, DISCOVERY_PORT)).unwrap();
        assert_eq!(first_free([taken, free].into_iter()), free);
        assert_eq!(first_free([taken].into_iter()), taken, "its error says why");
    }
}
