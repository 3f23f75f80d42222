//! Drawn losses at each hop, with counters that count late, wrap, begin anew or count others'
//! packets, and a kernel that names dropped packets or does not: no verdict that is sure is wrong,
//! and each lost packet is told once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_watch::{
    CaptureAccount, Certainty, DroppedPacket, Hop, HopReading, InterfaceReading, Judge, JudgedLoss,
    LossKind, LossSource, SocketReading, StackReading, ThreadReading, ThreadWait,
};
use millstream_wire::chdr::Width;
use millstream_wire::stream::{PACKETS_UNLIMITED, StatusRepr};
use proptest::prelude::*;

use crate::packets::{HOST, RADIO, SAMPLES, TICKS, data, packet, status, take};

const STEP_NS: u64 = 250_000;
const PACKETS: u64 = 3000;
const START_NS: u64 = 1_000_000_000_000;

/// What happens to some packets in a row.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    first: u64,
    packets: u64,
    /// Where they are lost; `None`: our capture misses them.
    hop: Option<Hop>,
}

/// What the host counts and says.
#[derive(Debug, Clone)]
struct Host {
    card_counts: bool,
    /// `rx_dropped` has what the backlog and the ring dropped, too.
    dropped_is_sum: bool,
    kernel_names: bool,
    /// Of the dropped packets so many in a hundred are named.
    named_percent: u64,
    /// The time between two readings.
    period_ns: u64,
    /// The counters' first value.
    begin: u64,
    /// All counters but the socket's begin anew at this packet.
    anew: Option<u64>,
    /// By how much the card counts late.
    lag_ns: u64,
    /// Each so-manyth packet comes twice, and so-manyth comes behind the next one.
    twice: u64,
    late: u64,
    /// Other traffic, dropped by this hop at each reading.
    others: Option<Hop>,
    jitter: Vec<u64>,
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let hop = prop_oneof![
        Just(Some(Hop::Wire)),
        Just(Some(Hop::Card)),
        Just(Some(Hop::Backlog)),
        Just(Some(Hop::Stack)),
        Just(Some(Hop::Socket)),
        Just(None),
    ];
    (20..PACKETS - 100, 1..20_u64, hop).prop_map(|(first, packets, hop)| Trouble {
        first,
        packets,
        hop,
    })
}

fn host() -> impl Strategy<Value = Host> {
    let others = proptest::option::weighted(
        0.3,
        prop_oneof![Just(Hop::Card), Just(Hop::Backlog), Just(Hop::Wire)],
    );
    let lag = prop_oneof![3 => Just(0), 1 => 0..2_000_000_000_u64];
    let order = (2..500_u64, 3..500_u64);
    let counters = (any::<bool>(), any::<bool>(), 20_000_000..50_000_000_u64, lag, order);
    let begins = (
        prop_oneof![Just(0), Just(u64::from(u32::MAX) - 5), any::<u32>().prop_map(u64::from)],
        proptest::option::weighted(0.2, 0..PACKETS),
    );
    let names = (any::<bool>(), prop_oneof![Just(100), 0..100_u64]);
    let jitter = proptest::collection::vec(0..5_000_000_u64, 16);
    (counters, begins, names, others, jitter).prop_map(
        |(counters, begins, names, others, jitter)| Host {
            card_counts: counters.0,
            dropped_is_sum: counters.1,
            period_ns: counters.2,
            lag_ns: counters.3,
            twice: counters.4.0,
            late: counters.4.1,
            begin: begins.0,
            // One that begins anew right before it wraps cannot be told.
            anew: begins.1.filter(|_| begins.0 < u64::from(u32::MAX) - (1 << 20)),
            kernel_names: names.0,
            named_percent: names.1,
            others,
            jitter,
        },
    )
}

/// How many packets each hop has dropped: of this flow and of others.
#[derive(Debug, Clone, Default)]
struct Dropped {
    counts: HashMap<Hop, u64>,
    capture_missed: u64,
    /// What the card dropped, by the time.
    card: Vec<(u64, u64)>,
}

