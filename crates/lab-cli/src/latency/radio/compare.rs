//! `millstream-lab latency radio --compare`: the turnaround over several links, in turns in one
//! run.

use super::{Args, radio_options};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::numbers::allowed_cpus;
use crate::output::Report;
use crate::table::Table;
use crate::{interrupt, network};
use anyhow::{Context, ensure};
use millstream_lab::CaseRuns;
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_stats::{MedianEstimate, Pairs, Ratio, Summary, adjusted, chance};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::Path;

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
    /// Link strings of the host and of the radio.
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
                format!("dpdk:{host},address={}/24,udp_checksum=off,io=inline", own[0]),
                format!(
                    "dpdk:{radio},address={}/24,udp_checksum=off,io=inline,user_wait=spin",
                    own[1]
                ),
            ],
            own_address: true,
        };
        let shared = |radio: &str, host: &str| Ends {
            links: [host.to_owned(), radio.to_owned()],
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

crate::results! {
    /// With `--compare`: the turnaround over each link.
    struct ComparedLinks<'a> {
        /// Each link, beside the first.
        rows: &'a [ComparedRow],
        /// The figures of each link's rounds.
        rounds: &'a [RoundFigures],
    }

    /// A link.
    struct ComparedRow {
        /// The link.
        link: ComparedLink,
        /// The median of the rounds' medians, nanoseconds.
        median_ns: Option<MedianEstimate>,
        /// The median of their 99th percentiles, nanoseconds.
        p99_ns: Option<f64>,
        /// Median over that of the first link.
        ratio: Option<Ratio>,
        /// The probability that both have the same median, all links together (Holm).
        p: Option<f64>,
        /// Rounds that were measured.
        rounds: usize,
        /// The last failure.
        failure: Option<String>,
    }

    /// The rounds of a link.
    struct RoundFigures {
        /// Their medians, nanoseconds.
        medians_ns: Vec<f64>,
        /// Their 99th percentiles, nanoseconds.
        p99_ns: Vec<f64>,
    }
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
    let mut links = Links { args, bed: &bed, own, folder: folder.path() };
    let all = in_rounds(&mut links, &args.compare, args.repeats() as usize).whole()?;
    Ok(summed_up(args, &all.cases))
}

/// The comparison of links. One that fails once may hold in the next round.
struct Links<'a> {
    args: &'a Args,
    bed: &'a Testbed,
    own: [Ipv4Addr; 2],
    folder: &'a Path,
}

impl Experiment for Links<'_> {
    type Case = ComparedLink;
    type Outcome = anyhow::Result<[f64; 2]>;

    fn name(&self, link: &ComparedLink) -> String {
        link.name().to_owned()
    }

    fn step(&mut self, link: &ComparedLink, _: usize) -> Result<Self::Outcome, Unmeasured> {
        let Self { args, bed, own, folder } = *self;
        Ok(measure(args, *link, bed, own, folder))
    }
}

/// Measures a link once, with a radio and a host of its own: median and 99th percentile,
/// nanoseconds.
fn measure(
    args: &Args,
    link: ComparedLink,
    bed: &Testbed,
    own: [Ipv4Addr; 2],
    folder: &Path,
) -> anyhow::Result<[f64; 2]> {
    let places = bed.places();
    let interface = |at: usize| places[at].interface.as_deref().unwrap_or_default();
    let ends = link.ends([interface(0), interface(1)], own, folder);
    let address = if ends.own_address { own[1] } else { places[1].address };
    let options = [
        ("--leads", "0".to_owned()),
        ("--count", args.count.to_string()),
        ("--rate", args.rate.to_string()),
        ("--rx-samples", args.rx_samples.to_string()),
        ("--tx-samples", args.tx_samples.to_string()),
        ("--interval", args.interval.to_string()),
        ("--channel", args.channel.to_string()),
        ("--duration", args.duration.to_string()),
    ];
    let spin = (link != ComparedLink::Udp).then_some("--spin");
    let verb = ["latency", "radio"].into_iter().chain(spin).map(str::to_owned);
    let options = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    let words: Vec<_> = verb.chain(options).collect();
    let document = network::against_radio(bed, radio_options(), address, &ends.links, &words)?;
    if let Some(error) = document["error"].as_str() {
        anyhow::bail!("{error}");
    }
    let figure = |name: &str| document["results"]["turnaround_s"][name].as_f64().map(|s| s * 1e9);
    let found = figure("median").zip(figure("p99"));
    let (median, p99) = found.context("the host printed no turnaround")?;
    Ok([median, p99])
}

fn summed_up(args: &Args, all: &[CaseRuns<anyhow::Result<[f64; 2]>>]) -> Report {
    let figures = |runs: &CaseRuns<anyhow::Result<[f64; 2]>>, at: usize| -> Vec<f64> {
        runs.outcomes().flatten().map(|figures| figures[at]).collect()
    };
    let rounds = all.iter();
    let rounds =
        rounds.map(|runs| RoundFigures { medians_ns: figures(runs, 0), p99_ns: figures(runs, 1) });
    let rounds: Vec<_> = rounds.collect();
    let base = &rounds[0].medians_ns;
    let ps: Vec<f64> = rounds[1..].iter().map(|one| chance(base, &one.medians_ns)).collect();
    let ps = adjusted(&ps);
    let mut pairs = Pairs::default();
    let each = args.compare.iter().zip(&rounds).zip(all).enumerate();
    let rows = each.map(|(at, ((link, one), runs))| {
        let has = at > 0 && !one.medians_ns.is_empty() && !base.is_empty();
        let mut failed = runs.outcomes().filter_map(|found| found.as_ref().err());
        ComparedRow {
            link: *link,
            median_ns: MedianEstimate::of(&one.medians_ns, 0.95),
            p99_ns: Summary::of(&one.p99_ns).map(|p99| p99.median),
            ratio: has.then(|| pairs.ratio(base, &one.medians_ns)),
            p: has.then(|| ps[at - 1]),
            rounds: one.medians_ns.len(),
            failure: failed.next_back().map(|error| format!("{error:#}")),
        }
    });
    let rows: Vec<_> = rows.collect();
    let us = |ns: f64| format!("{:.1} µs", ns / 1e3);
    let spread = |row: &ComparedRow| match row.median_ns.map(|one| (one.figure, one.interval)) {
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
    Report::of(text, &ComparedLinks { rows: &rows, rounds: &rounds }).failing(failure)
}
