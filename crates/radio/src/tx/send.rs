//! Sending: from the caller's slice into batches of packets.

use std::io;
use std::time::Duration;

use millstream_link::port::PortTx;

use super::core::TxCore;
use super::member::TxMember;
use super::meta::{TxError, TxMetadata, TxSent};
use crate::convert::StreamSample;
use crate::error::io_error;

impl TxMember {
    /// Sends samples that wait for their packet to fill, see [`crate::TxStreamer::flush`].
    pub(super) fn flush(&mut self) -> Result<(), TxError> {
        let rest = self.with_tx(TxCore::complete_cycles)?;
        let departs = !self.core.filling.train.is_empty();
        let sent = self.send_train();
        self.with_tx(|core, tx| core.put_back(tx, rest))?;
        sent?;
        if departs { self.keep_up() } else { Ok(()) }
    }

    /// Sends samples, see [`crate::TxStreamer::send`].
    pub(super) fn send<T: StreamSample>(
        &mut self,
        samples: &[T],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let (mut sent, scale) = (TxSent::default(), self.scale);
        if !samples.is_empty() {
            self.begin(meta.time_ticks)?;
        }
        // Computed only when there is no space: reading the clock takes time.
        let mut until = None;
        loop {
            if self.core.has_room() {
                let rest = &samples[sent.samples..];
                sent.samples +=
                    self.with_tx(|core, tx| core.load(tx, rest, scale, meta.end_of_burst))?;
            }
            let all = sent.samples == samples.len();
            if all && (!meta.end_of_burst || self.with_tx(TxCore::end_burst)?) {
                sent.end_of_burst = meta.end_of_burst;
                self.send_train_and_keep_up()?;
                return Ok(sent);
            }
            self.send_train_and_keep_up()?;
            if self.core.has_room() {
                continue;
            }
            let until = *until.get_or_insert_with(|| self.path.clock.deadline(timeout));
            let left = self.path.clock.left(until);
            if !self.wait(left, |stream| stream.core.has_room())? {
                return Ok(sent);
            }
        }
    }

    /// Sends samples for which there is credit, no more than [`TxCore::ready_samples`], in a
    /// burst that has begun. Returns their number: nothing else takes credit meanwhile, so all are
    /// sent.
    pub(super) fn send_ready<T: StreamSample>(
        &mut self,
        samples: &[T],
        end_of_burst: bool,
    ) -> Result<usize, TxError> {
        let (mut sent, scale) = (0, self.scale);
        loop {
            let rest = &samples[sent..];
            let count = self.with_tx(|core, tx| core.load(tx, rest, scale, end_of_burst))?;
            sent += count;
            let all = sent == samples.len();
            let done = all && (!end_of_burst || self.with_tx(TxCore::end_burst)?);
            self.send_train()?;
            if done || count == 0 {
                self.keep_up()?;
                return Ok(sent);
            }
        }
    }

    /// Starts a burst, or continues one at a given time.
    pub(super) fn begin(&mut self, time_ticks: Option<u64>) -> Result<(), TxError> {
        if self.core.continues(time_ticks) {
            return Ok(());
        }
        self.with_tx(TxCore::complete_part)?;
        self.send_train_and_keep_up()?;
        self.core.open_burst(time_ticks);
        Ok(())
    }

    /// Lets the core fill the memory that the port lends.
    fn with_tx<T>(
        &mut self,
        act: impl FnOnce(&mut TxCore, &mut dyn PortTx) -> io::Result<T>,
    ) -> Result<T, TxError> {
        let done = act(&mut self.core, &mut *self.port.tx);
        done.map_err(|error| io_error("send to", self.path.device)(error).into())
    }

    /// Sends the complete packets as a train, and polls for credit once per period.
    fn send_train_and_keep_up(&mut self) -> Result<(), TxError> {
        if self.core.filling.train.is_empty() {
            return Ok(());
        }
        self.send_train()?;
        self.keep_up()
    }

    /// Sends the complete packets, if there are any, as a train.
    fn send_train(&mut self) -> Result<(), TxError> {
        if self.core.filling.train.is_empty() {
            return Ok(());
        }
        self.with_tx(TxCore::send_train)
    }

    /// Polls for credit, once per period.
    fn keep_up(&mut self) -> Result<(), TxError> {
        if self.core.is_poll_due() { self.poll() } else { Ok(()) }
    }
}