impl Dropped {
    fn add(&mut self, hop: Hop, packets: u64, at_ns: u64) {
        *self.counts.entry(hop).or_default() += packets;
        if hop == Hop::Card {
            self.card.push((at_ns, self.counts[&hop]));
        }
    }

    fn reading(&self, host: &Host, at_ns: u64, is_anew: bool) -> HopReading {
        let begin = if is_anew { 0 } else { host.begin };
        let count = |hop| self.counts.get(&hop).copied().unwrap_or(0);
        // The kernel shows some counters with 32 bits.
        let wrapped = |value: u64| (begin + value) & u64::from(u32::MAX);
        let seen = self.card.partition_point(|one| one.0 + host.lag_ns <= at_ns);
        let ring = seen.checked_sub(1).map_or(0, |last| self.card[last].1);
        let backlog = count(Hop::Backlog);
        let sum = if host.dropped_is_sum { ring + backlog } else { 0 };
        HopReading {
            at_ns,
            capture_missed: self.capture_missed,
            interfaces: vec![InterfaceReading {
                name: "eth0".into(),
                ring_full: host.card_counts.then(|| wrapped(ring)),
                damaged: Some(0),
                receive_dropped: Some(wrapped(sum)),
                ..InterfaceReading::default()
            }],
            backlog_dropped: Some(wrapped(backlog)),
            stack: StackReading::default(),
            sockets: vec![SocketReading {
                local: HOST,
                remote: None,
                inode: 77,
                pid: Some(5),
                queued_bytes: 0,
                buffer_bytes: 212_992,
                send_queued_bytes: 0,
                dropped: count(Hop::Socket),
            }],
            ..HopReading::default()
        }
    }
}

static SURE: AtomicU64 = AtomicU64::new(0);
static ALL: AtomicU64 = AtomicU64::new(0);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_verdict_that_is_sure_is_wrong(
        troubles in proptest::collection::vec(trouble(), 0..8),
        host in host(),
        begin in any::<u16>(),
    ) {
        let mut truth: Vec<Option<Option<Hop>>> = vec![None; PACKETS as usize];
        for one in &troubles {
            for packet in one.first..one.first + one.packets {
                truth[packet as usize] = Some(one.hop);
            }
        }
        let (mut account, mut judge) = (CaptureAccount::new(), Judge::new());
        let report = StatusRepr { capacity_bytes: 1 << 20, capacity_packets: PACKETS_UNLIMITED,
            count_packets: begin.into(), ..StatusRepr::default() };
        take(&mut account, START_NS, &packet(HOST, RADIO, &status(Width::W64, report)));
        let mut dropped = Dropped::default();
        let (mut readings, mut next_ns, mut judged) = (0, START_NS, Vec::new());
        let mut late: Option<Vec<u8>> = None;
        let end = PACKETS + 4_000_000_000 / STEP_NS;
        for n in 0..end {
            let at_ns = START_NS + n * STEP_NS;
            if at_ns >= next_ns {
                if readings % 3 == 2 {
                    // Others lose many packets at once: never just as many as this flow.
                    if let Some(hop) = host.others {
                        dropped.add(hop, 1000 + readings, at_ns);
                    }
                }
                let is_anew = host.anew.is_some_and(|anew| n >= anew);
                judge.reading(dropped.reading(&host, at_ns, is_anew));
                judged.extend(judge.settle(&account, at_ns));
                next_ns = at_ns + host.period_ns + host.jitter[readings as usize % 16];
                readings += 1;
            }
            if n >= PACKETS {
                continue;
            }
            let seq = begin.wrapping_add(n as u16);
            let bytes = data(Width::W64, seq, n * SAMPLES * TICKS);
            let fate = truth[n as usize];
            let comes = !matches!(fate, Some(None | Some(Hop::Wire | Hop::Card | Hop::Backlog)));
            let behind = late.take();
            if comes && n > 20 && n % host.late == 0 && n + 1 < PACKETS {
                late = Some(bytes.clone());
            } else if comes {
                let times = if n > 20 && n % host.twice == 0 { 2 } else { 1 };
                (0..times).for_each(|_| take(&mut account, at_ns, &packet(RADIO, HOST, &bytes)));
            }
            if let Some(bytes) = behind {
                take(&mut account, at_ns, &packet(RADIO, HOST, &bytes));
            }
            match fate {
                Some(None) => dropped.capture_missed += 1,
                Some(Some(hop)) => dropped.add(hop, 1, at_ns),
                None => {}
            }
            let reason = match fate.flatten() {
                Some(Hop::Backlog) => "CPU_BACKLOG",
                Some(Hop::Stack) => "NETFILTER_DROP",
                Some(Hop::Socket) => "SOCKET_RCVBUFF",
                _ => continue,
            };
            if host.kernel_names && n * 37 % 100 < host.named_percent {
                judge.dropped(DroppedPacket {
                    at_ns,
                    reason: reason.into(),
                    namespace: None,
                    segments: 1,
                    source: RADIO,
                    destination: HOST,
                    header: bytes.first_chunk().copied(),
                });
            }
        }
        judged.extend(judge.finish(&account));
        check(&account, &judged, &truth, begin, &host)?;
    }
}

