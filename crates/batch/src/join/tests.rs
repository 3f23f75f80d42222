//! Tests of seams.

use super::*;

const GROUP: u64 = 10_000;

/// A number and packets.
type Field = (u64, Vec<u8>);

/// Fields of the whole signal: a number and packets for each.
fn fields(count: u64) -> Vec<Field> {
    let field = |n: u64| {
        let packet = |k: u64| {
            let mut packet = [0x47; PACKET];
            packet[1] = 0;
            packet[2..10].copy_from_slice(&(n * 312 + k).to_le_bytes());
            packet
        };
        // A break: the position of the fields jumps, and one is short.
        let (late, packets) = (if n > 6 { 4321 } else { 0 }, if n == 6 { 100 } else { 312 });
        (n * GROUP + late, (0..packets).flat_map(packet).collect())
    };
    (0..count).map(field).collect()
}

/// Writes some fields as a part, with numbers that are a little late, and leaves out packets at
/// the end.
fn part(fields: &[Field], late: u64, settled: u64, cut_off: usize) -> PartStream {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut marks, mut bytes) = (Vec::new(), Vec::new());
    for (sample, packets) in fields {
        marks.push(Mark { byte: bytes.len() as u64, sample: sample + late });
        bytes.extend(packets);
    }
    bytes.truncate(bytes.len() - cut_off * PACKET);
    std::fs::write(file.path(), &bytes).unwrap();
    PartStream::open(file.path(), marks, settled).unwrap()
}

fn all(fields: &[Field]) -> Vec<u8> {
    fields.iter().flat_map(|(_, packets)| packets.clone()).collect()
}

fn joined(joiner: &Joiner) -> Vec<u8> {
    let mut out = Vec::new();
    let size = joiner.write(&mut out).unwrap();
    assert_eq!(size.packets, (out.len() / PACKET) as u64);
    out
}

#[test]
fn no_packet_is_lost_or_doubled_wherever_the_cuts_are() {
    let fields = fields(20);
    for (first, second) in [(4, 9), (5, 11), (6, 12), (7, 14), (8, 15)] {
        for late in [0, 40] {
            let mut joiner = Joiner::new(GROUP);
            let cut = |field: usize| fields[field].0;
            let parts = [
                (part(&fields[..first + 4], late, 0, 7), 0),
                (part(&fields[first - 2..second + 4], 0, cut(first - 1), 30), cut(first)),
                (part(&fields[second - 2..], late, cut(second - 1), 0), cut(second)),
            ];
            for (stream, cut) in parts {
                joiner.push(stream, cut).unwrap().unwrap();
            }
            assert!(joined(&joiner) == all(&fields), "{first} {second} {late}");
        }
    }
}

