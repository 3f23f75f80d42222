//! `millstream-lab latency radio --compare`: the turnaround over several links, in turns in one
//! run.

use super::{Args, radio_options};
use crate::child_radio::{ChildRadio, ChildRadioOptions};
use crate::experiment::{Experiment, Unmeasured, in_rounds, report};
use crate::numbers::allowed_cpus;
use crate::output::Report;
use crate::table::Table;
use crate::{interrupt, network, program};
use anyhow::{Context, ensure};
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_measure::Measured;
use millstream_stats::{MedianEstimate, Pairs, Ratio, Summary, adjusted, chance};
use serde::Serialize;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;

/// A link to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ComparedLink {
    /// Kernel sockets; both sides sleep until a packet comes.
    Udp,
    /// Kernel sockets; both sides poll.
    UdpSpin,
    /// AF_XDP; both sides poll.
    Xdp,
    /// DPDK's vhost and virtio-user, without a kernel below; both sides poll.
    Vhost,
    /// DPDK's memif, without a kernel below; both sides poll.
    Memif,
}

/// The two ends of a link.
struct Ends {
    /// Link strings of the radio and of the host.
    links: [String; 2],
    /// Whether the link has addresses of its own.
    own_address: bool,
}

impl ComparedLink {
    fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp, both sides sleep",
            Self::UdpSpin => "udp, both sides poll",
            Self::Xdp => "xdp, both sides poll",
            Self::Vhost => "dpdk vhost, both sides poll",
            Self::Memif => "dpdk memif, both sides poll",
        }
    }

    /// `interfaces` and `own` are of the host and of the radio.
    fn ends(self, interfaces: [&str; 2], own: [Ipv4Addr; 2], folder: &Path) -> Ends {
        let folder = folder.display();
        // The host polls by an option of its own (--spin), which leaves other threads asleep.
        let memory = |radio: String, host: String| Ends {
            links: [
                format!(
                    "dpdk:{radio},address={}/24,udp_checksum=off,io=inline,user_wait=spin",
                    own[1]
                ),
                format!("dpdk:{host},address={}/24,udp_checksum=off,io=inline", own[0]),
            ],
            own_address: true,
        };
        let shared = |radio: &str, host: &str| Ends {
            links: [radio.to_owned(), host.to_owned()],
            own_address: false,
        };
        let [host, radio] = interfaces;
        match self {
            Self::Udp => shared("udp", "udp"),
            Self::UdpSpin => shared("udp:wait=spin", "udp"),
            Self::Xdp => shared(
                &format!("xdp:{radio},io=inline,user_wait=spin"),
                &format!("xdp:{host},io=inline"),
            ),
            Self::Vhost => memory(
                format!("vhost0,iface={folder}/vhost"),
                format!("virtio_user0,path={folder}/vhost"),
            ),
            // By a path: names without one belong to a network namespace.
            Self::Memif => memory(
                format!("memif0,role=server,socket={folder}/memif,socket-abstract=no"),
                format!("memif1,socket={folder}/memif,socket-abstract=no"),
            ),
        }
    }
}

/// The measurements of a link.
#[derive(Debug, Default, Serialize)]
struct Figures {
    /// Medians and 99th percentiles of the rounds, nanoseconds.
    medians_ns: Vec<f64>,
    p99_ns: Vec<f64>,
    /// The last failure.
    #[serde(skip)]
    failure: Option<String>,
}

/// Succeeds when each link was measured in each round.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let allowed: Vec<usize> = allowed_cpus()?.iter().collect();
    ensure!(
        allowed.len() > 1,
        "this process may use one CPU, and both sides need one each: allow it more (taskset)"
    );
    let cpus = [allowed[allowed.len() - 1], allowed[0]];
    let ground = TestNetwork::Private { mtu: 9000 };
    let bed = Testbed::set(&ground, cpus.map(Some), network::worker, interrupt::asked)?;
    let folder = tempfile::tempdir().context("cannot create a folder for the links' sockets")?;
    let own = bed.add_second_address()?;
    let all = args.compare.iter().map(|_| Figures::default()).collect();
    let mut links = Links { args, bed: &bed, own, cpus, folder: folder.path(), all };
    let cases: Vec<usize> = (0..args.compare.len()).collect();
    in_rounds(&mut links, &cases, args.repeats() as usize).whole()?;
    summed_up(args, &links.all)
}

/// The comparison of links, each by its position.
struct Links<'a> {
    args: &'a Args,
    bed: &'a Testbed,
    own: [Ipv4Addr; 2],
    cpus: [usize; 2],
    folder: &'a Path,
    all: Vec<Figures>,
}

impl Experiment for Links<'_> {
    type Case = usize;

    fn name(&self, at: &usize) -> String {
        self.args.compare[*at].name().to_owned()
    }

    fn step(&mut self, at: &usize, _: usize) -> Result<Vec<Measured>, Unmeasured> {
        let link = self.args.compare[*at];
        // A link that fails once may hold in the next round.
        match measure(self.args, link, self.bed, self.own, self.cpus, self.folder) {
            Ok([median, p99]) => {
                self.all[*at].medians_ns.push(median);
                self.all[*at].p99_ns.push(p99);
            }
            Err(error) => self.all[*at].failure = Some(format!("{error:#}")),
        }
        Ok(Vec::new())
    }
}

