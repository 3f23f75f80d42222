//! The transmit direction of one queue: its transmit and completion rings.

use std::io;
use std::os::fd::AsRawFd;

use super::pool::FramePool;
use super::queue::{Queue, Staged, kick_outcome};
use super::ring::{CONTINUES, Descriptor, METADATA};
use crate::frame::{Frame, FrameMemory, LinkCounters};

impl Queue {
    /// Returns how many descriptors can be [staged](Self::stage); reads the cursor again only if
    /// fewer than `want` are known.
    pub fn room(&mut self, want: usize) -> usize {
        self.tx.room(u32::try_from(want).unwrap_or(u32::MAX)) as usize
    }

    /// Writes a part of a frame behind the staged ones; there must be room.
    #[inline]
    pub fn stage(
        &mut self,
        memory: &FrameMemory,
        pool: &mut FramePool,
        mut frame: Frame,
        counters: &mut LinkCounters,
    ) {
        let (length, continues) = (frame.len() as u32, frame.continues());
        // The kernel skips an empty descriptor and never gives its chunk back.
        if length == 0 {
            pool.put(memory, frame);
            counters.tx_invalid += 1;
            // A frame whose empty last part is skipped must not continue into the next one.
            if let Some(last) = self.staged.open.take_if(|_| !continues) {
                let options = last.options & !CONTINUES;
                self.tx.put(self.staged.count - 1, Descriptor { options, ..last });
                counters.tx_frames += 1;
                self.sent += 1;
            }
            return;
        }
        let mut options = if continues { CONTINUES } else { 0 };
        if pool.describe(memory, &mut frame) {
            options |= METADATA;
        }
        let address = pool.transmit(memory, frame);
        let descriptor = Descriptor { address, length, options };
        self.tx.put(self.staged.count, descriptor);
        self.staged.open = continues.then_some(descriptor);
        self.staged.count += 1;
        counters.tx_frames += u64::from(!continues);
        counters.tx_bytes += u64::from(length);
        self.sent += u64::from(!continues);
    }

    /// Hands the staged descriptors to the kernel.
    pub fn commit(&mut self) {
        let Staged { count, .. } = std::mem::take(&mut self.staged);
        if count > 0 {
            self.tx.advance(count);
        }
    }

    /// Takes back transmitted chunks.
    #[inline]
    pub fn harvest(&mut self, pool: &mut FramePool) {
        let count = self.completion.available(1);
        if count > 0 {
            (0..count).for_each(|ahead| pool.complete(self.completion.get(ahead)));
            self.completion.advance(count);
        }
    }

    /// Makes the kernel transmit the queued frames, as far as it can now.
    pub fn flush(&mut self, pool: &mut FramePool, counters: &mut LinkCounters) -> io::Result<()> {
        loop {
            let pending = self.tx.pending();
            if pending == 0 || (self.wakeup && !self.tx.needs_wakeup()) {
                break;
            }
            let done = self.kick_transmitter(counters);
            self.harvest(pool);
            done?;
            if self.tx.pending() == pending {
                break;
            }
        }
        self.harvest(pool);
        Ok(())
    }

    fn kick_transmitter(&self, counters: &mut LinkCounters) -> io::Result<()> {
        counters.syscalls += 1;
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: nothing is read: the length is 0 and there is no address.
        let done = unsafe { libc::sendto(fd, std::ptr::null(), 0, flags, std::ptr::null(), 0) };
        match kick_outcome(done) {
            // The kernel took a frame but could not pass it on.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                counters.tx_dropped += 1;
                Ok(())
            }
            done => done,
        }
    }
}
