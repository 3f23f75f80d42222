//! The receive sides of a radio's links, polled by one thread.

use crate::device::HostAddress;
use millstream_link::port::PortRx;
use std::io;
use std::time::Duration;

/// With several links, the longest wait on one while the others are not polled.
const SLICE: Duration = Duration::from_micros(250);

/// The ports, and the datagrams that they lend.
pub(crate) struct Links {
    ports: Vec<Box<dyn PortRx>>,
    counts: Vec<usize>,
}

impl Links {
    /// Returns the links of these ports, in the order of their numbers.
    pub fn new(ports: Vec<Box<dyn PortRx>>) -> Self {
        Self { counts: vec![0; ports.len()], ports }
    }

    /// Waits up to `timeout` for datagrams on any link. Returns the number of failed polls.
    pub fn wait(&mut self, timeout: Duration) -> usize {
        let alone = self.ports.len() == 1;
        let mut left = timeout;
        loop {
            let (mut failures, mut came) = (0, false);
            for (link, port) in self.ports.iter_mut().enumerate().rev() {
                let idle = link == 0 && failures == 0 && !came;
                let wait = match (idle, alone) {
                    (false, _) => Duration::ZERO,
                    (true, true) => left,
                    (true, false) => left.min(SLICE),
                };
                self.counts[link] = port.recv_batch(wait).unwrap_or_else(|_| {
                    failures += 1;
                    0
                });
                came |= self.counts[link] > 0;
            }
            left = left.saturating_sub(SLICE);
            if came || failures > 0 || alone || left.is_zero() {
                return failures;
            }
        }
    }

    /// Returns the number of datagrams that are lent.
    pub fn lent(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Passes every lent datagram, and those of up to `batches` batches in all of each link, while
    /// there are more.
    pub fn each(
        &mut self,
        batches: usize,
        mut take: impl FnMut(&[u8], HostAddress),
    ) -> io::Result<()> {
        for (link, port) in self.ports.iter_mut().enumerate() {
            let mut count = std::mem::take(&mut self.counts[link]);
            for batch in 1.. {
                for index in 0..count {
                    let datagram = port.datagram(index);
                    take(datagram.payload, HostAddress::new(link, datagram.source));
                }
                if count == 0 || batch == batches {
                    break;
                }
                count = port.recv_batch(Duration::ZERO)?;
            }
        }
        Ok(())
    }

    /// Returns the datagrams dropped below the ports: a queue was full, or they were too long.
    pub fn queue_drops(&self) -> u64 {
        self.ports.iter().map(|port| port.queue_drops() + port.too_long()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_link::port::{Capabilities, Datagram};
    use std::net::{Ipv4Addr, SocketAddrV4};

    const ANY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);

    /// Lends one datagram at a time: the numbers from 0 up to, not including, the last.
    struct Numbers {
        next: u8,
        last: u8,
        lent: [u8; 1],
        /// Polls until there is one.
        late: u32,
    }

    impl Numbers {
        fn new(last: u8, late: u32) -> Self {
            Self { next: 0, last, lent: [0], late }
        }
    }

    impl PortRx for Numbers {
        fn capabilities(&self) -> Capabilities {
            Capabilities::new(1, 1)
        }
        fn recv_batch(&mut self, _: Duration) -> io::Result<usize> {
            if self.late > 0 || self.next == self.last {
                self.late = self.late.saturating_sub(1);
                return Ok(0);
            }
            self.lent = [self.next];
            self.next += 1;
            Ok(1)
        }
        fn datagram(&self, _: usize) -> Datagram<'_> {
            Datagram { payload: &self.lent, source: ANY }
        }
        fn queue_drops(&self) -> u64 {
            self.last.into()
        }
    }

    #[test]
    fn what_has_been_lent_is_taken_however_many_batches_there_are() {
        for batches in 1..12 {
            let mut links = Links::new(vec![Box::new(Numbers::new(10, 0))]);
            let mut taken = Vec::new();
            loop {
                assert_eq!(links.wait(Duration::ZERO), 0);
                if links.lent() == 0 {
                    break;
                }
                links.each(batches, |payload, _| taken.push(payload[0])).unwrap();
            }
            assert_eq!(taken, (0..10).collect::<Vec<u8>>(), "{batches} batches at once");
        }
    }

    #[test]
    fn a_datagram_of_any_link_ends_the_wait() {
        for (late, link) in [([0, 99], 0), ([99, 0], 1), ([99, 3], 1), ([2, 99], 0)] {
            let ports = late.map(|late| Box::new(Numbers::new(1, late)) as Box<dyn PortRx>);
            let mut links = Links::new(ports.into());
            assert_eq!(links.wait(Duration::from_millis(20)), 0);
            let mut from = Vec::new();
            links.each(1, |_, host| from.push(host.link)).unwrap();
            assert_eq!(from, [link], "{late:?}");
        }
    }

    #[test]
    fn without_a_datagram_the_wait_ends_at_its_time() {
        let ports: Vec<Box<dyn PortRx>> =
            vec![Box::new(Numbers::new(0, 0)), Box::new(Numbers::new(0, 0))];
        let mut links = Links::new(ports);
        assert_eq!((links.wait(10 * SLICE), links.lent(), links.queue_drops()), (0, 0, 0));
    }
}
