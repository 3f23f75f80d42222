//! `millstream host net host`: a host that answers on a link, and returns datagrams to its UDP
//! ports.

use crate::interrupt;
use crate::numbers::{ipv4, seconds, whole};
use crate::output::{Join, Report, note};
use crate::start;
use anyhow::Context;
use millstream_link::port::{Port, PortOptions};
use millstream_net::engine::LinkReport;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Acts as a network host on a link until you end it. It echoes UDP datagrams. If the link has an
/// address of its own (`address=IP/PREFIX`), it also answers ARP and ping.
#[derive(clap::Args)]
pub struct Args {
    /// The link: udp, or packet or xdp with an interface and options, for example
    /// packet:eth1,address=10.0.0.2/24.
    #[arg(long, value_name = "LINK")]
    link: String,

    /// UDP port on which it echoes datagrams (RFC 862). Repeat the option for more.
    #[arg(long, value_name = "PORT", default_value = "7", value_parser = whole::<u16>(..))]
    echo_port: Vec<u16>,

    /// IP address of the ports. The default is the first address of the link; with udp, every
    /// address of this machine.
    #[arg(long, value_name = "IPV4", default_value_t = Ipv4Addr::UNSPECIFIED, value_parser = ipv4)]
    addr: Ipv4Addr,

    /// End after this time. By default it runs until Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,
}

/// Interval at which a port checks whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

crate::results! {
    /// What was returned.
    struct EchoedDatagrams {
        /// Each UDP port.
        ports: Vec<Echoed>,
        /// The links.
        links: Vec<EchoLink>,
    }

    /// The counts of one port.
    struct Echoed {
        /// The port's address.
        local: SocketAddrV4,
        /// Datagrams returned.
        datagrams: u64,
        /// Their bytes.
        bytes: u64,
        /// Datagrams that could not be returned.
        unsent: u64,
        /// The last error of a send.
        #[serde(skip)]
        error: Option<String>,
    }

    /// A link.
    struct EchoLink {
        /// Its name.
        name: &'static str,
        /// Its interface.
        interface: Option<String>,
        /// Its mode.
        mode: &'static str,
        /// How it works, in words.
        detail: String,
        /// Counters of frames.
        link: BTreeMap<&'static str, u64>,
        /// Counters of packets.
        stack: BTreeMap<&'static str, u64>,
        /// Its frames.
        frames: usize,
        /// Frames that nobody has.
        leaked_frames: u64,
    }
}

/// Serves until it is interrupted.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let options = PortOptions { datagram_bytes_max: 65507, ..PortOptions::default() };
    let open = |port: &u16| {
        let bind = SocketAddrV4::new(args.addr, *port);
        millstream_net::open(&args.link, bind, &options)
            .with_context(|| format!("cannot open UDP port {port} on {}", args.link))
    };
    let ports: Vec<Port> = args.echo_port.iter().map(open).collect::<anyhow::Result<_>>()?;
    let locals: Vec<SocketAddrV4> = ports.iter().map(|port| port.local).collect();
    let end = args.duration.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    start::note_links();
    note(format_args!("ready: {}, echo on {}", args.link, locals.iter().join(", ")));
    let (outcomes, links) = std::thread::scope(|scope| {
        let echo = |port: Port| {
            std::thread::Builder::new()
                .name(format!("ms-echo-{}", port.local.port()))
                .spawn_scoped(scope, move || echo(port, end))
        };
        let threads: Vec<_> = ports.into_iter().map(echo).collect();
        // The link's counters exist as long as a port is open.
        while !is_over(end) {
            std::thread::sleep(LOOK_EVERY / 2);
        }
        let links = start::links();
        let ended = threads.into_iter().map(|thread| match thread?.join() {
            Ok(echoed) => echoed,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (ended.collect::<Vec<anyhow::Result<Echoed>>>(), links)
    });
    let echoed = outcomes.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    Ok(report(echoed, &links))
}

fn is_over(end: Option<Instant>) -> bool {
    interrupt::asked() || end.is_some_and(|end| Instant::now() >= end)
}

/// Returns the datagrams of one port. The port stays open a little longer than the others poll.
fn echo(port: Port, end: Option<Instant>) -> anyhow::Result<Echoed> {
    let Port { mut rx, mut tx, local } = port;
    let mut echoed = Echoed { local, datagrams: 0, bytes: 0, unsent: 0, error: None };
    let mut over = false;
    while !over {
        over = is_over(end);
        let count = rx
            .recv_batch(LOOK_EVERY * 2)
            .with_context(|| format!("cannot receive datagrams on UDP port {local}"))?;
        for index in 0..count {
            let datagram = rx.datagram(index);
            match tx.send(datagram.payload, datagram.source) {
                Ok(()) => {
                    echoed.datagrams += 1;
                    echoed.bytes += datagram.payload.len() as u64;
                }
                Err(error) => {
                    echoed.unsent += 1;
                    echoed.error = Some(error.to_string());
                }
            }
        }
    }
    Ok(echoed)
}

fn report(ports: Vec<Echoed>, links: &[LinkReport]) -> Report {
    let mut text = String::new();
    for port in &ports {
        let _ = write!(text, "{}: {} datagrams, {} bytes", port.local, port.datagrams, port.bytes);
        if let Some(error) = &port.error {
            let _ = write!(text, ", {} not sent back ({error})", port.unsent);
        }
        text.push('\n');
    }
    for link in links {
        let _ = writeln!(text, "{} ({})", link.info.name, link.info.detail);
        list(&mut text, "frames", link.link.named());
        list(&mut text, "packets", link.stack.named());
    }
    let links = links.iter().map(EchoLink::of).collect();
    Report::of(text, &EchoedDatagrams { ports, links })
}

/// Lists the counters that are not zero, below a heading: link and stack have some of one name.
fn list(text: &mut String, heading: &str, counters: impl Iterator<Item = (&'static str, u64)>) {
    let mut counters = counters.filter(|(_, count)| *count > 0).peekable();
    if counters.peek().is_some() {
        let _ = writeln!(text, "  {heading}");
    }
    for (name, count) in counters {
        let _ = writeln!(text, "    {name:<20} {count}");
    }
}

impl EchoLink {
    fn of(report: &LinkReport) -> Self {
        Self {
            name: report.info.name,
            interface: report.info.interface.clone(),
            mode: report.info.mode.name(),
            detail: report.info.detail.clone(),
            link: report.link.named().collect(),
            stack: report.stack.named().collect(),
            frames: report.census.total(),
            leaked_frames: report.leaked_frames,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_one_name_stand_below_different_headings() {
        let mut text = String::new();
        list(&mut text, "frames", [("rx_bytes", 325), ("rx_frames", 0)].into_iter());
        list(&mut text, "packets", [("rx_bytes", 3)].into_iter());
        list(&mut text, "nothing", [("rx_bytes", 0)].into_iter());
        let (first, second) = ("    rx_bytes             325\n", "    rx_bytes             3\n");
        assert_eq!(text, format!("  frames\n{first}  packets\n{second}"));
    }
}
