//! Chooses the safest link that meets a need, by measurements of this machine.
//!
//! Kernel sockets need no rights and disturb no other program; AF_PACKET needs rights; AF_XDP also
//! attaches a program to the interface. The links are tried in that order, and the first that meets
//! the need is chosen.

use millstream_link::Spec;
use millstream_link::registry::has_option;
use serde::Serialize;

use crate::packets::measure::{How, measure};
use crate::packets::round_trips::{PATIENCE, Round, trip};
use crate::packets::rows::{Half, PathRow};
use crate::packets::{Carriage, PacketWait, Span, StageError, Testbed, Workload};
use millstream_stats::{Histogram, Summary};

/// A measured rate must exceed the need by this factor, because a machine's rate varies.
const HEADROOM: f64 = 1.25;

/// The requirements on a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// Bytes of a packet as an Ethernet frame.
    pub frame_bytes: usize,
    /// Packets per second.
    pub rate_pps: Option<f64>,
    /// Largest 99th percentile of round trips, microseconds.
    pub latency_max_us: Option<f64>,
}

/// The measurement of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredLink {
    /// Its link string, without an interface.
    pub link: String,
    /// Packets per second received, the median of all repetitions.
    pub rate_pps: f64,
    /// 99th percentile of round trips, microseconds.
    pub p99_us: f64,
    /// The reason why it could not be measured.
    pub refused: Option<String>,
}

/// A recommendation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recommended {
    /// The link string, without an interface.
    pub link: String,
    /// Whether it meets the need.
    pub meets: bool,
    /// The reason, in one line.
    pub reason: String,
}

/// The links, the safest first.
pub const LINKS: [&str; 4] = ["udp", "packet", "xdp:mode=generic", "xdp:mode=native"];

/// The same where a wake-up takes too long: the only user of the link spins on a core of its own.
pub const SPINNING: [&str; 4] = [
    "udp:wait=spin",
    "packet:io=inline,user_wait=spin",
    "xdp:mode=generic,io=inline,user_wait=spin",
    "xdp:mode=native,io=inline,user_wait=spin",
];

/// Chooses among candidates, the safest first. `None` when none was measured.
#[must_use]
pub fn recommend(need: &Need, candidates: &[MeasuredLink]) -> Option<Recommended> {
    let measured: Vec<_> = candidates.iter().filter(|one| one.refused.is_none()).collect();
    let fast = |one: &MeasuredLink| need.rate_pps.is_none_or(|pps| one.rate_pps >= pps * HEADROOM);
    let prompt = |one: &MeasuredLink| need.latency_max_us.is_none_or(|us| one.p99_us <= us);
    if let Some(at) = measured.iter().position(|one| fast(one) && prompt(one)) {
        let one = measured[at];
        let passed: Vec<_> = measured[..at].iter().map(|one| one.link.as_str()).collect();
        let unmet = match passed.join(", ") {
            passed if passed.is_empty() => String::new(),
            passed => format!("; not enough: {passed}"),
        };
        let wanted = match (need.rate_pps, need.latency_max_us) {
            (None, None) => "no further limit was given".to_owned(),
            _ => format!("{} where {} wanted", figures(one), need.words()),
        };
        let reason = format!("the safest link that is good enough: {wanted}{unmet}");
        return Some(Recommended { link: one.link.clone(), meets: true, reason });
    }
    // The rate decides first: a rate that is not met loses samples.
    let best = measured.into_iter().max_by(|a, b| {
        let by_rate = a.rate_pps.total_cmp(&b.rate_pps);
        let by_latency = b.p99_us.total_cmp(&a.p99_us);
        if need.rate_pps.is_some() && !(fast(a) && fast(b)) {
            by_rate.then(by_latency)
        } else {
            by_latency.then(by_rate)
        }
    })?;
    let reason = format!(
        "NO link is good enough; the nearest: {} where {} wanted",
        figures(best),
        need.words()
    );
    Some(Recommended { link: best.link.clone(), meets: false, reason })
}

fn figures(one: &MeasuredLink) -> String {
    format!("{:.0} thousand packets/s, p99 of round trips {:.0} µs", one.rate_pps / 1e3, one.p99_us)
}

impl Need {
    fn words(&self) -> String {
        let rate = self
            .rate_pps
            .map(|pps| format!("{:.0} thousand packets/s and a quarter more", pps / 1e3));
        let latency = self.latency_max_us.map(|us| format!("{us:.0} µs"));
        let both: Vec<_> = rate.into_iter().chain(latency).collect();
        format!("{} {}", both.join(" and "), if both.len() > 1 { "were" } else { "was" })
    }
}

/// The option of links that send trains.
const TRAINS: &str = "gso";

