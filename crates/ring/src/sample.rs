//! Sample rings: one writer, one or more readers, contiguous slices of items.
//!
//! [`ring`] joins a [cursor](crate::cursor) to a [double mapping](crate::map). With several
//! readers every reader sees every item, from the same memory.

use crate::cursor::{Consumer, ConsumerView, Producer, ProducerView, cursors};
use crate::map::{Backing, DoubleMap, MapError};
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
}

impl RingOptions {
    /// A ring for at least `items` items, one reader, normal pages.
    #[must_use]
    pub fn items(items: usize) -> Self {
        Self { items, readers: 1, huge_pages: false }
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
    let bytes = options.items.max(1).saturating_mul(size);
    let map = Arc::new(DoubleMap::new(bytes, options.huge_pages)?);
    let (producer, consumers) = cursors((map.capacity_bytes() / size) as u64, options.readers);
    let readers = consumers
        .into_iter()
        .map(|cursor| Reader { cursor, place: Place::new(&map), items: PhantomData })
        .collect();
    let writer = Writer { cursor: producer, place: Place::new(&map), items: PhantomData };
    Ok((writer, readers))
}

/// Where one side stands in the mapping.
#[derive(Debug)]
struct Place {
    map: Arc<DoubleMap>,
    /// Position modulo capacity, in bytes. Capacity is a multiple of the page and positions
    /// are whole items, hence multiples of their alignment: so is this.
    offset: usize,
}

impl Place {
    fn new(map: &Arc<DoubleMap>) -> Self {
        Self { map: Arc::clone(map), offset: 0 }
    }

    fn address<T>(&self) -> *mut T {
        // In bounds: offset < capacity, and the mapping is two capacities long.
        self.map.base().as_ptr().wrapping_add(self.offset).cast()
    }

    fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
        if self.offset >= self.map.capacity_bytes() {
            self.offset -= self.map.capacity_bytes();
        }
    }
}

/// The writing end of a [`ring`]. Dropping it ends the stream.
#[derive(Debug)]
pub struct Writer<T> {
    cursor: Producer,
    place: Place,
    items: PhantomData<T>,
}

impl<T: Item> Writer<T> {
    /// All the room there is now. Holds old items or zeros; write, then [`produce`](Self::produce).
    pub fn slice_mut(&mut self) -> &mut [T] {
        let items = self.cursor.room() as usize;
        // SAFETY: the cursor grants `room` items from this position to the writer alone
        // (ownership rule in `cursor`), they are contiguous in the double mapping, aligned
        // (see `Place::offset`), and hold zeros or earlier items, both valid (`Item`). The
        // borrow of `self` keeps the position where it is, and room is at most one capacity,
        // so no byte appears twice.
        unsafe { std::slice::from_raw_parts_mut(self.place.address(), items) }
    }

    /// Hands the first `items` of [`slice_mut`](Self::slice_mut) to the readers.
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn produce(&mut self, items: usize) {
        self.cursor.advance(items as u64);
        self.place.advance(items * size_of::<T>());
    }

    /// Items that fit when the ring is empty.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.place.map.capacity_bytes() / size_of::<T>()
    }

    /// Whether every reader has gone (false for a ring made without readers).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.cursor.is_abandoned()
    }

    /// Says how much room the next call wants, for the [view](Self::view).
    pub fn want(&mut self, items: usize) {
        self.cursor.want(items as u64);
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

    /// Which pages hold the ring.
    #[must_use]
    pub fn backing(&self) -> &Backing {
        self.place.map.backing()
    }
}

/// A reading end of a [`ring`]. Dropping it lets the writer go on without it.
#[derive(Debug)]
pub struct Reader<T> {
    cursor: Consumer,
    place: Place,
    items: PhantomData<T>,
}

impl<T: Item> Reader<T> {
    /// Every item there is now.
    #[must_use]
    pub fn slice(&self) -> &[T] {
        let items = self.cursor.available() as usize;
        // SAFETY: the cursor grants `available` items from this position for reading, the
        // writer does not touch them until they are consumed, which takes `&mut self`; they
        // are contiguous, aligned and valid items as in `Writer::slice_mut`.
        unsafe { std::slice::from_raw_parts(self.place.address(), items) }
    }

    /// Gives the first `items` of [`slice`](Self::slice) back to the writer.
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn consume(&mut self, items: usize) {
        self.cursor.advance(items as u64);
        self.place.advance(items * size_of::<T>());
    }

    /// Whether the last [`slice`](Self::slice) showed all that will ever come. It does not look
    /// again: true means that the slice in hand is the rest.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.cursor.is_ended()
    }

    /// Items that fit when the ring is empty.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.place.map.capacity_bytes() / size_of::<T>()
    }

    /// Says how many items the next call wants, for the [view](Self::view).
    pub fn want(&mut self, items: usize) {
        self.cursor.want(items as u64);
    }

    /// Where this end stands, seen from outside, in items.
    #[must_use]
    pub fn view(&self) -> ConsumerView {
        self.cursor.view()
    }

    /// Stops reading: the writer no longer waits for this reader.
    pub fn close(&mut self) {
        self.cursor.close();
    }
}