/// Measures a link once, with a radio and a host of its own: median and 99th percentile,
/// nanoseconds.
fn measure(
    args: &Args,
    link: ComparedLink,
    bed: &Testbed,
    own: [Ipv4Addr; 2],
    cpus: [usize; 2],
    folder: &Path,
) -> anyhow::Result<[f64; 2]> {
    let places = bed.places();
    let interface = |at: usize| places[at].interface.as_deref().unwrap_or_default();
    let ends = link.ends([interface(0), interface(1)], own, folder);
    let address = if ends.own_address { own[1] } else { places[1].address };
    let mut options = radio_options();
    options.args.extend(["--mtu".to_owned(), "9000".to_owned()]);
    options.args.extend(["--link".to_owned(), ends.links[0].clone()]);
    let enter = |command: &mut std::process::Command| bed.start_in(true, command);
    let options = ChildRadioOptions {
        addr: Some(address),
        cpu: Some(cpus[1]),
        prepare: Some(&enter),
        ..options
    };
    let radio = ChildRadio::start(&options)?;
    let mut host = program::command(["latency", "radio", "--json", "--leads", "0"])?;
    host.args(["--count", &args.count.to_string(), "--rate", &args.rate.to_string()])
        .args(["--rx-samples", &args.rx_samples.to_string()])
        .args(["--tx-samples", &args.tx_samples.to_string()])
        .args(["--interval", &args.interval.to_string()])
        .args(["--channel", &args.channel.to_string()])
        .args(["--duration", &args.duration.to_string()])
        .args(["--args", &format!("addr={address},link={}", ends.links[1])])
        .args((link != ComparedLink::Udp).then_some("--spin"))
        .stdin(Stdio::null());
    bed.start_in(false, &mut host)?;
    millstream_host::child::tie(&mut host, Some(cpus[0]));
    let output = host.output().context("cannot start the process of the host")?;
    drop(radio);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if let Some(error) = document["error"].as_str() {
        anyhow::bail!("{error}");
    }
    let figure = |name: &str| document["results"]["turnaround_s"][name].as_f64().map(|s| s * 1e9);
    let found = figure("median").zip(figure("p99"));
    let (median, p99) = found.with_context(|| {
        format!("the host ended early: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    Ok([median, p99])
}

fn summed_up(args: &Args, all: &[Figures]) -> anyhow::Result<Report> {
    let base = &all[0].medians_ns;
    let ps: Vec<f64> = all[1..].iter().map(|one| chance(base, &one.medians_ns)).collect();
    let ps = adjusted(&ps);
    let mut pairs = Pairs::default();
    let rows: Vec<Row> = args
        .compare
        .iter()
        .zip(all)
        .enumerate()
        .map(|(at, (link, one))| {
            let has = !one.medians_ns.is_empty() && !base.is_empty();
            Row {
                link: *link,
                median_ns: MedianEstimate::of(&one.medians_ns, 0.95),
                p99_ns: Summary::of(&one.p99_ns).map(|p99| p99.median),
                ratio: (at > 0 && has).then(|| pairs.ratio(base, &one.medians_ns)),
                p: (at > 0 && has).then(|| ps[at - 1]),
                rounds: one.medians_ns.len(),
                failure: one.failure.clone(),
            }
        })
        .collect();
    let us = |ns: f64| format!("{:.1} µs", ns / 1e3);
    let spread = |row: &Row| match row.median_ns.map(|one| (one.figure, one.interval)) {
        Some((figure, Some((low, high)))) => {
            format!("{} ({:.1} to {:.1})", us(figure), low / 1e3, high / 1e3)
        }
        Some((figure, None)) => us(figure),
        None => "-".to_owned(),
    };
    let table = Table::of(&rows)
        .left("link", |row| row.link.name().to_owned())
        .right("median", spread)
        .right("p99", |row| row.p99_ns.map_or_else(|| "-".to_owned(), us))
        .right("of the first", |row| row.ratio.map_or(String::new(), |ratio| ratio.to_string()))
        .right("p", |row| row.p.map_or(String::new(), |p| format!("{p:.3}")))
        .right("rounds", |row| row.rounds.to_string())
        .left("", |row| row.failure.as_ref().map_or(String::new(), |why| format!("failed: {why}")));
    let text = format!(
        "turnaround at {} MS/s through DDC and DUC, {} tries a round\n\n{}brackets: 95 % \
         intervals; p: that the medians do not differ, all links together (Holm)\n",
        args.rate / 1e6,
        args.count,
        table.text()
    );
    let failed: Vec<&str> =
        rows.iter().filter(|row| row.failure.is_some()).map(|row| row.link.name()).collect();
    let failure = (!failed.is_empty()).then(|| {
        format!("not measured in each round: {}; the table has the reason", failed.join("; "))
    });
    report(text, &Results { rows: &rows, rounds: all }, failure)
}

#[derive(Serialize)]
struct Results<'a> {
    rows: &'a [Row],
    rounds: &'a [Figures],
}

/// A row of the table.
#[derive(Serialize)]
struct Row {
    link: ComparedLink,
    median_ns: Option<MedianEstimate>,
    p99_ns: Option<f64>,
    ratio: Option<Ratio>,
    p: Option<f64>,
    rounds: usize,
    failure: Option<String>,
}
