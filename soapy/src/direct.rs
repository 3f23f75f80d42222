//! Buffers of a stream that clients read or fill in place.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of buffers that a client may hold at once.
pub const DIRECT_BUFFERS: usize = 8;

/// Memory for one read or write: a part for each channel, in words so that every sample is aligned.
pub type DirectBlock = Vec<Vec<u64>>;

/// The buffers of a stream.
#[derive(Debug, Default)]
pub struct DirectBuffers {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    made: usize,
    free: Vec<DirectBlock>,
    /// By the numbers that clients hold.
    held: [Option<DirectBlock>; DIRECT_BUFFERS],
}

impl DirectBuffers {
    /// Takes a free block with room for `bytes` on each channel; `None` while the client holds all.
    pub fn take(&self, channels: usize, bytes: usize) -> Option<DirectBlock> {
        let mut inner = self.lock();
        let mut block = match inner.free.pop() {
            Some(block) => block,
            None if inner.made < DIRECT_BUFFERS => {
                inner.made += 1;
                DirectBlock::new()
            }
            None => return None,
        };
        block.resize_with(channels, Vec::new);
        block.iter_mut().for_each(|part| part.resize(bytes.div_ceil(8), 0));
        Some(block)
    }

    /// Returns a block that no client holds.
    pub fn put_back(&self, block: DirectBlock) {
        self.lock().free.push(block);
    }

    /// Lends a block to the client. Returns its number, and passes the address of each part
    /// to `tell`.
    pub fn hold(&self, block: DirectBlock, mut tell: impl FnMut(usize, *const u64)) -> usize {
        let mut inner = self.lock();
        let place = inner.held.iter().position(Option::is_none);
        let place = place.expect("there are as many places as blocks");
        let block = inner.held[place].insert(block);
        for (index, part) in block.iter().enumerate() {
            tell(index, part.as_ptr());
        }
        place
    }

    /// Takes a block back from the client; `None` if the client does not hold it.
    pub fn take_back(&self, place: usize) -> Option<DirectBlock> {
        self.lock().held.get_mut(place).and_then(Option::take)
    }

    /// Takes a block back whose contents are no longer needed. Returns whether the client held it.
    pub fn release(&self, place: usize) -> bool {
        let block = self.take_back(place);
        let was_held = block.is_some();
        self.lock().free.extend(block);
        was_held
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_round_and_no_more_than_all_are_out() {
        let buffers = DirectBuffers::default();
        let mut places = Vec::new();
        for round in 0..DIRECT_BUFFERS {
            let mut block = buffers.take(2, 9).unwrap();
            assert_eq!(block.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
            block[1][1] = round as u64;
            let mut parts = 0;
            places.push(buffers.hold(block, |_, _| parts += 1));
            assert_eq!(parts, 2);
        }
        assert!(buffers.take(2, 9).is_none());
        assert!(buffers.release(places[3]) && !buffers.release(places[3]) && !buffers.release(99));
        let block = buffers.take(2, 9).unwrap();
        assert_eq!(block[1][1], 3);
        buffers.put_back(block);
        assert!(buffers.take(2, 9).is_some() && buffers.take(2, 9).is_none());
    }
}
