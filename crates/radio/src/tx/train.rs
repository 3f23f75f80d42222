//! The packets of a train, which one call sends, written in the port's send buffer.

use std::io;
use std::net::SocketAddrV4;

use millstream_link::port::{FrameLoan, PortTx};
use millstream_wire::chdr::{DataRepr, SC16_LEN};
use millstream_wire::{Epid, Width};

/// The packets of a train: the complete ones, and the one under construction. Samples are converted
/// directly into the memory from which they are sent, which the port lends.
///
/// The packet under construction stays in its place when the complete ones are sent.
#[derive(Debug)]
pub(super) struct PacketTrain {
    width: Width,
    samples_per_packet: usize,
    /// The bytes before the samples of each packet: a header, with a time or without.
    header_bytes: usize,
    /// The bytes of a full packet.
    segment_bytes: usize,
    /// The most packets of a train.
    packets_max: usize,
    /// Complete packets that have not been sent.
    packets: usize,
    /// Samples in the current packet.
    filled: usize,
    /// The last complete packet is not a full one.
    short: bool,
}

impl PacketTrain {
    pub fn new(width: Width, samples_per_packet: usize) -> Self {
        let mut train = Self {
            width,
            samples_per_packet,
            header_bytes: 0,
            segment_bytes: 0,
            packets_max: 0,
            packets: 0,
            filled: 0,
            short: false,
        };
        train.shape(true);
        train
    }

    /// Sets whether the next packets have time. Only for an empty batch.
    pub fn shape(&mut self, timed: bool) {
        debug_assert!(self.is_empty() && self.filled == 0);
        let repr = DataRepr { timestamp: timed.then_some(0), ..DataRepr::default() };
        self.header_bytes = repr.header_len(self.width);
        self.segment_bytes = self.header_bytes + self.samples_per_packet * SC16_LEN;
        self.packets_max =
            (FrameLoan::BYTES_MAX / self.segment_bytes).clamp(1, FrameLoan::DATAGRAMS_MAX);
    }

    /// Returns the bytes of a full packet.
    pub fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Returns the samples in the packet under construction.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Returns whether no packet is complete.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns whether no other packet can begin before the complete ones are sent.
    pub fn is_full(&self) -> bool {
        self.packets == self.packets_max || self.short
    }

