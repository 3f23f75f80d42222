//! Sample rings: one writer, one or more readers, contiguous slices of items.
//!
//! [`ring`] joins a [cursor](crate::cursor) to a [double mapping](crate::map). With several
//! readers every reader sees every item, from the same memory.

use crate::cursor::{Consumer, ConsumerView, Producer, ProducerView, cursors};
use crate::map::{DoubleMap, MapError};
use crate::pool::{Loan, Pool};
use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a ring can hold: plain data of any size for which all-zero bytes are a valid value.
///
/// Implemented for every `Copy` type that is [`bytemuck::Zeroable`] (numbers, arrays, complex
/// numbers); a struct of one's own gets it with `#[derive(Clone, Copy, bytemuck::Zeroable)]`.
/// A new ring is all zeros, and later a writer's slice shows old items, never invalid ones.
pub trait Item: Copy + bytemuck::Zeroable + Send + Sync + 'static {}

impl<T: Copy + bytemuck::Zeroable + Send + Sync + 'static> Item for T {}

/// The shape of a ring.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Items that must fit; rounded up to whole pages.
    pub items: usize,
    /// Number of readers, each of which sees every item. With none, items are discarded.
    pub readers: usize,
    /// Whether to try 2 MiB pages first.
    pub huge_pages: bool,
    /// The most items that a slice shows; more if a side wants more.
    pub batch_items: usize,
    /// Where to borrow memory. Without effect unless the ring has one reader and the pool was
    /// made for its items; its size is that of the pool's buffers then.
    pub pool: Option<Pool>,
}

impl RingOptions {
    /// A ring for at least `items` items, one reader, normal pages.
    #[must_use]
    pub fn items(items: usize) -> Self {
        Self { items, readers: 1, huge_pages: false, batch_items: usize::MAX, pool: None }
    }

    /// The same with `readers` readers.
    #[must_use]
    pub fn readers(self, readers: usize) -> Self {
        Self { readers, ..self }
    }
}

/// Why a ring could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The item has no size, or is aligned to more than a page.
    #[error(
        "items of type {0} cannot live in a ring: they need a size, and at most page alignment"
    )]
    Item(&'static str),
    /// The kernel refused the memory.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Makes a ring: its writer and as many readers as the options say.
///
/// # Errors
/// [`RingError`] for a type that cannot live in a ring, or when memory is refused.
pub fn ring<T: Item>(options: &RingOptions) -> Result<(Writer<T>, Vec<Reader<T>>), RingError> {
    let size = size_of::<T>();
    if size == 0 || align_of::<T>() > rustix::param::page_size() {
        return Err(RingError::Item(std::any::type_name::<T>()));
    }
    let pool = options
        .pool
        .as_ref()
        .filter(|pool| options.readers == 1 && pool.fits(TypeId::of::<T>(), size));
    let memory = if let Some(pool) = pool {
        Memory::Borrowed(Loan::new(pool))
    } else {
        let bytes = options.items.max(1).saturating_mul(size);
        Memory::Own(Arc::new(DoubleMap::new(bytes, options.huge_pages)?))
    };
    let place =
        || Place { capacity_bytes: memory.capacity_bytes(), memory: memory.clone(), offset: 0 };
    let capacity = memory.capacity_bytes() / size;
    let (producer, consumers) = cursors(capacity as u64, options.readers);
    let batch = Batch { items: options.batch_items.max(1), least: options.batch_items.max(1) };
    let readers = consumers
        .into_iter()
        .map(|cursor| Reader { cursor, place: place(), batch, items: PhantomData })
        .collect();
    let writer = Writer { cursor: producer, place: place(), batch, items: PhantomData };
    Ok((writer, readers))
}

/// What holds the items.
#[derive(Clone, Debug)]
enum Memory {
    Own(Arc<DoubleMap>),
    Borrowed(Loan),
}

impl Memory {
    fn capacity_bytes(&self) -> usize {
        match self {
            Self::Own(map) => map.capacity_bytes(),
            Self::Borrowed(loan) => loan.capacity_bytes(),
        }
    }
}

/// Where one side stands in the mapping.
#[derive(Debug)]
struct Place {
    memory: Memory,
    capacity_bytes: usize,
    /// Position modulo capacity, in bytes. Capacity is a multiple of the page and positions
    /// are whole items, hence multiples of their alignment: so is this.
    offset: usize,
}

impl Place {
    /// The address; null if the ring is empty and has no memory now.
    fn address<T>(&self) -> *mut T {
        let base = match &self.memory {
            Memory::Own(map) => map.base().as_ptr(),
            Memory::Borrowed(loan) => match loan.base() {
                base if base.is_null() => return std::ptr::null_mut(),
                base => base,
            },
        };
        // In bounds: offset < capacity, and the mapping is two capacities long.
        base.wrapping_add(self.offset).cast()
    }

    /// The same for the writer, who gets memory if there is none.
    fn room_address<T>(&mut self) -> *mut T {
        let base = match &self.memory {
            Memory::Own(map) => map.base().as_ptr(),
            Memory::Borrowed(loan) => {
                let (base, anew) = loan.base_to_write();
                if anew {
                    self.offset = 0;
                }
                base
            }
        };
        base.wrapping_add(self.offset).cast()
    }

    /// The reader has read everything there is.
    fn emptied(&mut self) {
        if let Memory::Borrowed(loan) = &self.memory
            && loan.give_back()
        {
            self.offset = 0;
        }
    }

    fn loan(&self) -> Option<&Loan> {
        match &self.memory {
            Memory::Own(_) => None,
            Memory::Borrowed(loan) => Some(loan),
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
        if self.offset >= self.capacity_bytes {
            self.offset -= self.capacity_bytes;
        }
    }
}

/// How much of the room or of the items a side sees at once.
#[derive(Clone, Copy, Debug)]
struct Batch {
    items: usize,
    /// What was asked for; what a side wants can make it more.
    least: usize,
}

impl Batch {
    fn want(&mut self, items: usize) {
        self.items = self.least.max(items);
    }
}

/// The writing end of a [`ring`]. Dropping it ends the stream.
#[derive(Debug)]
pub struct Writer<T> {
    cursor: Producer,
    place: Place,
    batch: Batch,
    items: PhantomData<T>,
}

impl<T: Item> Writer<T> {
    /// All the room there is now, or a batch of it. Holds old items (of another ring, where
    /// memory is shared) or zeros; write, then [`produce`](Self::produce).
    pub fn slice_mut(&mut self) -> &mut [T] {
        let items = (self.cursor.room() as usize).min(self.batch.items);
        let address = self.place.room_address();
        // SAFETY: the cursor grants `room` items from this position to the writer alone
        // (ownership rule in `cursor`), they are contiguous in the double mapping, aligned
        // (see `Place::offset`), and hold zeros or earlier items, both valid (`Item`). The
        // borrow of `self` keeps the position where it is, and room is at most one capacity,
        // so no byte appears twice.
        unsafe { std::slice::from_raw_parts_mut(address, items) }
    }

    /// Hands the first `items` of [`slice_mut`](Self::slice_mut) to the readers.
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn produce(&mut self, items: usize) {
        if let Memory::Borrowed(loan) = &self.place.memory
            && items > 0
            && !loan.is_begun()
        {
            // The slice may be an old one, whose buffer was given back: what is produced always
            // has memory, and both ends begin at the same place in it.
            self.place.room_address::<T>();
        }
        self.cursor.advance(items as u64);
        self.place.advance(items * size_of::<T>());
    }

    /// Items that fit when the ring is empty.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.place.capacity_bytes / size_of::<T>()
    }

    /// Whether every reader has gone (false for a ring made without readers).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.cursor.is_abandoned()
    }

    /// Items produced since the start.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Says how much room the next call wants, for the [view](Self::view).
    pub fn want(&mut self, items: usize) {
        self.cursor.want(items as u64);
        self.batch.want(items);
    }

    /// See [`Producer::set_aside`].
    pub fn set_aside(&mut self) {
        self.cursor.set_aside();
    }

    /// See [`Producer::catch_up`].
    pub fn catch_up(&mut self) {
        self.cursor.catch_up();
    }

    /// Where this end stands, seen from outside, in items.
    #[must_use]
    pub fn view(&self) -> ProducerView {
        self.cursor.view()
    }

    /// Ends the stream: readers drain what is there.
    pub fn close(&mut self) {
        self.cursor.close();
    }

    /// What it has borrowed of a [pool](crate::pool).
    #[must_use]
    pub fn loan(&self) -> Option<&Loan> {
        self.place.loan()
    }
}

