//! A bounded queue of items from one thread to another: no lock, no allocation after creation.
//!
//! The [cursors](crate::cursor), which count items here instead of bytes, decide the owner of each
//! slot. An item is moved in and moved out; items that are not taken are dropped exactly once, or
//! returned to the sender ([`Sender::reclaim`]), which is needed for items that must return to
//! their origin.
//!
//! Neither side waits: combine it with a [`Waiter`](crate::Waiter) or a
//! [`Doorbell`](crate::Doorbell).
//!
//! ```
//! let (mut sender, mut receiver) = millstream_ring::spsc::channel(2);
//! assert_eq!(sender.push("a"), Ok(()));
//! assert_eq!(sender.push("b"), Ok(()));
//! assert_eq!(sender.push("c"), Err("c"), "full");
//! assert_eq!(receiver.pop(), Some("a"));
//! ```

use crate::cursor::{Consumer, Producer, cursors};
use crate::sync::{Arc, AtomicU64, Ordering, UnsafeCell};
use std::mem::MaybeUninit;

/// The slots, and the final position of each side.
struct Slots<T> {
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Written once by each side when it is dropped; items in `head..tail` are left over.
    head: AtomicU64,
    tail: AtomicU64,
}

// SAFETY: a slot is used only by the side to which the cursors gave it, and passing it on is a
// Release store paired with an Acquire load. So sharing the slots only moves items between threads.
unsafe impl<T: Send> Send for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    fn cell(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        // The number of cells is a power of two.
        &self.cells[position as usize & (self.cells.len() - 1)]
    }

    /// Moves an item into the slot of `position`.
    ///
    /// # Safety
    /// The caller owns the slot, which holds no item.
    unsafe fn put(&self, position: u64, item: T) {
        // SAFETY: no other code uses the slot, by the caller's contract.
        self.cell(position).with_mut(|slot| unsafe { (*slot).write(item) });
    }

    /// Moves the item out of the slot of `position`.
    ///
    /// # Safety
    /// The caller owns the slot, which holds an item; from here on it holds none.
    unsafe fn take(&self, position: u64) -> T {
        // SAFETY: no other code uses the slot, and it is initialised, by the caller's contract.
        self.cell(position).with(|slot| unsafe { (*slot).assume_init_read() })
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let tail = self.tail.load(Ordering::Relaxed);
        for position in self.head.load(Ordering::Relaxed)..tail {
            // SAFETY: both sides are gone and have stored their final positions; items in between
            // were moved in and not out.
            drop(unsafe { self.take(position) });
        }
    }
}

/// Makes a channel that holds up to `capacity` items.
///
/// # Panics
/// If `capacity` is 0.
#[must_use]
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel holds at least one item");
    let (producer, mut consumers) = cursors(capacity as u64, 1);
    let cells = (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
    let slots = Arc::new(Slots {
        cells: cells.collect(),
        head: AtomicU64::new(0),
        tail: AtomicU64::new(0),
    });
    let consumer = consumers.pop().expect("one consumer was asked for");
    let receiver = Receiver { consumer, slots: Arc::clone(&slots) };
    (Sender { producer, slots, abandoned: false }, receiver)
}

/// The sending side. Dropping it ends the channel.
// The fields are dropped in this order: the final position is written before closing.
pub struct Sender<T: Send> {
    producer: Producer,
    slots: Arc<Slots<T>>,
    /// The receiver is known to be gone: its last items must stay, so no further item goes in.
    abandoned: bool,
}

impl<T: Send> Sender<T> {
    /// Returns the number of items that would be accepted now, after a poll of the receiver; 0 when
    /// it is gone.
    pub fn room(&mut self) -> usize {
        let room = self.producer.room();
        // In this order: a receiver that closed before the room was counted is seen here.
        self.abandoned |= self.producer.is_abandoned();
        if self.abandoned { 0 } else { room as usize }
    }

