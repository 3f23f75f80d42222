//! The port interface: a UDP endpoint that receives and sends datagrams in batches.
//!
//! The kernel's sockets provide it ([`crate::udp`]), and so does a user-space stack on a frame link
//! (the crate `net`). The code above cannot see which one carries it.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_ring::Wait;

use crate::launch::LaunchTx;
pub use crate::loan::FrameLoan;

/// The capabilities of a port, constant after it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Largest datagram payload in bytes that the port accepts in either direction; a longer
    /// datagram never arrives, neither whole nor cut.
    pub datagram_bytes_max: usize,
    /// The most datagrams that one [`PortRx::recv_batch`] lends.
    pub batch_max: usize,
    /// Equal datagrams leave in one call (GSO or the like).
    pub segmentation: bool,
    /// Datagrams arrive joined and are split by the port (GRO or the like).
    pub coalescing: bool,
    /// The actual size of the receive queue below the port, bytes.
    pub recv_queue_bytes: usize,
    /// The capacity of the receive queue in datagrams of any size, where it counts them and not
    /// bytes.
    pub recv_queue_datagrams: Option<usize>,
}

impl Capabilities {
    /// Creates the capabilities of a port.
    pub fn new(datagram_bytes_max: usize, batch_max: usize) -> Self {
        Self {
            datagram_bytes_max,
            batch_max,
            segmentation: false,
            coalescing: false,
            recv_queue_bytes: 0,
            recv_queue_datagrams: None,
        }
    }
}

/// One received datagram, lent out of the current batch.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// The UDP payload. Untrusted bytes: only `millstream-wire` may parse them.
    pub payload: &'a [u8],
    /// The sender's address.
    pub source: SocketAddrV4,
}

/// The receive half of a port.
pub trait PortRx: Send {
    /// Returns the port's capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Returns the previous batch's buffers, then waits up to `timeout` for the next datagrams.
    ///
    /// Returns the number of datagrams now lent; zero after a timeout. `Duration::ZERO` polls.
    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize>;

    /// Returns datagram `index` of the current batch.
    ///
    /// # Panics
    /// When `index` is not below the number that [`PortRx::recv_batch`] returned last.
    fn datagram(&self, index: usize) -> Datagram<'_>;

    /// Returns the datagrams dropped below the port since it was opened, because its queue was
    /// full. The number is updated when the next datagram arrives, or a wait ends without one.
    ///
    /// Exact without [`Capabilities::coalescing`]. With it the kernel counts a dropped train as
    /// one, so the number of datagrams lies between this value and this value times the longest
    /// batch.
    fn queue_drops(&self) -> u64;

    /// Returns the datagrams since the port was opened that were dropped because they were longer
    /// than [`Capabilities::datagram_bytes_max`]. Links that lend whole frames have none.
    fn too_long(&self) -> u64 {
        0
    }
}

/// The transmit half of a port.
pub trait PortTx: Send {
    /// Returns the port's capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Sends one datagram.
    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()>;

