//! Renewals against drawn devices, in virtual time.

use super::*;
use millstream_mpm::RpcKind;
use proptest::collection::vec;
use proptest::prelude::*;

const ADDRESS: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 49601);

fn renewal_of(next_id: u32, now: Duration) -> Renewal {
    let end = ClientEnd::new(RpcKind::Msgpack, ADDRESS);
    Renewal::new(end, ADDRESS, "token".into(), next_id, now)
}

/// The time after which a device drops a claim that nobody renews.
const DROPPED_AFTER: Duration = Duration::from_secs(5);

/// What happens to one call.
#[derive(Debug, Clone, PartialEq)]
enum Fate {
    /// It is answered after so long, in pieces of so many bytes, behind the answer of an older one.
    Answered {
        delay: Duration,
        piece: usize,
        behind_older: bool,
    },
    Refused,
    /// These bytes come.
    Nonsense(Vec<u8>),
    /// The connection breaks after so long; a new one opens after so long, if at all.
    Broken {
        after: Duration,
        opens: Option<Duration>,
    },
    /// It is answered at once; the connection breaks half a second later, with no call open.
    BrokenLater {
        opens: Option<Duration>,
    },
}

fn fate() -> impl Strategy<Value = Fate> {
    let millis = |most: u64| (0..most).prop_map(Duration::from_millis);
    let nonsense = prop_oneof![
        Just(vec![0xC0]),
        Just(vec![0x91; 200]),
        Just(vec![0xDD, 0xFF, 0xFF, 0xFF, 0xFF]),
        Just(vec![0x94, 0x00, 0x00, 0xC0, 0xC0]),
    ];
    prop_oneof![
        // Also later than the call waits.
        6 => (millis(3000), 1..40usize, any::<bool>()).prop_map(|(delay, piece, behind_older)| {
            Fate::Answered { delay, piece, behind_older }
        }),
        1 => Just(Fate::Refused),
        1 => nonsense.prop_map(Fate::Nonsense),
        2 => (millis(2000), proptest::option::of(millis(2000)))
            .prop_map(|(after, opens)| Fate::Broken { after, opens }),
        1 => proptest::option::of(millis(2000)).prop_map(|opens| Fate::BrokenLater { opens }),
    ]
}

/// How a claim ends by its calls' fates: the first one that the device refuses or that makes no
/// sense, the second of two that get no answer, and a connection that cannot be opened again. The
/// number of the call, and words of the reason.
fn expected(fates: &[Fate]) -> Option<(usize, &'static str)> {
    let unanswered = |fate: &Fate| match fate {
        Fate::Answered { delay, .. } => (*delay >= CALL_TIMEOUT).then_some("did not answer"),
        Fate::Broken { .. } => Some("broke"),
        _ => None,
    };
    (0..fates.len()).find_map(|at| {
        let before = at.checked_sub(1).and_then(|before| unanswered(&fates[before]));
        let why = match &fates[at] {
            Fate::Refused => Some("refused"),
            Fate::Nonsense(_) => Some("answered the call \"reclaim\" with"),
            Fate::Broken { opens: None, .. } | Fate::BrokenLater { opens: None } => Some("broke"),
            fate => unanswered(fate).filter(|_| before.is_some()),
        };
        why.map(|why| (at, why))
    })
}

fn response(id: u64, error: Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = Value::Array(vec![1.into(), id.into(), error, Value::Nil]);
    rmpv::encode::write_value(&mut bytes, &message).unwrap();
    bytes
}

/// An event on its way to the renewals.
#[derive(Debug)]
enum Coming {
    Bytes(Vec<u8>),
    Break,
    Opened(bool),
}