    /// Returns the contiguous space for further samples of the current packet.
    ///
    /// # Errors
    /// Those of [`PortTx::lend`].
    pub fn space<'a>(&self, tx: &'a mut dyn PortTx) -> io::Result<&'a mut [u8]> {
        if self.filled == 0 {
            tx.lend(self.segment_bytes)?;
        }
        Ok(tx.lent(self.header_bytes + self.filled * SC16_LEN))
    }

    /// Copies the last samples of the current packet to `rest`, which is that long, and takes them
    /// out of it.
    pub fn take_back(&mut self, tx: &mut dyn PortTx, rest: &mut [u8]) {
        self.filled -= rest.len() / SC16_LEN;
        let (mut at, mut left) = (self.length(), rest);
        while !left.is_empty() {
            // The memory may lie in several pieces.
            let piece = tx.lent(at);
            let (part, others) = left.split_at_mut(left.len().min(piece.len()));
            part.copy_from_slice(&piece[..part.len()]);
            at += part.len();
            left = others;
        }
    }

    /// Counts samples written to [`PacketTrain::space`]. Returns true when the packet is full.
    pub fn fill(&mut self, samples: usize) -> bool {
        self.filled += samples;
        debug_assert!(self.filled <= self.samples_per_packet);
        self.filled == self.samples_per_packet
    }

    /// Returns the length of the current packet in its present state, bytes.
    pub fn length(&self) -> usize {
        self.header_bytes + self.filled * SC16_LEN
    }

    /// Completes the current packet with its header.
    ///
    /// # Errors
    /// Those of [`PortTx::commit`]; the packet is lost then.
    pub fn complete(
        &mut self,
        tx: &mut dyn PortTx,
        to: SocketAddrV4,
        dst_epid: Epid,
        seq: u16,
        ticks: Option<u64>,
        eob: bool,
    ) -> io::Result<()> {
        let (length, payload_len) = (self.length(), self.filled * SC16_LEN);
        let repr = DataRepr { dst_epid, seq, timestamp: ticks, eob, eov: false, payload_len };
        let header = repr.emit(self.width, tx.lent(0));
        let header_bytes = header.expect("a packet is no longer than its length field can say");
        debug_assert_eq!(header_bytes, self.header_bytes);
        self.short = length < self.segment_bytes;
        self.packets += 1;
        self.filled = 0;
        tx.commit(length, to)
    }

    /// Sends the complete packets.
    ///
    /// # Errors
    /// Those of [`PortTx::depart`]; unsent packets are lost then.
    pub fn depart(&mut self, tx: &mut dyn PortTx) -> io::Result<()> {
        (self.packets, self.short) = (0, false);
        tx.depart()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_link::open;
    use millstream_link::port::{Port, PortOptions};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    /// Returns a port that sends to itself.
    fn port() -> Port {
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        open("udp", local, &PortOptions { datagram_bytes_max: 65_507, ..Default::default() })
            .unwrap()
    }

    fn put(train: &mut PacketTrain, port: &mut Port, value: u8, samples: usize) -> bool {
        let space = train.space(&mut *port.tx).unwrap();
        space[..samples * 4].fill(value);
        train.fill(samples)
    }

    fn complete(train: &mut PacketTrain, port: &mut Port, seq: u16, ticks: Option<u64>) {
        train.complete(&mut *port.tx, port.local, Epid(2), seq, ticks, false).unwrap();
    }

    /// Returns the packets received by now, one by one.
    fn received(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < count {
            let came = port.rx.recv_batch(Duration::from_secs(5)).unwrap();
            assert_ne!(came, 0, "{} of {count} came", all.len());
            all.extend((0..came).map(|index| port.rx.datagram(index).payload.to_vec()));
        }
        assert_eq!(port.rx.recv_batch(Duration::ZERO).unwrap(), 0);
        all
    }

    #[test]
    fn only_the_last_packet_of_a_train_is_short() {
        let (mut train, mut port) = (PacketTrain::new(Width::W64, 10), port());
        assert_eq!(train.segment_bytes(), 56);
        for seq in 0..2 {
            assert!(put(&mut train, &mut port, 7, 10));
            complete(&mut train, &mut port, seq, Some(100));
            assert!(!train.is_full());
        }
        assert!(!put(&mut train, &mut port, 8, 3));
        assert_eq!(train.length(), 28);
        complete(&mut train, &mut port, 2, Some(120));
        assert!(train.is_full(), "nothing can follow a short one");
        train.depart(&mut *port.tx).unwrap();
        assert!(train.is_empty() && !train.is_full());
        let got = received(&mut port, 3);
        assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [56, 56, 28]);
        assert_eq!((got[0][2], got[1][2], got[2][2]), (56, 56, 28));
    }

    #[test]
    fn an_unfinished_packet_stays_in_its_place() {
        let (mut train, mut port) = (PacketTrain::new(Width::W64, 10), port());
        train.shape(false);
        assert_eq!(train.segment_bytes(), 48);
        put(&mut train, &mut port, 1, 10);
        complete(&mut train, &mut port, 0, None);
        put(&mut train, &mut port, 2, 4);
        train.depart(&mut *port.tx).unwrap();
        assert_eq!(received(&mut port, 1)[0].len(), 48);
        assert_eq!((train.filled(), train.is_empty()), (4, true));
        assert!(put(&mut train, &mut port, 3, 6));
        complete(&mut train, &mut port, 1, None);
        train.depart(&mut *port.tx).unwrap();
        let got = received(&mut port, 1);
        assert_eq!((got[0].len(), got[0][8], got[0][8 + 16]), (48, 2, 3));
    }

    #[test]
    fn a_train_is_no_longer_than_one_call_can_send() {
        for samples in [1, 10, 362, 2000, 5000, 16_000] {
            let (mut train, mut port) = (PacketTrain::new(Width::W64, samples), port());
            let mut packets = 0;
            while !train.is_full() {
                put(&mut train, &mut port, 0, 1);
                train.fill(samples - 1);
                complete(&mut train, &mut port, 0, Some(0));
                packets += 1;
            }
            let length = packets * (16 + samples * 4);
            assert!(
                (1..=FrameLoan::DATAGRAMS_MAX).contains(&packets) && length <= FrameLoan::BYTES_MAX
            );
            assert!(
                packets == FrameLoan::DATAGRAMS_MAX
                    || length + 16 + samples * 4 > FrameLoan::BYTES_MAX
            );
        }
    }
}
