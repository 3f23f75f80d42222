//! After open, sending and receiving allocate nothing.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use millstream_link::open;
use millstream_link::port::PortOptions;
use millstream_testkit::allocations;

#[test]
fn steady_state_allocates_nothing() {
    for link in ["udp", "udp:gro=off,gso=off"] {
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut a = open(link, local, &PortOptions::default()).unwrap();
        let mut b = open(link, local, &PortOptions::default()).unwrap();
        let train = vec![1u8; 8000 * 12];
        let before = allocations();
        let mut seen = 0;
        for _ in 0..100 {
            a.tx.send_train(&train, 8000, b.local).unwrap();
            a.tx.send(&train[..100], b.local).unwrap();
            let mut wanted = 13;
            while wanted > 0 {
                let count = b.rx.recv_batch(Duration::from_secs(5)).unwrap();
                assert_ne!(count, 0);
                seen += (0..count).map(|index| b.rx.datagram(index).payload.len()).sum::<usize>();
                wanted -= count;
            }
            assert_eq!(b.rx.recv_batch(Duration::from_micros(10)).unwrap(), 0);
        }
        assert_eq!(allocations(), before, "{link}");
        assert_eq!(seen, 100 * (train.len() + 100));
    }
}