    /// Sends one datagram without waiting for room. A port whose sends never wait need not provide
    /// it: the default is [`PortTx::send`].
    ///
    /// # Errors
    /// `WouldBlock` when there is no room now: nothing was sent, and the call may be repeated. Any
    /// other error is one of [`PortTx::send`].
    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.send(payload, to)
    }

    /// Sends datagrams of `segment_bytes` each that lie back to back in `train` (the last one may
    /// be shorter): in one system call where the port has segmentation, in one batch otherwise.
    fn send_train(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()>;

    /// Begins a datagram of up to `bytes` bytes in memory that the port sends from, so its content
    /// is not copied. A datagram that was begun and not committed is discarded. Datagrams of
    /// [`PortTx::send`] and [`PortTx::send_train`] may overtake those that have yet to depart.
    ///
    /// ```
    /// # use millstream_link::{open, port::PortOptions};
    /// # use std::net::{Ipv4Addr, SocketAddrV4};
    /// # use std::time::Duration;
    /// # let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    /// # let mut port = open("udp", any, &PortOptions::default())?;
    /// for number in 0..3 {
    ///     port.tx.lend(1000)?;
    ///     let mut at = 0;
    ///     while at < 1000 {
    ///         let piece = port.tx.lent(at);
    ///         piece.fill(number);
    ///         at += piece.len();
    ///     }
    ///     port.tx.commit(1000, port.local)?;
    /// }
    /// port.tx.depart()?;
    /// assert!(port.rx.recv_batch(Duration::from_secs(1))? > 0);
    /// assert_eq!(port.rx.datagram(0).payload, [0; 1000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The link's error: no datagram may be so long, there was no room in time, or the complete
    /// datagrams could not be sent.
    fn lend(&mut self, bytes: usize) -> io::Result<()> {
        by_loan::lend(self, bytes)
    }

    /// Returns the room of the lent datagram from byte `at` on, as far as it lies in one piece;
    /// empty at its end. Pieces begin at multiples of 8 bytes; the first has at least 512 bytes, or
    /// all.
    ///
    /// # Panics
    /// When `at` is beyond the lent bytes.
    fn lent(&mut self, at: usize) -> &mut [u8] {
        self.loan().lent(at)
    }

    /// Completes the lent datagram with `bytes` bytes. It is sent to `to` by [`PortTx::depart`], or
    /// earlier.
    ///
    /// # Errors
    /// The link's error, about this datagram or an earlier one; this one is lost then.
    ///
    /// # Panics
    /// When `bytes` is more than was lent.
    fn commit(&mut self, bytes: usize, to: SocketAddrV4) -> io::Result<()> {
        by_loan::commit(self, bytes, to)
    }

    /// Sends the complete datagrams.
    ///
    /// # Errors
    /// The link's error; datagrams that were not sent are lost then.
    fn depart(&mut self) -> io::Result<()> {
        by_loan::depart(self)
    }

    /// Returns the loan in which the port keeps lent datagrams. The provided methods above use it;
    /// ports that lend their own memory override them.
    fn loan(&mut self) -> &mut FrameLoan;

    /// Returns the part that sends datagrams at set times, where the port was opened with one
    /// (`udp:launch=fq`). Middleware has none.
    fn launch(&mut self) -> Option<&mut dyn LaunchTx> {
        None
    }

    /// Sends the delayed datagrams of middleware that are due. Returns the time until the next ones
    /// are due, if there are any. A port that delays nothing does nothing here.
    fn release(&mut self) -> Option<Duration> {
        None
    }
}

/// The lending of a port without memory of its own to lend: out of its [`FrameLoan`].
pub(crate) mod by_loan {
    use super::{FrameLoan, PortTx, SocketAddrV4, io};

    pub fn lend<T: PortTx + ?Sized>(tx: &mut T, bytes: usize) -> io::Result<()> {
        if bytes > FrameLoan::BYTES_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if !tx.loan().has_room(bytes) {
            depart(tx)?;
        }
        tx.loan().begin(bytes);
        Ok(())
    }

    pub fn commit<T: PortTx + ?Sized>(
        tx: &mut T,
        bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        if !tx.loan().joins(bytes, to) {
            depart(tx)?;
        }
        if bytes == 0 {
            return depart(tx).and_then(|()| tx.send(&[], to));
        }
        if tx.loan().complete(bytes, to) { depart(tx) } else { Ok(()) }
    }

    pub fn depart<T: PortTx + ?Sized>(tx: &mut T) -> io::Result<()> {
        let mut loan = std::mem::take(tx.loan());
        let sent = match loan.train() {
            Some((train, segment_bytes, to)) => tx.send_train(train, segment_bytes, to),
            None => Ok(()),
        };
        loan.clear();
        *tx.loan() = loan;
        sent
    }
}

/// Both halves of an open port. The halves may move to different threads.
pub struct Port {
    /// The bound address; the port number is the actual one even when 0 was requested.
    pub local: SocketAddrV4,
    /// The receive half.
    pub rx: Box<dyn PortRx>,
    /// The transmit half.
    pub tx: Box<dyn PortTx>,
}

/// The sizes of a port. Every field has a sensible default.
#[derive(Debug, Clone)]
pub struct PortOptions {
    /// Largest datagram expected, bytes.
    pub datagram_bytes_max: usize,
    /// Wanted size of the receive queue, bytes.
    pub recv_queue_bytes: usize,
    /// Wanted size of the send queue, bytes.
    pub send_queue_bytes: usize,
    /// The user of the port tolerates latency: it waits adaptively even where the link string makes
    /// users of ports spin.
    pub patient: bool,
    /// How many ports like this one follow. A link that divides its memory among its ports keeps as
    /// much for each of them.
    pub more_ports: usize,
}

impl PortOptions {
    /// Returns how the user waits where the link string makes users of ports wait like `asked`.
    pub fn wait(&self, asked: Wait) -> Wait {
        if self.patient && asked == Wait::Spin { Wait::Adaptive } else { asked }
    }
}

impl Default for PortOptions {
    fn default() -> Self {
        Self {
            datagram_bytes_max: 9000,
            recv_queue_bytes: 8 << 20,
            send_queue_bytes: 4 << 20,
            patient: false,
            more_ports: 0,
        }
    }
}
