//! Sample rings: one writer, one or more readers, contiguous slices of items.
//!
//! [`ring`] joins a [cursor](crate::cursor) to a [double mapping](crate::map). With several
//! readers every reader sees every item, from the same memory.

mod place;

use crate::cursor::{Consumer, ConsumerView, Producer, ProducerView, cursors};
use crate::map::{DoubleMap, MapError};
use place::ItemLayout;
use std::marker::PhantomData;
use std::sync::Arc;

/// An item of a ring: plain data of any size for which all-zero bytes are a valid value.
///
/// Implemented for every `Copy` type that is [`bytemuck::Zeroable`] (numbers, arrays, complex
/// numbers); a user's struct gets it with `#[derive(Clone, Copy, bytemuck::Zeroable)]`. A new ring
/// is all zeros, and later a writer's slice shows old items, never invalid ones.
pub trait Item: Copy + bytemuck::Zeroable + Send + Sync + 'static {}

impl<T: Copy + bytemuck::Zeroable + Send + Sync + 'static> Item for T {}

/// The shape of a ring.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Items that must fit; rounded up to whole pages.
    pub items: usize,
    /// Number of readers, each of which sees every item. With 0, items are discarded.
    pub readers: usize,
    /// Whether to try 2 MiB pages first.
    pub huge_pages: bool,
    /// The most items in a slice; more if a side wants more.
    pub batch_items: usize,
}

impl RingOptions {
    /// Makes options for at least `items` items, one reader, normal pages.
    #[must_use]
    pub fn items(items: usize) -> Self {
        Self { items, readers: 1, huge_pages: false, batch_items: usize::MAX }
    }

    /// Sets the number of readers.
    #[must_use]
    pub fn readers(self, readers: usize) -> Self {
        Self { readers, ..self }
    }
}

/// The reason why a ring could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The item has no size, or is aligned to more than a page.
    #[error(
        "items of type {0} cannot be in a ring, because they have no size or need more than page \
         alignment"
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
    let memory = Arc::new(DoubleMap::new(bytes, options.huge_pages)?);
    let capacity = memory.capacity_bytes() / size;
    let (producer, consumers) = cursors(capacity as u64, options.readers);
    let batch = Batch { items: options.batch_items.max(1), least: options.batch_items.max(1) };
    let place = || ItemLayout::new(memory.clone());
    let readers = consumers
        .into_iter()
        .map(|cursor| {
            let view = cursor.view();
            Reader { cursor: Some(cursor), view, place: place(), batch, items: PhantomData }
        })
        .collect();
    let (view, cursor) = (producer.view(), Some(producer));
    Ok((Writer { cursor, view, place: place(), batch, items: PhantomData }, readers))
}

/// The part of the room or of the items that a side sees at once.
#[derive(Clone, Copy, Debug)]
struct Batch {
    items: usize,
    /// The configured batch; a side that wants more can increase it.
    least: usize,
}

/// The writing end of a [`ring`]. Dropping it ends the stream.
#[derive(Debug)]
pub struct Writer<T> {
    /// `None` while it is handed out.
    cursor: Option<Producer>,
    view: ProducerView,
    place: ItemLayout,
    batch: Batch,
    items: PhantomData<T>,
}

impl<T: Item> Writer<T> {
    /// Returns all the room that is there now, or a batch of it. It holds old items or
    /// zeros; write, then [`produce`](Self::produce).
    pub fn slice_mut(&mut self) -> &mut [T] {
        let Some(cursor) = &mut self.cursor else { return &mut [] };
        let items = (cursor.room() as usize).min(self.batch.items);
        if items == 0 {
            return &mut [];
        }
        let address = self.place.address(cursor.position());
        // SAFETY: the cursor grants `room` items from its position to the writer alone (ownership
        // rule in `cursor`), they are contiguous in the double mapping, aligned (see
        // `ItemLayout`), and hold zeros or earlier items, both valid (`Item`). The borrow of `self`
        // keeps the position unchanged, and room is at most one capacity, so no byte appears
        // twice.
        unsafe { std::slice::from_raw_parts_mut(address, items) }
    }

