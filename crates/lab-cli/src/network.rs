//! The network of a measurement between two processes, as command line options.

use crate::child_radio::{ChildRadio, ChildRadioOptions};
use crate::numbers::{allowed_cpus, cpu, one_of, whole};
use crate::{interrupt, program};
use anyhow::Context;
use millstream_cpu::sched::Class;
use millstream_lab::packets::{PacketWait, PathRow, TestNetwork, Testbed, rows};
use millstream_link::registry::find;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// Networks and CPUs of both sides.
#[derive(clap::Args)]
pub struct NetworkArgs {
    /// Interface of the side that sends: NAME or NAME@NAMESPACE. Without this option the command
    /// makes two network namespaces and a temporary veth pair between them, which needs root.
    #[arg(long, value_name = "INTERFACE", requires = "peer", conflicts_with = "loopback")]
    interface: Option<String>,

    /// Interface of the side that receives or answers.
    #[arg(long, value_name = "INTERFACE", requires = "interface")]
    peer: Option<String>,

    /// Use kernel sockets on the loopback of this machine. This needs no root.
    #[arg(long)]
    loopback: bool,

    /// Put a Linux bridge between the two sides: the command makes it in a third network namespace,
    /// with a veth pair to each side.
    #[arg(long, conflicts_with_all = ["interface", "loopback"])]
    bridge: bool,

    /// Size of the largest IP packet of the veth pair, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9000, conflicts_with = "interface",
          value_parser = whole::<u32>(576..=65_535))]
    mtu: u32,

    #[command(flatten)]
    pub seats: SideArgs,
}

/// The wait modes of a link.
const WAITS: [(&str, &str, PacketWait); 3] = [
    ("block", "Sleep in the kernel", PacketWait::Block),
    ("spin", "Never sleep. The thread needs a whole core", PacketWait::Spin),
    ("adaptive", "Poll for a while, then sleep", PacketWait::Adaptive),
];

/// The rows of a measurement: kinds of paths, or given links.
#[derive(clap::Args)]
pub struct RowArgs {
    /// Only measure rows whose name contains this text, or the one row with this name. Plain kernel
    /// UDP is always measured.
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,

    /// Measure this link instead of all links, for example xdp:mode=native. The command adds the
    /// interface.
    #[arg(long, value_name = "LINK")]
    pub link: Vec<String>,

    /// With --link: how the link waits for packets.
    #[arg(long, value_name = "WAIT", default_value = "spin", requires = "link",
          value_parser = one_of(&WAITS))]
    pub wait: PacketWait,
}

impl RowArgs {
    /// Whether a link has frames; some have none: the kernel's sockets.
    pub fn has_frames(link: &str) -> bool {
        find(link).map_or(true, |entry| entry.carries_frames())
    }

    /// Leaves the requested rows that this network has. A named link reports itself why it is not
    /// available there.
    pub fn choose(&self, mut rows: Vec<PathRow>, ground: &NetworkArgs) -> Vec<PathRow> {
        let interfaces = ground.ground() != TestNetwork::Loopback || !self.link.is_empty();
        rows::choose(&mut rows, &self.only, interfaces);
        rows
    }
}

/// CPUs and class of both sides.
#[derive(clap::Args)]
pub struct SideArgs {
    /// Where the two sides run: each on its own CPU, or both on the same CPU.
    #[arg(long, value_name = "LAYOUT", value_enum, default_value = "split")]
    layout: Layout,

    /// CPU of the side that sends. By default it is the first CPU that this process may use.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    cpu: Option<usize>,

    /// CPU of the side that receives or answers. By default it is the second CPU that this process
    /// may use.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    peer_cpu: Option<usize>,

    /// Scheduling class of both sides: other, or fifo:1 to fifo:99, which needs root.
    #[arg(long, value_name = "CLASS", default_value = "other", value_parser = class)]
    class: Class,
}

/// The CPUs of sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Layout {
    /// Both sides run on one CPU.
    Same,
    /// Each side runs on its own CPU.
    Split,
}