    /// Returns up to `wanted` items of room; polls the receiver only if the cached answer is less.
    fn room_for(&mut self, wanted: usize) -> usize {
        let granted = if self.abandoned { 0 } else { self.producer.granted() as usize };
        if granted >= wanted { wanted } else { self.room().min(wanted) }
    }

    /// Sends one item.
    ///
    /// # Errors
    /// The item itself when there is no room, or the receiver is gone.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.room_for(1) == 0 {
            return Err(item);
        }
        // SAFETY: the cursor granted this slot, and its last item has been taken out.
        unsafe { self.slots.put(self.producer.position(), item) };
        self.producer.advance(1);
        Ok(())
    }

    /// Sends items from the front of `items`, as many as there is room for, in order and in one
    /// step; returns how many. The others stay.
    pub fn push_batch(&mut self, items: &mut Vec<T>) -> usize {
        let count = self.room_for(items.len());
        if count == 0 {
            return 0;
        }
        for (position, item) in (self.producer.position()..).zip(items.drain(..count)) {
            // SAFETY: the cursor granted `count` slots, and their last items have been taken out.
            unsafe { self.slots.put(position, item) };
        }
        self.producer.advance(count as u64);
        count
    }

    /// Whether the receiver is gone: no item sent from now on will be taken.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.producer.is_abandoned()
    }

    /// Takes back the items that a receiver has left when it is gone, oldest first; returns how
    /// many. While the receiver is there, 0.
    pub fn reclaim(&mut self, items: &mut Vec<T>) -> usize {
        if !self.producer.is_abandoned() {
            return 0;
        }
        self.abandoned = true;
        let (head, tail) = (self.slots.head.load(Ordering::Relaxed), self.producer.position());
        items.reserve((tail - head) as usize);
        // Before they are moved out: at worst items are leaked, never dropped twice.
        self.slots.head.store(tail, Ordering::Relaxed);
        // SAFETY: the receiver closed after it wrote its final position, and `is_abandoned`
        // acquires that. These items were moved in and not out, and no other code reads them any
        // more.
        items.extend((head..tail).map(|position| unsafe { self.slots.take(position) }));
        (tail - head) as usize
    }
}

impl<T: Send> Drop for Sender<T> {
    fn drop(&mut self) {
        self.slots.tail.store(self.producer.position(), Ordering::Relaxed);
    }
}

/// The receiving side. Dropping it leaves the remaining items to the sender.
// The fields are dropped in this order: the final position is written before closing.
pub struct Receiver<T: Send> {
    consumer: Consumer,
    slots: Arc<Slots<T>>,
}

impl<T: Send> Receiver<T> {
    /// Returns the number of items that can be taken now, after a poll of the sender.
    #[must_use]
    pub fn available(&self) -> usize {
        self.consumer.available() as usize
    }

    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        if !self.consumer.has(1) {
            return None;
        }
        // SAFETY: by the cursor this slot holds an item and belongs to this side until it advances.
        let item = unsafe { self.slots.take(self.consumer.position()) };
        self.consumer.advance(1);
        Some(item)
    }

    /// Appends the oldest items, at most `max`, in order and in one step; returns how many.
    /// Allocates only where `items` has no capacity for them.
    pub fn pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> usize {
        let wanted = max as u64;
        // The cached answer first: a poll costs the sender's cache line.
        let count = if self.consumer.has(wanted) { wanted } else { self.consumer.available() };
        let count = count.min(wanted);
        if count == 0 {
            // Polling an empty channel does not write to the shared lines.
            return 0;
        }
        items.reserve(count as usize);
        let first = self.consumer.position();
        // SAFETY: by the cursor these slots hold items and belong to this side until it advances,
        // and with room reserved nothing can fail before that.
        items.extend((first..first + count).map(|position| unsafe { self.slots.take(position) }));
        self.consumer.advance(count);
        count as usize
    }

    /// Whether the sender is gone and everything that it sent has been taken.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.consumer.available() == 0 && self.consumer.is_ended()
    }
}

impl<T: Send> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.slots.head.store(self.consumer.position(), Ordering::Relaxed);
    }
}