    /// Passes the first `items` of [`slice_mut`](Self::slice_mut) to the readers.
    ///
    /// # Panics
    /// If that slice was shorter, or the writer has been [closed](Self::close) since.
    pub fn produce(&mut self, items: usize) {
        let Some(cursor) = &mut self.cursor else {
            assert!(items == 0, "produced more than the room reported");
            return;
        };
        #[cfg(miri)]
        if items as u64 <= cursor.granted() {
            self.place.mirror::<T>(cursor.position(), items);
        }
        cursor.advance(items as u64);
    }

    /// Whether every reader is gone (false for a ring made without readers).
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.view.is_abandoned()
    }
}

/// A reading end of a [`ring`]. Dropping it lets the writer continue without it.
#[derive(Debug)]
pub struct Reader<T> {
    /// `None` while it is handed out.
    cursor: Option<Consumer>,
    view: ConsumerView,
    place: ItemLayout,
    batch: Batch,
    items: PhantomData<T>,
}

impl<T: Item> Reader<T> {
    /// Returns every item that is there now, or a batch of them.
    #[must_use]
    pub fn slice(&self) -> &[T] {
        let Some(cursor) = &self.cursor else { return &[] };
        let items = (cursor.available() as usize).min(self.batch.items);
        let address = self.place.address(cursor.position());
        // SAFETY: the cursor grants `available` items from its position for reading, the
        // writer does not touch them until they are consumed, which takes `&mut self`; they
        // are contiguous, aligned and valid items as in `Writer::slice_mut`.
        unsafe { std::slice::from_raw_parts(address, items) }
    }

    /// Returns the items that slices may show until the next poll, a batch at a time.
    #[must_use]
    pub fn available(&self) -> usize {
        self.cursor.as_ref().map_or(0, |cursor| cursor.available() as usize)
    }

    /// Returns the first `items` of [`slice`](Self::slice) to the writer as room.
    ///
    /// # Panics
    /// If that slice was shorter.
    pub fn consume(&mut self, items: usize) {
        let Some(cursor) = &mut self.cursor else {
            assert!(items == 0, "consumed more than was reported available");
            return;
        };
        cursor.advance(items as u64);
    }

    /// Whether the last [`slice`](Self::slice) showed the last items of the stream. It does not
    /// poll again: true means that the current slice is the rest.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        let cursor = self.cursor.as_ref();
        cursor
            .is_some_and(|cursor| cursor.is_ended() && cursor.granted() <= self.batch.items as u64)
    }
}

/// What both ends of a ring do alike.
macro_rules! either_end {
    ($End:ident, $Cursor:ident, $View:ident) => {
        impl<T: Item> $End<T> {
            /// Returns the items that fit when the ring is empty.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.place.capacity_bytes() / size_of::<T>()
            }

            /// Returns the items that passed this end since the start.
            #[must_use]
            pub fn position(&self) -> u64 {
                self.view.position()
            }

            /// Sets the room or the items that the next call wants, for the [view](Self::view).
            pub fn want(&mut self, items: usize) {
                self.view.want(items as u64);
                self.batch.items = self.batch.least.max(items);
            }

            /// Hands out the cursor, so that items can [bypass](Producer::count_bypassed) the ring;
            /// `None` if
            /// it is out already. The slice is empty until [`resume`](Self::resume).
            pub fn bypass(&mut self) -> Option<$Cursor> {
                self.cursor.take()
            }

            /// Continues with the cursor that [`bypass`](Self::bypass) handed out. A cursor of
            /// another ring is dropped, as is this ring's if a cursor is there.
            pub fn resume(&mut self, cursor: $Cursor) {
                if self.cursor.is_none() && self.view.is_same(&cursor.view()) {
                    self.cursor = Some(cursor);
                }
            }

            /// Returns a view of this end, in items.
            #[must_use]
            pub fn view(&self) -> $View {
                self.view.clone()
            }

            /// Ends the use of the ring by this end: there is no room and no item for it any more.
            /// Readers drain what a closed writer has produced; a writer does not wait for a closed
            /// reader. Without effect while the cursor is [handed out](Self::bypass).
            pub fn close(&mut self) {
                if let Some(cursor) = &mut self.cursor {
                    cursor.close();
                }
            }
        }
    };
}

either_end!(Writer, Producer, ProducerView);
either_end!(Reader, Consumer, ConsumerView);
