//! DPDK's ports on I/O threads: two on one, and two on two.

use std::time::Instant;

use millstream_link::port::{Port, PortOptions};
use millstream_net::engine::inventory;
use millstream_net::open;

use crate::{PATIENCE, any, collect};

/// The number of datagrams in flight, the size of each, and the number of rounds.
const WINDOW: usize = 64;
const BYTES: usize = 8000;
const TURNS: usize = 100;

/// Opens both ends of shared memory, each on a thread; the numbers are those of ports of this
/// process.
fn pair(number: u8, near: &str, far: &str) -> (Port, Port) {
    let socket = format!("ms-engine-{}-{number}", std::process::id());
    let end = |port: u8, role: &str, thread: &str| {
        let address = format!("10.9.{number}.{}/24", port % 2 + 1);
        let link = format!(
            "dpdk:memif{port},role={role},socket={socket},huge=off,full=wait,address={address},\
             thread={thread},queue=256"
        );
        open(&link, any(), &PortOptions::default()).unwrap_or_else(|error| panic!("{error}"))
    };
    let far = end(2 * number, "server", far);
    (end(2 * number + 1, "client", near), far)
}

/// Sends windows of datagrams, each when the one before has arrived.
fn stream(near: &mut Port, far: &mut Port) {
    let payload: Vec<u8> = (0..BYTES * WINDOW).map(|at| (at / 7) as u8).collect();
    let meets = Instant::now() + PATIENCE;
    // Until both ends have found each other.
    while near.tx.send(b"?", far.local).is_err() || far.rx.recv_batch(PATIENCE / 100).unwrap() == 0
    {
        assert!(Instant::now() < meets, "nobody is there");
    }
    while far.rx.recv_batch(PATIENCE / 100).unwrap() > 0 {}
    for _ in 0..TURNS {
        near.tx.send_train(&payload, BYTES, far.local).unwrap();
        let came: Vec<u8> = collect(far, WINDOW).into_iter().flat_map(|one| one.0).collect();
        assert!(came == payload, "as it was sent");
    }
}

#[test]
fn two_ports_share_a_thread_or_have_one_each() {
    if !millstream_link::dpdk::AVAILABLE {
        eprintln!("skipped: this build is without DPDK");
        return;
    }
    for (round, threads) in [["d-one", "d-one"], ["d-one", "d-two"]].iter().enumerate() {
        let [first, second] =
            [0, 1].map(|at| pair(2 * round as u8 + at as u8, threads[at], "d-far"));
        let links = |name: &str| {
            let all = inventory().threads;
            all.iter().find(|one| one.name == name).map_or(0, |one| one.links.len())
        };
        let each = if round == 0 { [2, 0] } else { [1, 1] };
        assert_eq!([links("ms-io-d-one"), links("ms-io-d-two")], each);
        let began = Instant::now();
        std::thread::scope(|scope| {
            for (mut near, mut far) in [first, second] {
                scope.spawn(move || stream(&mut near, &mut far));
            }
        });
        let bits = (2 * TURNS * WINDOW * BYTES * 8) as f64;
        println!("{threads:?}: {:.1} Gb/s", bits / began.elapsed().as_secs_f64() / 1e9);
    }
}
