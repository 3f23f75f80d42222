//! The link as a [`FrameLink`].

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::link::{BURST, DpdkLink};
use crate::LinkError;
use crate::frame::{Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer};

impl FrameLink for DpdkLink {
    fn info(&self) -> &LinkInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        &self.memory
    }

    /// Selects frames. The device belongs to this link alone, so all frames come. Where it has
    /// several queues, the datagrams of each port are to come on one of them.
    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        self.rules.drain(..).for_each(|rule| self.port.unsteer(rule));
        self.unsteered = 0;
        let queues = self.info.queues as u16;
        if queues > 1 {
            for (port, queue) in steer.udp_ports.iter().zip((0..queues).cycle()) {
                match self.port.steer(*port, queue) {
                    Some(rule) => self.rules.push(rule),
                    None => self.unsteered += 1,
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        let count = self.poll(frames);
        let tended = self.tend();
        if count == 0 {
            tended?;
        }
        Ok(count)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        self.free(frames.drain(..));
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        let (mut taken, mut cleaned) = (0, false);
        while taken < count {
            match self.reserve_some(frames, count - taken) {
                0 if cleaned => break,
                0 => {
                    self.port.clean(0);
                    cleaned = true;
                }
                more => taken += more,
            }
        }
        taken
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        if self.down.is_some() {
            self.tend()?;
        }
        let mut taken = 0;
        while taken < self.info.batch_max && !frames.is_empty() {
            let (run, unfit) = self.run(frames);
            let pushed = if run > 0 { self.push(&frames[..run]) } else { Some(0) };
            let sent = pushed.unwrap_or(0);
            self.forget(frames.drain(..sent));
            taken += sent;
            if sent > 0 {
                self.full_since = None;
            }
            if sent < run {
                if pushed.is_none() || !self.is_stuck() {
                    self.counters.tx_ring_full += 1;
                    return Ok(taken);
                }
                taken += self.lose(frames, run - sent);
            }
            if unfit > 0 {
                self.counters.tx_invalid += 1;
                self.free(frames.drain(..unfit));
                taken += unfit;
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&mut self) -> LinkCounters {
        let counted = self.port.counted();
        let mut counters = self.counters;
        counters.rx_ring_full += counted.missed;
        counters.rx_starved += counted.without_buffer;
        counters.rx_dropped += counted.receive_errors;
        if !self.drops {
            // In memory, frames not taken were counted as lost, or waited.
            counters.tx_dropped += counted.transmit_errors;
        }
        counters
    }

    fn explain(&mut self) -> Option<String> {
        if self.down == Some(io::ErrorKind::NetworkDown) && self.drops {
            return Some("nobody is at the other end of this port: start its peer".to_owned());
        }
        (self.unsteered > 0).then(|| {
            format!(
                "the device has no rules for {} UDP ports, so that their datagrams spread over \
                 the queues as the device likes",
                self.unsteered
            )
        })
    }

    /// Returns the counts. The buffers in the device, to receive into or not yet returned after
    /// transmission, cannot be counted there: they are those that are neither free nor lent.
    fn census(&self) -> FrameCounts {
        let (receive_free, transmit_free) = self.port.free();
        let (receive_lent, transmit_lent) = self.lent;
        FrameCounts {
            pool: receive_free + transmit_free,
            receiving: self.buffers.0 - receive_free - receive_lent,
            transmitting: self.buffers.1 - transmit_free - transmit_lent,
            lent: receive_lent + transmit_lent,
        }
    }
}

impl DpdkLink {
    /// Returns the parts at the front of `frames` that are whole frames, a batch at most, and the
    /// number of parts behind them that make a frame that cannot be sent.
    fn run(&self, frames: &[Frame]) -> (usize, usize) {
        let mut run = 0;
        while run < frames.len() && run < BURST {
            let whole = frames[run..].iter().position(|part| !part.continues());
            let parts = whole.map_or(frames.len() - run, |last| last + 1);
            if !self.fits(&frames[run..run + parts]) {
                return (run, parts);
            }
            if run > 0 && run + parts > BURST {
                break;
            }
            run += parts;
        }
        (run, 0)
    }

    /// Drops frames that found the ring full; returns the number of parts.
    fn lose(&mut self, frames: &mut Vec<Frame>, parts: usize) -> usize {
        for frame in &frames[..parts] {
            self.counters.tx_frames += u64::from(!frame.continues());
            self.counters.tx_bytes += frame.len() as u64;
            self.counters.tx_dropped += u64::from(!frame.continues());
        }
        self.free(frames.drain(..parts));
        parts
    }
}
