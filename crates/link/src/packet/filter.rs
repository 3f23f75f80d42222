//! Steering: a classic BPF program that passes the wanted frames into the ring
//! (`Documentation/networking/filter.rst`). All others cost only the program.
//!
//! A small assembler. Every test either decides or falls through, so that the only conditional
//! jumps are those over a single instruction (they reach 255 instructions at most); the others are
//! patched when their target is known.

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K,
    BPF_LD, BPF_LDX, BPF_MSH, BPF_RET, BPF_W, sock_filter,
};

use crate::frame::Steer;

/// The most ports that a program tests; a program holds 4096 instructions (`BPF_MAXINSNS`). With
/// more of them every port passes.
const PORTS_MAX: usize = 1500;

/// The same for addresses.
const ADDRESSES_MAX: usize = 250;

/// The result of a program that passes a frame: more bytes than any frame has.
const WHOLE: u32 = 0x0004_0000;

/// The offsets in an untagged frame (IEEE 802.3, RFC 791). The kernel removes the outer tag of a
/// frame before a packet socket sees it.
const ETHERTYPE: u32 = 12;
const FRAGMENT: u32 = 20;
const PROTOCOL: u32 = 23;
const DESTINATION: u32 = 30;
const IP_HEADER: u32 = 14;

const IPV4: u32 = 0x0800;
const ARP: u32 = 0x0806;
const ICMP: u32 = 1;
const UDP: u32 = 17;
const FRAGMENT_OFFSET: u32 = 0x1fff;

/// A program being written.
#[derive(Default)]
struct Program(Vec<sock_filter>);

/// A jump whose target is not known yet.
struct Jump(usize);

impl Program {
    fn put(&mut self, code: u32, k: u32) {
        self.jump(code, 0, 0, k);
    }

    fn jump(&mut self, code: u32, jt: u8, jf: u8, k: u32) {
        self.0.push(sock_filter { code: code as u16, jt, jf, k });
    }

    /// A ← a value of `size` at an offset.
    fn load(&mut self, size: u32, at: u32) {
        self.put(BPF_LD | size | BPF_ABS, at);
    }

    /// A ← a property that the kernel stores with the frame.
    fn load_known(&mut self, what: i32) {
        self.load(BPF_W, (libc::SKF_AD_OFF + what) as u32);
    }

    fn pass(&mut self) {
        self.put(BPF_RET | BPF_K, WHOLE);
    }

    fn drop(&mut self) {
        self.put(BPF_RET | BPF_K, 0);
    }

    /// Passes the frame if A is `k`.
    fn pass_if(&mut self, k: u32) {
        self.jump(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, k);
        self.pass();
    }

    /// Drops the frame unless A is `k`.
    fn drop_unless(&mut self, k: u32) {
        self.jump(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, k);
        self.drop();
    }

    /// Drops the frame if A has a bit of `k`.
    fn drop_if_set(&mut self, k: u32) {
        self.jump(BPF_JMP | BPF_JSET | BPF_K, 0, 1, k);
        self.drop();
    }

    /// Jumps if A is `k`.
    fn go_if(&mut self, k: u32) -> Jump {
        self.jump(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, k);
        self.put(BPF_JMP | BPF_JA, 0);
        Jump(self.0.len() - 1)
    }

    /// Places the target of a jump here.
    fn land(&mut self, jump: Jump) {
        self.0[jump.0].k = (self.0.len() - jump.0 - 1) as u32;
    }
}

/// Returns the program that passes the frames selected by `steer`.
pub(super) fn program(steer: &Steer) -> Vec<sock_filter> {
    let mut p = Program::default();
    if steer.everything {
        p.pass();
        return p.0;
    }
    vlan(&mut p, steer.vlan);
    p.load(BPF_H, ETHERTYPE);
    for ethertype in &steer.ethertypes {
        p.pass_if(u32::from(*ethertype));
    }
    if steer.own_addresses {
        p.pass_if(ARP);
    }
    p.drop_unless(IPV4);
    destination(&mut p, steer);
    p.load(BPF_B, PROTOCOL);
    if steer.own_addresses {
        p.pass_if(ICMP);
    }
    p.drop_unless(UDP);
    if steer.own_addresses {
        // The stack alone answers for ports that are not served, and counts fragments.
        p.pass();
        return p.0;
    }
    // Fragments have no ports: the kernel reassembles them.
    p.load(BPF_H, FRAGMENT);
    p.drop_if_set(FRAGMENT_OFFSET);
    p.put(BPF_LDX | BPF_B | BPF_MSH, IP_HEADER);
    p.put(BPF_LD | BPF_H | BPF_IND, IP_HEADER + 2);
    if steer.udp_ports.len() > PORTS_MAX {
        p.pass();
    }
    for port in steer.udp_ports.iter().take(PORTS_MAX) {
        p.pass_if(u32::from(*port));
    }
    p.drop();
    p.0
}

/// Drops frames of VLANs other than the wanted one. A tag with identifier 0 only states a priority:
/// such a frame is in no VLAN (IEEE 802.1Q, 9.6).
fn vlan(p: &mut Program, vlan: Option<u16>) {
    p.load_known(libc::SKF_AD_VLAN_TAG_PRESENT);
    let untagged = match vlan {
        None => Some(p.go_if(0)),
        Some(_) => {
            p.drop_unless(1);
            None
        }
    };
    p.load_known(libc::SKF_AD_VLAN_TAG);
    p.put(BPF_ALU | BPF_AND | BPF_K, 0x0fff);
    p.drop_unless(u32::from(vlan.unwrap_or(0)));
    if let Some(untagged) = untagged {
        p.land(untagged);
    }
}