/// Returns a number of a recording that anybody may have written.
fn number() -> impl Strategy<Value = u64> {
    let edges = [0, 1, u64::from(u32::MAX), 1 << 63, u64::MAX - 1, u64::MAX];
    prop_oneof![proptest::sample::select(edges.to_vec()), any::<u64>(), 0..5_000_000_000_u64]
}

proptest! {
    #[test]
    fn any_recording_is_judged(
        numbers in proptest::collection::vec(number(), 20..400),
        packets in proptest::collection::vec((number(), any::<u16>(), any::<bool>()), 0..60),
    ) {
        let (mut account, mut judge) = (CaptureAccount::new(), Judge::new());
        let report = StatusRepr::default();
        take(&mut account, 0, &packet(HOST, RADIO, &status(Width::W64, report)));
        for (at_ns, seq, is_sent) in packets {
            let (source, destination) = if is_sent { (HOST, RADIO) } else { (RADIO, HOST) };
            let bytes = packet(source, destination, &data(Width::W64, seq, u64::from(seq) * 9));
            take(&mut account, at_ns, &bytes);
        }
        for some in numbers.chunks_exact(10) {
            let (n, small) = (|n: usize| some[n], |n: usize| some[n] as u32);
            let socket = SocketReading {
                local: HOST,
                remote: None,
                inode: n(0) % 3,
                pid: Some(small(1) % 3),
                queued_bytes: n(2),
                buffer_bytes: n(3),
                send_queued_bytes: n(4),
                dropped: n(5),
            };
            let thread = ThreadReading {
                pid: small(1) % 3,
                tid: small(2) % 3,
                name: String::new(),
                cpu: small(3),
                state: if n(4) % 2 == 0 { 'S' } else { 'D' },
                cpu_ns: n(5),
                run_delay_ns: Some(n(6)),
                major_faults: n(7),
                migrations: Some(n(8)),
                reads: Some(n(0) % 3),
            };
            judge.reading(HopReading {
                at_ns: n(9),
                namespace: None,
                capture_missed: n(8) % 2 * n(7),
                interfaces: vec![InterfaceReading {
                    name: "eth0".into(),
                    ring_full: Some(n(0)),
                    damaged: Some(n(1)),
                    receive_dropped: Some(n(2)),
                    send_dropped: Some(n(3)),
                    queue_dropped: Some(n(4)),
                    ring_entries: Some((small(5), small(6))),
                }],
                backlog_dropped: Some(n(5)),
                stack: StackReading { send_dropped: Some(n(6)), ..StackReading::default() },
                sockets: vec![socket],
                threads: vec![thread],
                stolen_ns: Some(n(7)),
            });
            let reason = ["SOCKET_RCVBUFF", "CPU_BACKLOG", "NO_SOCKET", ""][n(1) as usize % 4];
            judge.dropped(DroppedPacket {
                at_ns: n(2),
                reason: reason.into(),
                namespace: None,
                segments: small(3),
                source: RADIO,
                destination: HOST,
                header: data(Width::W64, n(4) as u16, 0).first_chunk().copied(),
            });
            let (tid, cpu) = (small(2) % 3, small(6));
            judge.wait(ThreadWait { tid, from_ns: n(7), until_ns: n(8), cpu, instead: None });
            judge.settle(&account, n(9));
        }
        judge.finish(&account);
    }
}

