//! Tests of data words, acknowledgements, and the errors of control packets.

use super::*;
use crate::{Epid, Error, Width, chdr};

fn request() -> CtrlRepr {
    CtrlRepr {
        dst_epid: Epid(2),
        seq: 7,
        src_epid: Epid(1),
        dst_port: 3,
        src_port: 3,
        ctrl_seq: 63,
        timestamp: Some(99),
        address: 0xF_FFFC,
        op: Op::BlockWrite,
        data: DataWords::new(&[1, 2, 3, 4]).unwrap(),
        ..CtrlRepr::default()
    }
}

fn parse(bytes: &[u8]) -> crate::Result<CtrlRepr> {
    CtrlRepr::parse(&chdr::Packet::parse(bytes, Width::W64).unwrap())
}

#[test]
fn further_data_words_lie_in_pairs_lower_half_first() {
    let mut buf = [0xAA; 64];
    let len = request().emit(Width::W64, &mut buf).unwrap();
    assert_eq!(len, 48);
    let words: Vec<u8> = buf[28..len].chunks(4).map(|word| word[0]).collect();
    assert_eq!(words, [1, 2, 3, 4, 0], "an even number is padded to 64 bits with zero");
    assert_eq!(parse(&buf), Ok(request()));
    // A packet without that padding is accepted.
    buf[2] -= 4;
    assert_eq!(parse(&buf), Ok(request()));
    buf[2] -= 1;
    assert_eq!(parse(&buf), Err(Error::PayloadTooShort));
}

#[test]
fn one_to_fifteen_data_words_are_held() {
    assert_eq!(DataWords::new(&[]), Err(Error::NoData));
    assert_eq!(DataWords::new(&[0; 16]), Err(Error::FieldOverflow));
    let fifteen = DataWords::new(&[0xA; 15]).unwrap();
    assert_eq!(fifteen.len(), MAX_DATA_WORDS);
    assert_ne!(fifteen, DataWords::one(0xA));
    assert_eq!(format!("{:?}", DataWords::new(&[1, 0x20]).unwrap()), "0x1 0x20");
}

#[test]
fn an_acknowledgement_mirrors_its_request() {
    let ack = request().ack(11, ControlStatus::CommandError, DataWords::one(5));
    assert!(ack.is_ack);
    assert_eq!((ack.dst_epid, ack.src_epid, ack.seq), (Epid(1), Epid(2), 11));
    assert_eq!((ack.dst_port, ack.src_port, ack.ctrl_seq), (3, 3, 63));
    assert_eq!((ack.op, ack.address, ack.timestamp), (Op::BlockWrite, 0xF_FFFC, None));
    assert_eq!(ack.status, ControlStatus::CommandError);
}

#[test]
fn credit_counts_the_words_of_the_command_fifo() {
    assert_eq!(CtrlRepr::default().credit_words(), 3);
    assert_eq!(request().credit_words(), 8);
}

#[test]
fn packets_that_lack_data_or_words_are_refused() {
    let mut buf = [0; 64];
    let len = request().emit(Width::W64, &mut buf).unwrap();
    for length in 8..len as u8 - 4 {
        buf[2] = length;
        assert_eq!(parse(&buf), Err(Error::PayloadTooShort), "{length}");
    }
    buf[2] = len as u8;
    buf[10] &= 0x0F;
    assert_eq!(parse(&buf), Err(Error::NoData));
    buf[6] = 0x40;
    assert_eq!(parse(&buf), Err(Error::WrongPacketType));
}

#[test]
fn values_that_do_not_fit_are_not_cut_off() {
    let mut buf = [0; 64];
    for too_much in [
        CtrlRepr { dst_port: 1 << 10, ..request() },
        CtrlRepr { src_port: 1 << 10, ..request() },
        CtrlRepr { ctrl_seq: SEQ_MODULUS, ..request() },
        CtrlRepr { address: 1 << 20, ..request() },
        CtrlRepr { byte_enables: 16, ..request() },
        CtrlRepr { op: Op::Other(16), ..request() },
        // It would be read back as `Op::Write`.
        CtrlRepr { op: Op::Other(1), ..request() },
    ] {
        assert_eq!(too_much.emit(Width::W64, &mut buf), Err(Error::FieldOverflow));
    }
}

#[test]
fn codes_are_read_back() {
    for code in 0..16 {
        assert_eq!(Op::from_code(code).code(), code);
    }
    for code in 0..4 {
        assert_eq!(ControlStatus::from_code(code).code(), code);
    }
    assert_eq!(block_port(1, 0), 2);
}

#[test]
fn a_packet_describes_itself() {
    assert_eq!(
        request().to_string(),
        "control request 1 to 2 port 3 seq 63 BlockWrite @0xffffc 0x1 0x2 0x3 0x4 time 99"
    );
    let ack = request().ack(0, ControlStatus::TimeError, DataWords::one(0));
    assert!(ack.to_string().starts_with("control ack 2 to 1"));
    assert!(ack.to_string().ends_with("TimeError"));
}