/// Measures a link as applications use it: ports on both sides; the kernel's port sends single
/// datagrams, as radios do, not trains.
///
/// # Errors
/// [`StageError`] other than a refusal, which the candidate holds.
pub fn measure_link(
    stage: &mut Testbed,
    link: &str,
    need: &Need,
    span: Span,
    repeat: usize,
    fifo: Option<u32>,
) -> Result<MeasuredLink, StageError> {
    let row = row(link);
    let frame_bytes = need.frame_bytes;
    let (rate_pps, load_pps, patience) = (None, None, PATIENCE);
    let (workload, batch_max, trace) = (Workload::Drop, usize::MAX, false);
    let how = How { workload, frame_bytes, span, rate_pps, batch_max, stamped: false, trace, fifo };
    let round = Round { frame_bytes, count: 1000, rate_pps, load_pps, fifo, patience };
    let (mut rates, mut trips) = (Vec::new(), Histogram::default());
    let mut once = || -> Result<(), StageError> {
        rates.push(measure(stage, &row, &how)?.rate_pps);
        trips.merge(&trip(stage, &row, &round, None)?.from_due);
        Ok(())
    };
    let refused = match (0..repeat.max(1)).try_for_each(|_| once()) {
        Ok(()) => None,
        Err(StageError::Refused(reason)) => Some(reason),
        Err(error) => return Err(error),
    };
    Ok(MeasuredLink {
        link: link.to_owned(),
        rate_pps: Summary::of(&rates).map_or(0.0, |rate| rate.median),
        p99_us: trips.quantile_ns(0.99) as f64 / 1e3,
        refused,
    })
}

fn row(link: &str) -> PathRow {
    let half = |link: &str| Half::new(Carriage::Port, link, PacketWait::Block);
    let sender = match Spec::parse(link) {
        Ok(mut spec) if has_option(link, TRAINS) => {
            spec.options.insert(0, (TRAINS.to_owned(), "off".to_owned()));
            spec.to_string()
        }
        _ => link.to_owned(),
    };
    PathRow { name: link.to_owned(), active: half(&sender), passive: half(link) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<MeasuredLink> {
        let one = |link: &str, kpps: f64, p99_us| MeasuredLink {
            link: link.to_owned(),
            rate_pps: kpps * 1e3,
            p99_us,
            refused: None,
        };
        vec![
            one("udp", 400.0, 30.0),
            one("packet", 600.0, 60.0),
            one("xdp:mode=generic", 700.0, 20.0),
            one("xdp:mode=native", 900.0, 9.0),
        ]
    }

    #[test]
    fn the_safest_that_meets_the_need_is_chosen() {
        for (kpps, latency_max_us, link, meets) in [
            (None, None, "udp", true),
            (Some(300.0), None, "udp", true),
            (Some(320.0), Some(30.0), "udp", true),
            (Some(390.0), None, "packet", true),
            (Some(390.0), Some(25.0), "xdp:mode=generic", true),
            (None, Some(25.0), "xdp:mode=generic", true),
            (None, Some(10.0), "xdp:mode=native", true),
            (Some(720.0), None, "xdp:mode=native", true),
            (Some(5000.0), None, "xdp:mode=native", false),
            (None, Some(1.0), "xdp:mode=native", false),
            (Some(100.0), Some(1.0), "xdp:mode=native", false),
        ] {
            let rate_pps = kpps.map(|kpps| kpps * 1e3);
            let need = Need { frame_bytes: 1514, rate_pps, latency_max_us };
            let found = recommend(&need, &candidates()).unwrap();
            assert_eq!((found.link.as_str(), found.meets), (link, meets), "{need:?}");
        }
    }

    #[test]
    fn the_reason_says_what_was_passed_over_and_what_falls_short() {
        let need = Need { frame_bytes: 64, rate_pps: Some(390e3), latency_max_us: Some(25.0) };
        let reason = recommend(&need, &candidates()).unwrap().reason;
        let expected = "the safest link that is good enough: 700 thousand packets/s, p99 of round \
                        trips 20 µs where 390 thousand packets/s and a quarter more and 25 µs \
                        were wanted; not enough: udp, packet";
        assert_eq!(reason, expected);
        let need = Need { rate_pps: Some(1e9), ..need };
        assert!(recommend(&need, &candidates()).unwrap().reason.starts_with("NO link is good"));
    }

    #[test]
    fn kernel_sockets_send_single_datagrams() {
        for (link, sender) in [
            ("udp", "udp:gso=off"),
            ("udp:wait=spin", "udp:gso=off,wait=spin"),
            ("xdp:mode=native", "xdp:mode=native"),
        ] {
            let row = row(link);
            assert_eq!((&*row.active.link, &*row.passive.link), (sender, link));
        }
    }

    #[test]
    fn what_could_not_be_measured_is_not_chosen() {
        let mut candidates = candidates();
        candidates[0].refused = Some("gone".to_owned());
        let need = Need { frame_bytes: 64, rate_pps: None, latency_max_us: None };
        assert_eq!(recommend(&need, &candidates).unwrap().link, "packet");
        candidates.iter_mut().for_each(|one| one.refused = Some("gone".to_owned()));
        assert_eq!(recommend(&need, &candidates), None);
    }
}