/// A reading end of a [`ring`]. Dropping it lets the writer go on without it.
#[derive(Debug)]
pub struct Reader<T> {
    cursor: Consumer,
    place: Place,
    batch: Batch,
    items: PhantomData<T>,
}

impl<T: Item> Reader<T> {
    /// Every item there is now, or a batch of them.
    #[must_use]
    pub fn slice(&self) -> &[T] {
        let items = (self.cursor.available() as usize).min(self.batch.items);
        let address = self.place.address::<T>();
        if address.is_null() {
            return &[];
        }
        // SAFETY: the cursor grants `available` items from this position for reading, the
        // writer does not touch them until they are consumed, which takes `&mut self`; they
        // are contiguous, aligned and valid items as in `Writer::slice_mut`.
        unsafe { std::slice::from_raw_parts(address, items) }
    }

    /// Items that slices may show until the next look, a batch at a time.
    #[must_use]
    pub fn available(&self) -> usize {
        self.cursor.available() as usize
    }

    /// Gives the first `items` of [`slice`](Self::slice) back to the writer.
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn consume(&mut self, items: usize) {
        self.cursor.advance(items as u64);
        self.place.advance(items * size_of::<T>());
        if matches!(self.place.memory, Memory::Borrowed(_)) && self.cursor.is_drained() {
            self.place.emptied();
        }
    }

    /// Whether the last [`slice`](Self::slice) showed all that will ever come. It does not look
    /// again: true means that the slice in hand is the rest.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.cursor.is_ended() && self.cursor.granted() <= self.batch.items as u64
    }

    /// Items that fit when the ring is empty.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.place.capacity_bytes / size_of::<T>()
    }

    /// Items consumed since the start.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Says how many items the next call wants, for the [view](Self::view).
    pub fn want(&mut self, items: usize) {
        self.cursor.want(items as u64);
        self.batch.want(items);
    }

    /// See [`Consumer::set_aside`].
    pub fn set_aside(&mut self) {
        self.cursor.set_aside();
    }

    /// See [`Consumer::catch_up`].
    pub fn catch_up(&mut self) {
        self.cursor.catch_up();
    }

    /// Where this end stands, seen from outside, in items.
    #[must_use]
    pub fn view(&self) -> ConsumerView {
        self.cursor.view()
    }

    /// What it has borrowed of a [pool](crate::pool).
    #[must_use]
    pub fn loan(&self) -> Option<&Loan> {
        self.place.loan()
    }

    /// Stops reading: the writer no longer waits for this reader.
    pub fn close(&mut self) {
        self.cursor.close();
    }
}
