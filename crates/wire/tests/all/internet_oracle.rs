//! Tests with the crate `etherparse` as oracle: each reads the frames of the other, and both reject
//! the same damaged frames.

use core::net::Ipv4Addr;

use etherparse::{
    IcmpEchoHeader, Icmpv4Type, IpFragOffset, Ipv4Header, Ipv4HeaderSlice, PacketBuilder,
    SlicedPacket, TransportSlice, UdpHeader,
};
use millstream_wire::ethernet::{EthernetRepr, Frame, Mac, ether_type};
use millstream_wire::icmp::{self, Message};
use millstream_wire::ipv4::{Header, Ipv4Repr, protocol};
use millstream_wire::udp::{self, UdpRepr};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    macs: [[u8; 6]; 2],
    ips: [[u8; 4]; 2],
    ports: [u16; 2],
    vlan: Option<u16>,
    hop_limit: u8,
    data: Vec<u8>,
}

prop_compose! {
    fn case()(
        (macs, ips, ports) in any::<([[u8; 6]; 2], [[u8; 4]; 2], [u16; 2])>(),
        vlan in prop::option::of(0u16..4096),
        hop_limit in any::<u8>(),
        data in vec(any::<u8>(), 0..300),
    ) -> Case {
        Case { macs, ips, ports, vlan, hop_limit, data }
    }
}

impl Case {
    fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        (self.ips[0].into(), self.ips[1].into())
    }

    /// Returns the frame as etherparse builds it.
    fn theirs(&self, echo: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let link = PacketBuilder::ethernet2(self.macs[0], self.macs[1]);
        macro_rules! rest {
            ($link:expr) => {{
                let ip = $link.ipv4(self.ips[0], self.ips[1], self.hop_limit);
                if echo {
                    ip.icmpv4_echo_request(self.ports[0], self.ports[1])
                        .write(&mut bytes, &self.data)
                } else {
                    ip.udp(self.ports[0], self.ports[1]).write(&mut bytes, &self.data)
                }
            }};
        }
        match self.vlan {
            Some(vlan) => rest!(link.single_vlan(vlan.try_into().unwrap())),
            None => rest!(link),
        }
        .unwrap();
        bytes
    }

    /// Returns the frame as we write it.
    fn ours(&self) -> Vec<u8> {
        let (from, to) = self.addresses();
        let mut frame = vec![0xAA; 46];
        let ethernet = EthernetRepr {
            destination: Mac(self.macs[1]),
            source: Mac(self.macs[0]),
            tag: self.vlan,
            ether_type: ether_type::IPV4,
        };
        let ip_at = ethernet.emit(&mut frame).unwrap();
        let ip = Ipv4Repr {
            source: from,
            destination: to,
            protocol: protocol::UDP,
            hop_limit: self.hop_limit,
            traffic_class: 0,
            id: 0,
            payload_len: udp::HEADER_LEN + self.data.len(),
        };
        let udp_at = ip_at + ip.emit(&mut frame[ip_at..]).unwrap();
        let udp = UdpRepr { source_port: self.ports[0], destination_port: self.ports[1] };
        let end = udp_at + udp.emit(from, to, &self.data, &mut frame[udp_at..]).unwrap();
        frame.truncate(end);
        frame.extend(&self.data);
        frame
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 1024 }))]

    #[test]
    fn a_datagram_is_the_same_bytes_from_both(case in case()) {
        prop_assert_eq!(case.ours(), case.theirs(false));
    }

    #[test]
    fn what_we_write_they_read(case in case()) {
        let frame = case.ours();
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("{sliced:?}") };
        prop_assert_eq!([udp.source_port(), udp.destination_port()], case.ports);
        prop_assert_eq!(udp.payload(), &case.data[..]);
        let header: UdpHeader = udp.to_header();
        let sum = header.calc_checksum_ipv4_raw(case.ips[0], case.ips[1], &case.data).unwrap();
        prop_assert_eq!(header.checksum, sum);
    }

    #[test]
    fn their_echo_request_is_whole_and_our_reply_is_theirs(case in case()) {
        let frame = case.theirs(true);
        let ethernet = Frame::parse(&frame).unwrap();
        prop_assert_eq!(ethernet.tag(), case.vlan);
        let ip = Header::parse(ethernet.payload()).unwrap();
        let bytes = ip.payload(ethernet.payload()).unwrap();
        let request = icmp::Packet::parse(bytes).unwrap();
        prop_assert!(ip.is_whole() && request.is_whole());
        let (id, seq) = (case.ports[0], case.ports[1]);
        prop_assert_eq!(request.message(), Message::EchoRequest { id, seq });
        let mut reply = vec![0xAA; bytes.len()];
        icmp::emit_echo_reply([bytes], &mut reply).unwrap();
        let kind = Icmpv4Type::EchoReply(IcmpEchoHeader { id, seq });
        let theirs = etherparse::Icmpv4Header::with_checksum(kind, &case.data);
        prop_assert_eq!(&reply[..8], &theirs.to_bytes()[..]);
    }

    #[test]
    fn headers_with_options_and_fragments_are_read_alike(
        case in case(), words in 0usize..=10, offset in 0u16..8192,
        (more, fixed) in any::<(bool, bool)>(),
    ) {
        let mut theirs =
            Ipv4Header::new(64, case.hop_limit, etherparse::IpNumber(17), case.ips[0], case.ips[1])
                .unwrap();
        theirs.options = vec![1; words * 4][..].try_into().unwrap();
        theirs.fragment_offset = IpFragOffset::try_new(offset).unwrap();
        (theirs.more_fragments, theirs.dont_fragment) = (more, fixed);
        theirs.set_payload_len(64).unwrap();
        theirs.header_checksum = theirs.calc_header_checksum();
        let bytes = theirs.to_bytes();
        let ours = Header::parse(&bytes).unwrap();
        prop_assert!(ours.is_whole());
        prop_assert_eq!(ours.is_fragment(), theirs.is_fragmenting_payload());
        prop_assert_eq!(ours.is_first(), offset == 0);
        prop_assert_eq!((ours.header_len(), ours.payload_len()), (20 + words * 4, 64));
        prop_assert_eq!((ours.source(), ours.destination()), case.addresses());
    }

    #[test]
    fn both_refuse_the_same_headers(mut bytes in vec(any::<u8>(), 0..64), likely in any::<bool>()) {
        if let (Some(first), true) = (bytes.first_mut(), likely) {
            *first = 0x40 | (*first & 0xF);
        }
        let theirs = Ipv4HeaderSlice::from_slice(&bytes);
        let long_enough = |slice: &Ipv4HeaderSlice<'_>| {
            usize::from(slice.total_len()) >= slice.slice().len()
        };
        let theirs = theirs.is_ok_and(|slice| long_enough(&slice));
        prop_assert_eq!(Header::parse(&bytes).is_ok(), theirs);
    }

    #[test]
    fn damaged_frames_are_parsed_or_refused(
        case in case(), echo in any::<bool>(), damage in vec(any::<(usize, u8)>(), 0..8),
        cut in 0usize..400,
    ) {
        let mut frame = case.theirs(echo);
        for (at, value) in damage {
            let at = at % frame.len();
            frame[at] = value;
        }
        frame.truncate(cut.max(1));
        crate::exercise::ethernet(&frame);
    }

    #[test]
    fn arbitrary_frames_are_parsed_or_refused(bytes in vec(any::<u8>(), 0..256)) {
        crate::exercise::ethernet(&bytes);
    }
}