/// Drops IPv4 packets that are neither for one of the addresses nor broadcast.
fn destination(p: &mut Program, steer: &Steer) {
    if steer.addresses.len() > ADDRESSES_MAX {
        return;
    }
    p.load(BPF_W, DESTINATION);
    let mut ours: Vec<_> =
        steer.addresses.iter().map(|address| p.go_if(u32::from(*address))).collect();
    p.load_known(libc::SKF_AD_PKTTYPE);
    ours.push(p.go_if(u32::from(libc::PACKET_BROADCAST)));
    p.drop();
    for jump in ours {
        p.land(jump);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    /// Returns the kernel's own verdict: it runs filters on Unix sockets too, for any user.
    fn passes(steer: &Steer, frame: &[u8]) -> bool {
        let (one, two) = UnixDatagram::pair().unwrap();
        two.set_nonblocking(true).unwrap();
        crate::packet::socket::attach(two.as_fd(), &program(steer)).unwrap();
        let _ = one.send(frame);
        two.recv(&mut [0; 2000]).is_ok_and(|count| count == frame.len())
    }

    /// Returns Ethernet, IPv4 with `options` words, and eight bytes of the next header.
    fn ip(protocol: u8, to: [u8; 4], port: u16, options: u8, fragment: u16) -> Vec<u8> {
        let mut frame = vec![0u8; 42 + usize::from(options) * 4];
        frame[12] = 8;
        frame[14] = 0x45 + options;
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        frame[23] = protocol;
        frame[30..34].copy_from_slice(&to);
        let at = 14 + 20 + usize::from(options) * 4 + 2;
        frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
        frame
    }

    const HERE: [u8; 4] = [10, 0, 0, 2];

    fn steer() -> Steer {
        let addresses = vec![Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::from(HERE)];
        Steer { addresses, udp_ports: vec![5000, 5001], ..Steer::default() }
    }

    fn arp() -> Vec<u8> {
        let mut frame = vec![0; 42];
        frame[12..14].copy_from_slice(&[8, 6]);
        frame
    }

    #[test]
    fn only_the_ports_and_addresses_that_are_served_pass() {
        for (frame, wanted) in [
            (ip(17, HERE, 5000, 0, 0), true),
            (ip(17, HERE, 5001, 10, 0), true),
            (ip(17, HERE, 5002, 0, 0), false),
            (ip(17, [10, 0, 0, 9], 5000, 0, 0), true),
            (ip(17, [10, 0, 0, 3], 5000, 0, 0), false),
            (ip(6, HERE, 5000, 0, 0), false),
            (ip(1, HERE, 5000, 0, 0), false),
            (ip(17, HERE, 5000, 0, 0x2000), true),
            (ip(17, HERE, 5000, 0, 100), false),
            (arp(), false),
            (vec![0; 14], false),
            (vec![0; 3], false),
        ] {
            assert_eq!(passes(&steer(), &frame), wanted, "{frame:?}");
        }
        assert!(!passes(&Steer::default(), &ip(17, HERE, 5000, 0, 0)), "nothing is wanted");
    }

    #[test]
    fn for_addresses_of_our_own_arp_icmp_and_every_datagram_pass() {
        let steer = Steer { own_addresses: true, ..steer() };
        for (frame, wanted) in [
            (arp(), true),
            (ip(1, HERE, 0, 0, 0), true),
            (ip(1, [10, 0, 0, 3], 0, 0, 0), false),
            (ip(17, HERE, 1, 0, 100), true),
            (ip(17, HERE, 1, 0, 0), true),
            (ip(17, [10, 0, 0, 3], 5000, 0, 0), false),
            (ip(6, HERE, 5000, 0, 0), false),
        ] {
            assert_eq!(passes(&steer, &frame), wanted, "{frame:?}");
        }
    }

    #[test]
    fn private_ethernet_types_and_everything() {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        assert!(passes(&Steer { ethertypes: vec![0x88b5], ..steer() }, &frame));
        assert!(!passes(&Steer { ethertypes: vec![0x88b6], ..steer() }, &frame));
        assert!(passes(&Steer { everything: true, ..Steer::default() }, &[0]));
    }

    #[test]
    fn untagged_frames_are_not_of_a_vlan() {
        let tagged = Steer { vlan: Some(7), ..steer() };
        assert!(!passes(&tagged, &ip(17, HERE, 5000, 0, 0)));
    }

    #[test]
    fn a_thousand_ports_still_work_and_more_than_can_be_told_apart_all_pass() {
        let many = Steer { udp_ports: (1..=1500).collect(), ..steer() };
        assert!(passes(&many, &ip(17, [10, 0, 0, 9], 1500, 0, 0)));
        assert!(!passes(&many, &ip(17, HERE, 1501, 0, 0)));
        let addresses = (0..250).map(|last| Ipv4Addr::new(10, 0, 1, last)).collect();
        let most = Steer { addresses, udp_ports: (1..=1501).collect(), ..steer() };
        assert!(passes(&most, &ip(17, [10, 0, 1, 249], 1502, 0, 0)));
        assert!(!passes(&most, &ip(17, HERE, 1502, 0, 0)));
        let addresses = vec![Ipv4Addr::new(10, 0, 1, 1); 251];
        assert!(passes(&Steer { addresses, ..steer() }, &ip(17, HERE, 5000, 0, 0)));
    }
}