impl NetworkArgs {
    /// The networks.
    pub fn ground(&self) -> TestNetwork {
        match (&self.interface, &self.peer) {
            (Some(interface), Some(peer)) => TestNetwork::Given([interface.clone(), peer.clone()]),
            _ if self.loopback => TestNetwork::Loopback,
            _ if self.bridge => TestNetwork::Bridged { mtu: self.mtu as usize },
            _ => TestNetwork::Private { mtu: self.mtu as usize },
        }
    }

    /// The interface of the sending side, if one was given and it is in this network.
    pub fn interface(&self) -> Option<&str> {
        self.interface.as_deref().filter(|name| !name.contains('@'))
    }

    /// The name of the sending side's interface, in any network; `None` for private networks.
    pub fn measured(&self) -> Option<&str> {
        let interface = self.interface.as_deref()?;
        Some(interface.split_once('@').map_or(interface, |(name, _)| name))
    }

    /// Starts both sides.
    pub fn set(&self) -> anyhow::Result<Testbed> {
        self.seats.set(&self.ground())
    }
}

impl SideArgs {
    /// Starts both sides on a network.
    pub fn set(&self, ground: &TestNetwork) -> anyhow::Result<Testbed> {
        Ok(Testbed::set(ground, self.places()?, worker, interrupt::asked)?)
    }

    /// The real-time priority of both sides.
    pub fn fifo(&self) -> Option<u32> {
        match self.class {
            Class::Fifo(priority) => Some(priority.into()),
            _ => None,
        }
    }

    fn places(&self) -> anyhow::Result<[Option<usize>; 2]> {
        let allowed = allowed_cpus()?;
        let (first, second) = (allowed.iter().next(), allowed.iter().nth(1));
        let mut cpus = [self.cpu.or(first), self.peer_cpu.or(second).or(first)];
        for cpu in cpus.into_iter().flatten() {
            anyhow::ensure!(
                allowed.contains(cpu),
                "this process may not use CPU {cpu}: give one of the CPUs {allowed}"
            );
        }
        if self.layout == Layout::Same {
            cpus[1] = cpus[0];
        }
        anyhow::ensure!(
            self.fifo().is_none() || cpus[0] != cpus[1],
            "--class fifo cannot be used with both sides on one CPU, because a side that spins \
             would never let the other one run: leave out --class fifo or --layout same"
        );
        Ok(cpus)
    }
}

/// A class that the processes of both sides support.
fn class(text: &str) -> Result<Class, String> {
    match text.parse() {
        Ok(Class::RoundRobin(_)) => Err("give other, or fifo:1 to fifo:99".to_owned()),
        Ok(class) => Ok(class),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs a command of this program in the active network of a test bed, against an emulated radio in
/// the passive one; returns its document. `links` are those of the host and of the radio.
pub fn against_radio(
    bed: &Testbed,
    radio: ChildRadioOptions<'_>,
    address: Ipv4Addr,
    links: &[String; 2],
    words: &[String],
) -> anyhow::Result<Value> {
    let [host_link, radio_link] = links;
    let [host_cpu, radio_cpu] = [0, 1].map(|side: usize| bed.places()[side].cpu);
    let enter = |command: &mut Command| bed.start_in(true, command);
    let mut options = radio;
    options.args.extend(["--mtu", "9000", "--link", radio_link].map(str::to_owned));
    let options =
        ChildRadioOptions { addr: Some(address), cpu: radio_cpu, prepare: Some(&enter), ..options };
    let radio = ChildRadio::start(&options)?;
    let mut host = program::command(words)?;
    let args = format!("addr={address},link={host_link}");
    host.args(["--json", "--args", &args]).stdin(Stdio::null());
    bed.start_in(false, &mut host)?;
    millstream_host::child::tie(&mut host, host_cpu);
    let output = host.output().context("cannot start the process of the host")?;
    drop(radio);
    let document: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("the host ended early: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    Ok(document)
}

/// The command of this program as the process of one side.
pub fn worker(network: Option<&str>) -> std::io::Result<Command> {
    let mut command = program::command(["bench", "worker"])?;
    command.args(network.map(|network| format!("--namespace={network}")));
    Ok(command)
}