#[test]
fn parts_that_do_not_agree_are_refused() {
    // Three fields, and what the first part has of the fourth.
    const ALL: u64 = 3 * 312 + 309;
    let fields = fields(12);
    let push = |change: &dyn Fn(&mut Vec<Field>)| {
        let mut joiner = Joiner::new(GROUP);
        joiner.push(part(&fields[..6], 0, 0, 3), 0).unwrap().unwrap();
        let mut second = fields[1..].to_vec();
        change(&mut second);
        let outcome = joiner.push(part(&second, 0, 2 * GROUP, 0), 3 * GROUP).unwrap();
        let agreed = joiner.seams().last().map(|seam| seam.agreed);
        // What was refused can be replaced.
        let whole = joiner.push(part(&fields, 0, 0, 0), 3 * GROUP).unwrap();
        assert_eq!((whole, joiner.seams().len()), (Ok(()), 0));
        assert!(joined(&joiner) == all(&fields));
        outcome.map(|()| agreed.unwrap()).map_err(|refusal| refusal.reason)
    };
    assert_eq!(push(&|_| ()), Ok(ALL));
    assert_eq!(push(&|second| second[0].1[5] ^= 1), Ok(ALL), "not settled yet");
    let differs = Err(format!("1 of {ALL} packets in the overlap differ"));
    assert_eq!(push(&|second| second[2].1[5] ^= 1), differs);
    assert_eq!(push(&|second| second[4].1[5] ^= 1), differs, "in what there is of the last field");
    assert_eq!(push(&|second| second[4].1[310 * PACKET + 5] ^= 1), Ok(ALL), "behind its end");
    assert_eq!(push(&|second| second[2].1[1] |= 0x80), Ok(ALL - 1));
    let missing = Err(MISSING.to_owned());
    assert_eq!(push(&|second| drop(second.remove(2))), missing);
    assert_eq!(push(&|second| second.truncate(2)), missing);
    assert_eq!(push(&|second| second.truncate(4)), missing, "its end is not what the first has");
    assert_eq!(push(&|second| drop(second.remove(4))), missing, "the last field of the first");
    assert_eq!(push(&|second| second.truncate(5)), Ok(ALL), "both end in that field");
    assert_eq!(push(&|second| second.clear()), missing);
    assert_eq!(push(&|second| second[2].1.truncate(PACKET * 311)), missing);
    assert_eq!(push(&|second| second[4].1.truncate(PACKET * 300)), missing);
    assert_eq!(push(&|second| second.insert(2, second[2].clone())), missing);
    let marked = |second: &mut Vec<Field>| {
        second[..5].iter_mut().for_each(|field| {
            field.1.chunks_exact_mut(PACKET).for_each(|packet| packet[1] |= 0x80);
        });
    };
    let of = format!("of {ALL} packets in the overlap are correct only in the part before");
    let worse = |count| Err(format!("{count} {of}"));
    assert_eq!(push(&marked), worse(ALL));
    let mark = |second: &mut Vec<Field>, count| {
        let packets = second[1].1.chunks_exact_mut(PACKET).take(count);
        packets.for_each(|packet| packet[1] |= 0x80);
    };
    assert_eq!(push(&|second| mark(second, 12)), Ok(ALL - 12), "less than 1 %");
    assert_eq!(push(&|second| mark(second, 13)), worse(13));
}

#[test]
fn a_seam_needs_a_field_that_is_whole_in_both() {
    let fields = fields(12);
    // How many fields of the first part the second one has, and from which sample on they count.
    let push = |common: usize, settled: u64, cut_off| {
        let mut joiner = Joiner::new(GROUP);
        joiner.push(part(&fields[..6], 0, 0, cut_off), 0).unwrap().unwrap();
        let second = part(&fields[6 - common..], 0, settled, 0);
        let outcome = joiner.push(second, settled).unwrap().map_err(|refusal| refusal.reason);
        outcome.map(|()| assert!(joined(&joiner) == all(&fields)))
    };
    let only = "only 0 packets in whole fields of the overlap can be compared, fewer than 312";
    for cut_off in [0, 7, 300] {
        assert_eq!(push(2, 5 * GROUP, cut_off), Err(only.to_owned()), "the last one, {cut_off}");
        assert_eq!(push(1, 1, cut_off), Err(MISSING.to_owned()), "{cut_off}");
        assert_eq!(push(1, 5 * GROUP, cut_off), Err(only.to_owned()), "{cut_off}");
        assert_eq!(push(3, 4 * GROUP, cut_off), Ok(()), "{cut_off}");
    }
    assert_eq!(push(3, 6 * GROUP, 0), Err(only.to_owned()), "none");
}

#[test]
fn a_part_without_packets_is_a_stream_and_anything_else_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.ts");
    let mut joiner = Joiner::new(GROUP);
    let open = |marks: &[Mark]| PartStream::open(&path, marks.to_vec(), 7);
    joiner.push(PartStream::open(&path, Vec::new(), 0).unwrap(), 0).unwrap().unwrap();
    let refused = joiner.push(open(&[]).unwrap(), 9).unwrap().unwrap_err();
    assert!(refused.reason.starts_with("only 0 packets"), "{refused:?}");
    assert!(refused.is_dead);
    assert_eq!(joined(&joiner), b"");
    std::fs::write(&path, [0; 2 * PACKET]).unwrap();
    let mark = |byte| Mark { byte, sample: 0 };
    for wrong in [&[][..], &[mark(188)], &[mark(0), mark(7)], &[mark(0), mark(376)]] {
        assert!(open(wrong).is_err(), "{wrong:?}");
    }
    open(&[mark(0), mark(188)]).unwrap();
}
