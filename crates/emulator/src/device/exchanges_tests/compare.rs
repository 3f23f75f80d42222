//! The comparison of an answer with the recorded one.

use super::replay::{TimedAnswer, heard};
use crate::antenna::Sc16;
use crate::tx_out::{PlayedSamples, PlayedStretch};
use millstream_dsp::chunks::Chunks;
use millstream_wire::chdr::{DataRepr, Packet, PacketType, Width};
use millstream_wire::ctrl::CtrlRepr;
use millstream_wire::stream::{StatusRepr, StreamCondition};
use serde_json::Value;

/// What of the stream statuses of a file the logic determines alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    /// All but `buffer`.
    Exact,
    /// Their counts within a packet of this many bytes, and neither `buffer` nor their information
    /// about numbers.
    WithinPacket(u64),
    /// Only that they come.
    Free,
    /// All. But acknowledgements of different blocks come in any order, and their numbers with it.
    Interleaved,
}

/// The most ticks by which absolute times differ.
const TICKS: u64 = 150;

/// Ticks from the time of a sample to that when the radio emits it.
const EMISSION_TICKS: u64 = 2;

/// The answers that come in order: by socket, kind and destination.
pub type AnswerGroup = (Option<u64>, &'static str, u64);

/// Returns the group of an answer, by its header: a few are no whole packets.
pub fn group(answer: &TimedAnswer, statuses: Statuses) -> AnswerGroup {
    let bytes = &answer.bytes;
    let kind = match bytes[6] >> 5 {
        0 => "management",
        1 => "statuses",
        2 => "commands",
        4 if bytes[11] >> 7 != 0 => "acknowledgements",
        4 => "requests",
        _ => "data",
    };
    let dst_epid = u64::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    // The ports of control packets are in the first three bytes.
    let blocks = kind == "acknowledgements" && statuses == Statuses::Interleaved;
    let ports =
        if blocks { u64::from(bytes[9]) << 16 | u64::from(bytes[10] & 15) << 24 } else { 0 };
    (answer.socket, kind, dst_epid | ports)
}

/// Returns in what an answer differs from the recorded one.
pub fn difference(want: &TimedAnswer, have: &TimedAnswer, statuses: Statuses) -> Option<String> {
    let bytes = || format!("{:02x?} != {:02x?}", have.bytes, want.bytes);
    let parse = |answer| Packet::parse(answer, Width::W64);
    let (Ok(first), Ok(second)) = (parse(&want.bytes), parse(&have.bytes)) else {
        return (want.bytes != have.bytes).then(bytes);
    };
    let packets = (first, second);
    let same = match packets.0.kind() {
        PacketType::Control => {
            let of = |packet| CtrlRepr::parse(packet).unwrap();
            let requests = (of(&packets.0), of(&packets.1));
            let lengths = want.bytes.len() == have.bytes.len();
            return (!lengths || !same_control(&requests.0, &requests.1, statuses)).then(|| {
                format!(
                    "{} ({}) != {} ({})",
                    requests.1,
                    have.bytes.len(),
                    requests.0,
                    want.bytes.len()
                )
            });
        }
        PacketType::StreamStatus => {
            let of = |packet| StatusRepr::parse(packet).unwrap();
            let (want, have) = (of(&packets.0), of(&packets.1));
            return (!same_status(&want, &have, statuses)).then(|| format!("{have:?} != {want:?}"));
        }
        PacketType::Data | PacketType::TimedData => return data_difference(&packets.0, &packets.1),
        PacketType::Management | PacketType::StreamCommand => want.bytes == have.bytes,
    };
    (!same).then(bytes)
}

fn same_control(want: &CtrlRepr, have: &CtrlRepr, statuses: Statuses) -> bool {
    let seq = if statuses == Statuses::Interleaved { want.seq } else { have.seq };
    // The time registers of the radio.
    let time = want.is_ack && want.src_port == 4 && matches!(want.address, 4 | 8);
    let near = match (want.timestamp, have.timestamp) {
        (Some(want), Some(have)) => want.abs_diff(have) <= TICKS,
        (want, have) => want == have,
    };
    let data = if time { want.data } else { have.data };
    near && *want == CtrlRepr { seq, timestamp: want.timestamp, data, ..*have }
}

fn same_status(want: &StatusRepr, have: &StatusRepr, statuses: Statuses) -> bool {
    let have = StatusRepr { buffer_info: want.buffer_info, ..*have };
    match statuses {
        Statuses::Exact | Statuses::Interleaved => *want == have,
        Statuses::WithinPacket(bytes) => {
            let near = want.count_bytes.abs_diff(have.count_bytes) <= bytes
                && want.count_packets.abs_diff(have.count_packets) <= 1;
            let (count_bytes, count_packets) = (want.count_bytes, want.count_packets);
            let both_ok = want.status == StreamCondition::Ok && have.status == StreamCondition::Ok;
            let error_info = if both_ok { want.error_info } else { have.error_info };
            near && *want == StatusRepr { count_bytes, count_packets, error_info, ..have }
        }
        Statuses::Free => want.status == have.status && want.seq == have.seq,
    }
}

fn data_difference(want: &Packet<'_>, have: &Packet<'_>) -> Option<String> {
    let of = |packet| DataRepr::parse(packet).unwrap();
    let (w, h) = (of(want), of(have));
    let near = match (w.timestamp, h.timestamp) {
        (Some(want), Some(have)) => want.abs_diff(have) <= TICKS,
        (want, have) => want == have,
    };
    let whole = w == DataRepr { timestamp: w.timestamp, ..h };
    let same =
        near && whole && same_samples(want.payload(), have.payload(), w.timestamp, h.timestamp);
    (!same).then(|| {
        let first = |packet: &Packet<'_>| packet.payload().get(..8).map(<[u8]>::to_vec);
        format!("{h:?} {:02x?} != {w:?} {:02x?}", first(have), first(want))
    })
}

/// Compares samples: those of an antenna are functions of their times, others must be the same.
fn same_samples(want: &[u8], have: &[u8], want_at: Option<u64>, have_at: Option<u64>) -> bool {
    let (wanted, found): (&[Sc16], &[Sc16]) = (want.in_chunks().0, have.in_chunks().0);
    let hears = |samples: &[Sc16], from: u64, swapped| {
        samples.iter().zip(from..).all(|(sample, tick)| *sample == heard(tick, swapped))
    };
    let begin = |samples: &[Sc16], swapped: bool| {
        let of = if swapped { 2 } else { 0 };
        let value = samples.first().map_or(0, |s| i16::from_le_bytes([s[of], s[of + 1]]));
        (i64::from(value) + 8_192).rem_euclid(16_384) as u64
    };
    for swapped in [false, true] {
        if wanted.len() > 1 && hears(wanted, begin(wanted, swapped), swapped) {
            let from = begin(found, swapped);
            let in_time = |at: Option<u64>, begins| at.is_none_or(|at| at % 16_384 == begins);
            // The time may be wrong, too, by the same.
            return hears(found, from, swapped)
                && in_time(want_at, begin(wanted, swapped)) == in_time(have_at, from);
        }
    }
    want == have
}

/// Returns where the transmitted samples differ from the recorded ones.
pub fn compare_emitted(events: &[Value], played: &[PlayedSamples; 2]) -> Vec<String> {
    let mut wanted: Vec<PlayedStretch> = Vec::new();
    for event in events {
        let first = &event["first"];
        let (Some(i), Some(q)) = (first[0].as_i64(), first[1].as_i64()) else { continue };
        let (at, n) = (event["ticks"].as_u64().unwrap(), event["n"].as_u64().unwrap());
        let step = event["step"].as_i64().unwrap_or(0);
        let sample = |k: u64| {
            let ([a, b], [c, d]) =
                (((i + step * k as i64) as i16).to_le_bytes(), (q as i16).to_le_bytes());
            [a, b, c, d]
        };
        let time_ticks = at - EMISSION_TICKS;
        let samples = (0..n).map(sample);
        match wanted
            .last_mut()
            .filter(|last| last.time_ticks + last.samples.len() as u64 == time_ticks)
        {
            Some(last) => last.samples.extend(samples),
            None => wanted.push(PlayedStretch { time_ticks, samples: samples.collect() }),
        }
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<PlayedStretch> = Vec::new();
    for stretch in played.iter().flat_map(PlayedSamples::take) {
        match found
            .last_mut()
            .filter(|last| last.time_ticks + last.samples.len() as u64 == stretch.time_ticks)
        {
            Some(last) => last.samples.extend(stretch.samples),
            None => found.push(stretch),
        }
    }
    // The radio repeats its idle value behind a burst; it is no sample of the burst.
    for stretch in wanted.iter_mut().chain(&mut found) {
        while stretch.samples.len() > 1 && stretch.samples.last() == Some(&[0; 4]) {
            stretch.samples.pop();
        }
    }
    wanted.retain(|stretch| stretch.samples != [[0; 4]]);
    found.retain(|stretch| stretch.samples != [[0; 4]]);
    // Not every file has the bursts at its begin.
    let Some(first) = wanted.first() else { return Vec::new() };
    let from = first.time_ticks.saturating_sub(TICKS);
    found.retain(|stretch| stretch.time_ticks >= from);
    let mut differences = Vec::new();
    for index in 0..wanted.len().max(found.len()) {
        let same = match (wanted.get(index), found.get(index)) {
            (Some(want), Some(have)) => {
                want.time_ticks.abs_diff(have.time_ticks) <= TICKS && want.samples == have.samples
            }
            _ => false,
        };
        if !same {
            let text = |stretch: Option<&PlayedStretch>| {
                stretch.map(|it| (it.time_ticks, it.samples.len(), it.samples.first().copied()))
            };
            let (have, want) = (text(found.get(index)), text(wanted.get(index)));
            differences.push(format!("transmitted #{index}: {have:?} != {want:?}"));
        }
    }
    differences
}
