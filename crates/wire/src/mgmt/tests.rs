//! Tests of hops, their limits, and their execution by nodes.

use super::*;
use crate::{Epid, Error, Result, Width, chdr};

const XBAR: NodeInfo =
    NodeInfo { device_id: 1, instance: 0, node: Node::Crossbar { ports: 3, transports: 1 } };

fn request(hops: &[&[Op]]) -> MgmtRepr {
    let mut repr = MgmtRepr::request(Epid(1), 5);
    for hop in hops {
        repr.push_hop(hop).unwrap();
    }
    repr
}

fn hops(repr: &MgmtRepr) -> Vec<Vec<Op>> {
    repr.hops().map(<[Op]>::to_vec).collect()
}

fn parse(bytes: &[u8], width: Width) -> Result<usize> {
    MgmtRepr::parse(&chdr::Packet::parse(bytes, width).unwrap()).map(|repr| repr.hops().count())
}

/// `{INFO_REQ, RETURN}, {NOP}` at W = 64.
fn info_request() -> [u8; 40] {
    let mut bytes = [0; 40];
    request(&[&[Op::InfoReq, Op::Return], &[Op::Nop]]).emit(Width::W64, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_node_answers_into_the_next_hop_and_returns_the_packet() {
    let mut repr = request(&[&[Op::InfoReq, Op::Return], &[Op::Nop]]);
    let answer = |op| (op == Op::InfoReq).then_some(Op::InfoResp(XBAR));
    assert_eq!(repr.execute(answer), Ok(ForwardHops::Return));
    assert_eq!(hops(&repr), [[Op::Nop, Op::InfoResp(XBAR)]]);
    assert_eq!((repr.dst_epid, repr.src_epid, repr.seq), (Epid(1), Epid::NONE, 5));
}

#[test]
fn a_request_travels_through_transport_and_crossbar_to_an_endpoint() {
    let write = Op::CfgWrite { address: 4, value: 7 };
    let read = Op::CfgRead { address: 8 };
    let reply = Op::CfgReadResp { address: 8, value: 1 << 31 };
    let mut repr =
        request(&[&[Op::Nop], &[Op::SelDest(2)], &[write, read, Op::Return], &[Op::Nop]]);
    assert_eq!(repr.execute(|_| None), Ok(ForwardHops::Default));
    assert_eq!(repr.execute(|_| None), Ok(ForwardHops::Port(2)));
    assert_eq!(repr.dst_epid, Epid::NONE);
    let mut seen = Vec::new();
    let forward = repr.execute(|op| {
        seen.push(op);
        (op == read).then_some(reply)
    });
    assert_eq!(forward, Ok(ForwardHops::Return));
    assert_eq!(seen, [write, read, Op::Return]);
    assert_eq!(hops(&repr), [[Op::Nop, reply]]);
}

#[test]
fn answers_go_to_the_next_hop_even_if_more_follow() {
    let mut repr = request(&[&[Op::InfoReq], &[Op::Nop], &[Op::Return]]);
    repr.execute(|_| Some(Op::InfoResp(XBAR))).unwrap();
    assert_eq!(hops(&repr), [vec![Op::Nop, Op::InfoResp(XBAR)], vec![Op::Return]]);
}

#[test]
fn a_packet_that_cannot_be_answered_is_an_error() {
    assert_eq!(request(&[]).execute(|_| None), Err(Error::NoHop));
    let mut lonely = request(&[&[Op::InfoReq, Op::Return]]);
    assert_eq!(lonely.execute(|_| Some(Op::InfoResp(XBAR))), Err(Error::NoReplyHop));
}

#[test]
fn the_last_operation_of_a_hop_says_where_the_packet_goes() {
    let forward = |hop: &[Op]| request(&[hop, &[Op::Nop]]).execute(|_| None);
    assert_eq!(forward(&[Op::SelDest(2), Op::Return]), Ok(ForwardHops::Return));
    assert_eq!(forward(&[Op::Return, Op::SelDest(2)]), Ok(ForwardHops::Port(2)));
    for last in [Op::Return, Op::SelDest(2)] {
        let mut repr = request(&[&[last, Op::InfoReq], &[Op::Nop]]);
        assert_eq!(repr.execute(|_| Some(Op::Nop)), Ok(ForwardHops::Default));
        assert_eq!(repr.dst_epid, Epid::NONE, "it is not exchanged with the source");
    }
}

#[test]
fn the_answers_always_fit_in_the_place_of_the_operations_taken_off() {
    let mut repr = request(&[&[Op::InfoReq; 33], &[Op::Nop; MAX_OPS - 33]]);
    assert_eq!(repr.execute(|_| Some(Op::Nop)), Ok(ForwardHops::Default));
    assert_eq!(hops(&repr)[0].len(), MAX_OPS);
}

#[test]
fn a_repr_holds_no_more_than_it_states() {
    let mut repr = request(&[&[Op::Nop; MAX_OPS]]);
    assert_eq!(repr.push_hop(&[Op::Nop]), Err(Error::TooManyOps));
    assert_eq!(repr.push_hop(&[]), Err(Error::NoHop));
    let mut bytes = [0; 16 + 8 * (MAX_OPS + 1)];
    let full = request(&[[Op::Nop].as_slice(); MAX_OPS]);
    let len = full.emit(Width::W64, &mut bytes).unwrap();
    assert_eq!((len, parse(&bytes[..len], Width::W64)), (bytes.len() - 8, Ok(MAX_OPS)));
    // One more hop of one operation.
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_le_bytes());
    bytes[10] += 1;
    assert_eq!(parse(&bytes, Width::W64), Err(Error::TooManyOps));
}

#[test]
fn a_buffer_that_is_too_small_is_an_error_wherever_it_ends() {
    let repr = request(&[&[Op::InfoReq, Op::Return], &[Op::Nop]]);
    for width in Width::ALL {
        for end in 0..repr.packet_len(width) {
            let emitted = repr.emit(width, &mut [0; 512][..end]);
            assert_eq!(emitted, Err(Error::BufferTooSmall), "{end} bytes");
        }
    }
}

#[test]
fn items_are_padded_to_the_width_but_for_the_last() {
    for width in Width::ALL {
        let mut bytes = [0xAA; 512];
        let repr = request(&[&[Op::InfoReq, Op::Return], &[Op::Nop]]);
        let len = repr.emit(width, &mut bytes).unwrap();
        let word = width.bytes();
        assert_eq!(len, 4 * word + 8);
        assert_eq!(bytes[len], 0xAA);
        assert_eq!(bytes[2 * word..][..2], [1, 4]);
        assert!(bytes[2 * word + 8..3 * word].iter().all(|&b| b == 0));
        // A packet whose last item is padded as well is accepted.
        let padded = (5 * word) as u16;
        bytes[2..4].copy_from_slice(&padded.to_le_bytes());
        assert_eq!(parse(&bytes, width), Ok(2));
    }
}

#[test]
fn hops_that_end_early_or_late_are_refused() {
    for length in 8..40 {
        let mut bytes = info_request();
        bytes[2] = length;
        assert_eq!(parse(&bytes, Width::W64), Err(Error::PayloadTooShort), "{length}");
    }
    let mut more_hops = info_request();
    more_hops[10] = 3;
    assert_eq!(parse(&more_hops, Width::W64), Err(Error::PayloadTooShort));
    // Bytes behind the last hop are harmless.
    let mut fewer_hops = info_request();
    fewer_hops[10] = 1;
    assert_eq!(parse(&fewer_hops, Width::W64), Ok(1));
    let mut stuck = info_request();
    stuck[24] = 1;
    assert_eq!(parse(&stuck, Width::W64), Err(Error::BadOpCount));
}

#[test]
fn other_widths_types_and_operations_are_refused() {
    for code in [1, 2, 3, 4, 7] {
        let mut bytes = info_request();
        bytes[13] = code << 5;
        assert_eq!(parse(&bytes, Width::W64), Err(Error::WidthMismatch));
    }
    let mut narrow = [0; 128];
    request(&[&[Op::Nop]]).emit(Width::W256, &mut narrow).unwrap();
    narrow[32 + 5] = 0;
    assert_eq!(parse(&narrow, Width::W256), Err(Error::WidthMismatch));
    let mut bytes = info_request();
    bytes[17] = 9;
    assert_eq!(parse(&bytes, Width::W64), Err(Error::UnknownOp));
    let mut bytes = info_request();
    bytes[6] = 0x40;
    assert_eq!(parse(&bytes, Width::W64), Err(Error::WrongPacketType));
}

#[test]
fn node_information_has_its_places() {
    let endpoint = NodeInfo {
        device_id: 0xBEEF,
        instance: 0x155,
        node: Node::StreamEndpoint {
            control: true,
            data: false,
            inputs: 0x21,
            outputs: 0x12,
            reports_errors: true,
        },
    };
    let operand = (1 << 14 | 0x12 << 8 | 0x21 << 2 | 1) << 30 | 0x155 << 20 | 2 << 16 | 0xBEEF;
    assert_eq!(endpoint.to_operand(), Ok(operand));
    assert_eq!(NodeInfo::from_operand(operand), endpoint);
    assert_eq!(XBAR.to_operand(), Ok((1 << 8 | 3) << 30 | 1 << 16 | 1));
    for node in [
        Node::Other { code: 1, extended: 0 },
        Node::Other { code: 2, extended: 0 },
        Node::Other { code: 3, extended: 0 },
        Node::Other { code: 16, extended: 0 },
        Node::Other { code: 0, extended: 1 << 18 },
    ] {
        assert_eq!(NodeInfo { node, ..XBAR }.to_operand(), Err(Error::FieldOverflow));
    }
}
