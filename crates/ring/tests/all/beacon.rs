//! The descriptor under the real kernel.

use millstream_ring::Beacon;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn is_readable(beacon: &Beacon) -> bool {
    let descriptor = beacon.poll_fd();
    let mut polls = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut polls, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
}

#[test]
fn it_is_readable_from_news_to_the_look_that_finds_nothing() {
    let beacon = Beacon::new().unwrap();
    assert!(!beacon.news(), "nobody polls: no system call");
    beacon.arm();
    assert!(is_readable(&beacon), "who begins to poll looks once");
    for _ in 0..3 {
        beacon.arm();
        beacon.arm();
        assert!(!is_readable(&beacon));
        assert!(beacon.news(), "a sleeper costs a call");
        assert!(!beacon.news(), "who was rung is not rung again");
        assert!(is_readable(&beacon) && is_readable(&beacon), "until it is armed");
    }
}