fn check(
    account: &CaptureAccount,
    judged: &[JudgedLoss],
    truth: &[Option<Option<Hop>>],
    begin: u16,
    host: &Host,
) -> Result<(), TestCaseError> {
    let lost_at = |hop: Hop| truth.iter().filter(|one| **one == Some(Some(hop))).count() as u64;
    let mut by_gap: HashMap<(u64, Hop), u64> = HashMap::new();
    let (mut sockets, mut gaps) = (0, 0);
    for loss in judged {
        ALL.fetch_add(1, Ordering::Relaxed);
        let (verdict, is_sure) = (&loss.verdict, loss.verdict.certainty == Certainty::Sure);
        SURE.fetch_add(u64::from(is_sure), Ordering::Relaxed);
        prop_assert!(verdict.hop <= verdict.until && !verdict.evidence.is_empty());
        prop_assert_eq!(loss.samples, Some(loss.packets * SAMPLES));
        match loss.source {
            LossSource::Gap(number) => {
                gaps += loss.packets;
                let gap = account.gap(number).unwrap();
                let first = u64::from((gap.first as u16).wrapping_sub(begin)) as usize;
                let within = &truth[first..first + gap.numbers as usize];
                let at = |hop| within.iter().filter(|one| **one == Some(Some(hop))).count();
                if is_sure {
                    *by_gap.entry((number, verdict.hop)).or_default() += loss.packets;
                    let sum = by_gap[&(number, verdict.hop)];
                    prop_assert!(sum <= at(verdict.hop) as u64, "{loss:?}: {within:?}");
                }
                if verdict.certainty == Certainty::Between && loss.kind == LossKind::Lost {
                    let hops = within.iter().flatten().flatten();
                    let is_within =
                        hops.clone().any(|hop| (verdict.hop..=verdict.until).contains(hop));
                    prop_assert!(is_within || hops.count() == 0, "{loss:?}: {within:?}");
                }
            }
            LossSource::Dropped | LossSource::Counter => {
                prop_assert!(is_sure);
                sockets += if verdict.hop == Hop::Socket { loss.packets } else { 0 };
            }
            LossSource::Message(_) => prop_assert!(false, "nobody sent one"),
        }
    }
    prop_assert_eq!(gaps, account.flows()[0].lost_before());
    prop_assert_eq!(sockets, lost_at(Hop::Socket));
    let sum = |hop| -> u64 {
        let sure = judged.iter().filter(|loss| loss.verdict.certainty == Certainty::Sure);
        sure.filter(|loss| loss.verdict.hop == hop).map(|loss| loss.packets).sum()
    };
    // What only the kernel's words show.
    if host.kernel_names && host.named_percent == 100 {
        prop_assert_eq!(sum(Hop::Stack), lost_at(Hop::Stack));
        prop_assert_eq!(sum(Hop::Backlog), lost_at(Hop::Backlog));
    }
    let (sure, all) = (SURE.load(Ordering::Relaxed), ALL.load(Ordering::Relaxed));
    if all / 1000 > (all - judged.len() as u64) / 1000 {
        println!("{sure} of {all} verdicts are sure");
    }
    Ok(())
}