/// Plays the fates of the calls; returns the number of calls that the device got, and the reason
/// why the claim was lost.
fn play(fates: &[Fate]) -> (usize, Option<String>) {
    let mut now = Duration::ZERO;
    let mut renewal = renewal_of(7, now);
    let mut coming: Vec<(Duration, Coming)> = Vec::new();
    let (mut calls, mut last_call, mut opens) = (0, now, None);
    let mut ids = Vec::new();
    loop {
        let due = renewal.due().expect("it is not over");
        let next = coming.iter().map(|(at, _)| *at).min().filter(|at| *at < due);
        now = now.max(next.unwrap_or(due));
        let step = match next {
            None => renewal.at(now),
            Some(at) => {
                let index = coming.iter().position(|(when, _)| *when == at).unwrap();
                match coming.remove(index).1 {
                    Coming::Bytes(bytes) => renewal.received(&bytes, now),
                    Coming::Break => {
                        coming.clear();
                        renewal.broke(io::ErrorKind::ConnectionReset.into(), now)
                    }
                    Coming::Opened(is_open) => renewal.connected(is_open, now),
                }
            }
        };
        match step {
            None => {}
            Some(RenewalStep::Connect) => {
                let (is_open, delay) = (opens.is_some(), opens.unwrap_or_default());
                coming.push((now + delay, Coming::Opened(is_open)));
            }
            Some(RenewalStep::Lost(error)) => return (calls, Some(error.what())),
            Some(RenewalStep::Over) => unreachable!("nobody gave it back"),
            Some(RenewalStep::Send(bytes)) => {
                let call = rmpv::decode::read_value(&mut &bytes[..]).unwrap();
                assert_eq!(call[2], "reclaim".into());
                assert_eq!(call[3], Value::Array(vec!["token".into()]));
                let id = call[1].as_u64().unwrap();
                assert!(!ids.contains(&id), "each call has its own id");
                assert!(now - last_call < DROPPED_AFTER, "the device drops the claim");
                last_call = now;
                let Some(fate) = fates.get(calls) else { return (calls, None) };
                calls += 1;
                match fate {
                    Fate::Answered { delay, piece, behind_older } => {
                        let mut bytes = response(id, Value::Nil);
                        if *behind_older {
                            let older = ids.last().copied().unwrap_or(id + 100);
                            bytes = [response(older, "too late".into()), bytes].concat();
                        }
                        let pieces = bytes.chunks(*piece).map(<[u8]>::to_vec);
                        coming.extend(pieces.map(|piece| (now + *delay, Coming::Bytes(piece))));
                    }
                    Fate::Refused => {
                        let bytes = response(id, "no such token".into());
                        coming.push((now, Coming::Bytes(bytes)));
                    }
                    Fate::Nonsense(bytes) => coming.push((now, Coming::Bytes(bytes.clone()))),
                    Fate::BrokenLater { opens: again } => {
                        opens = *again;
                        coming.push((now, Coming::Bytes(response(id, Value::Nil))));
                        coming.push((now + RECLAIM_PERIOD / 2, Coming::Break));
                    }
                    Fate::Broken { after, opens: again } => {
                        opens = *again;
                        coming.push((now + *after, Coming::Break));
                    }
                }
                ids.push(id);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_claim_is_lost_exactly_when_its_calls_say_so(fates in vec(fate(), 0..16)) {
        let (calls, reason) = play(&fates);
        match expected(&fates) {
            None => prop_assert_eq!((calls, reason), (fates.len(), None)),
            Some((at, words)) => {
                let reason = reason.unwrap_or_default();
                prop_assert!(reason.contains(words), "{reason}");
                prop_assert_eq!(calls, at + 1);
            }
        }
    }

    #[test]
    fn no_bytes_do_any_harm(
        pieces in vec(vec(any::<u8>(), 0..20), 0..20),
        released in any::<bool>(),
    ) {
        let mut renewal = renewal_of(0, Duration::ZERO);
        let mut now = renewal.due().unwrap();
        prop_assert!(matches!(renewal.at(now), Some(RenewalStep::Send(_))));
        if released {
            prop_assert!(matches!(renewal.release(now), RenewalStep::Send(_)));
        }
        for piece in pieces {
            now += Duration::from_millis(1);
            let _ = renewal.received(&piece, now);
        }
        // Whatever came, it ends in time.
        let _ = renewal.release(now);
        let left = renewal.due().map_or(Duration::ZERO, |due| due - now);
        prop_assert!(left <= CALL_TIMEOUT);
        let _ = renewal.at(now + left);
        prop_assert_eq!(renewal.due(), None);
    }
}

#[test]
fn a_claim_is_given_back_once_and_only_while_there_is_a_connection() {
    let mut renewal = renewal_of(0, Duration::ZERO);
    let RenewalStep::Send(bytes) = renewal.release(Duration::ZERO) else { panic!("no call") };
    let call = rmpv::decode::read_value(&mut &bytes[..]).unwrap();
    assert_eq!(call[2], "unclaim".into());
    assert!(renewal.received(&response(9, Value::Nil), Duration::ZERO).is_none(), "another call's");
    let step = renewal.received(&response(0, Value::Nil), Duration::ZERO);
    assert!(matches!(step, Some(RenewalStep::Over)));
    assert!(renewal.due().is_none());

    let mut renewal = renewal_of(0, Duration::ZERO);
    let broke = renewal.broke(io::ErrorKind::ConnectionReset.into(), Duration::ZERO);
    assert!(matches!(broke, Some(RenewalStep::Connect)));
    assert!(matches!(renewal.release(Duration::ZERO), RenewalStep::Over));
    assert!(renewal.connected(true, Duration::ZERO).is_none());
}

#[test]
fn a_device_that_speaks_grpc_after_a_reboot_has_lost_the_claim() {
    let mut renewal = renewal_of(0, Duration::ZERO);
    let now = renewal.due().unwrap();
    assert!(matches!(renewal.at(now), Some(RenewalStep::Send(_))));
    let Some(RenewalStep::Connect) = renewal.broke(io::ErrorKind::ConnectionReset.into(), now)
    else {
        panic!("it connects again");
    };
    assert!(matches!(renewal.connected(true, now), Some(RenewalStep::Send(_))));
    // The start of a SETTINGS frame.
    let Some(RenewalStep::Lost(error)) = renewal.received(&[0, 0, 24, 4, 0], now) else {
        panic!("it is lost");
    };
    let text = error.to_string();
    assert!(text.contains("answered the call \"reclaim\" with gRPC in place"), "{text}");
}
