//! Trains: straight blocks of one thread that hand a batch on without the rings between them.
//!
//! ```text
//!   apart:     block ─▶ ring ─▶ block ─▶ ring ─▶ block      a look at two rings for each call
//!   as train:  block ───▶ lane ───▶ block ───▶ lane ───▶ block      one look for all
//! ```
//!
//! Where a batch passes several blocks in the nearest cache, what the runtime does between two of
//! them counts: looking at rings, borrowing memory, carrying tags. Blocks that
//! [are straight](crate::Block::is_straight) need none of it as long as nothing is left in the
//! rings between them and no tag is on its way. The runtime then lends the first of them a place to
//! write to, the next the same place to read from, and so on. Whenever anything is unusual, it
//! calls every block by itself as ever, so a train is never needed for a result.
//!
//! Positions and counters go on as if the items had gone through the rings.

use crate::item::Item;
use crate::port::{In, Out};
use std::any::TypeId;
use std::cell::UnsafeCell;

/// What a [`Place`] is aligned to. As page begins on page, so that a block which writes one place
/// while it reads another never reads what has the same low address bits as what it has just
/// written: processors take the one for the other for a moment, which costs up to 8 % of a copy.
pub(crate) const PAGE_BYTES: usize = 4096;

#[derive(Debug)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Memory for a batch of one type between two blocks.
#[derive(Debug)]
pub(crate) struct Place {
    pages: Box<[UnsafeCell<Page>]>,
    item: TypeId,
}

impl Place {
    /// For at least `bytes` of items of the type `item`, all zero.
    pub(crate) fn new(item: TypeId, bytes: usize) -> Self {
        let pages = (0..bytes.div_ceil(PAGE_BYTES)).map(|_| UnsafeCell::new(Page([0; PAGE_BYTES])));
        Self { pages: pages.collect(), item }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    pub(crate) fn item(&self) -> TypeId {
        self.item
    }

    /// Lends it to a lane.
    #[inline]
    pub(crate) fn lend(&self) -> Lent {
        Lent { base: self.pages.as_ptr().cast_mut().cast(), item: self.item }
    }
}

/// A [`Place`], lent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    base: *mut u8,
    item: TypeId,
}

impl Lent {
    #[inline]
    fn of<T: Item>(self) -> *mut T {
        assert!(self.item == TypeId::of::<T>(), "a lane was used with another port");
        self.base.cast()
    }
}

/// The way of one batch through one block of a train: from where the block before left it, or from
/// the block's input, to where the next one takes it, or to the block's output.
#[derive(Debug)]
pub struct Lane {
    items: usize,
    from: Option<Lent>,
    to: Option<Lent>,
}

impl Lane {
    /// # Safety
    /// As long as the lane lives, `from` and `to` are lent by nobody else, are not the same, and
    /// hold that many items, aligned to at most [`PAGE_BYTES`].
    #[inline]
    pub(crate) unsafe fn new(items: usize, from: Option<Lent>, to: Option<Lent>) -> Self {
        Self { items, from, to }
    }

    #[inline]
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// Takes the batch through a block with these two ports: `run` gets two slices of one length.
    #[inline]
    pub fn through<A: Item, B: Item>(
        &mut self,
        input: &mut In<A>,
        output: &mut Out<B>,
        run: impl FnOnce(&[A], &mut [B]),
    ) {
        self.take(input, |from, lane| lane.source(output, |to| run(from, to)));
    }

    /// Takes the batch out of a block with this one port.
    #[inline]
    pub fn source<T: Item>(&mut self, output: &mut Out<T>, run: impl FnOnce(&mut [T])) {
        let Some(to) = self.to else {
            run(&mut output.slice_mut()[..self.items]);
            output.produce(self.items);
            return;
        };
        // SAFETY: by `new`, there are that many items, and nobody else has them; of this type,
        // which is checked, and zeros or items of an earlier batch, both valid (`Item`).
        run(unsafe { std::slice::from_raw_parts_mut(to.of::<T>(), self.items) });
    }

    /// Takes the batch into a block with this one port.
    #[inline]
    pub fn sink<T: Item>(&mut self, input: &mut In<T>, run: impl FnOnce(&[T])) {
        self.take(input, |from, _| run(from));
    }

    #[inline]
    fn take<T: Item>(&mut self, input: &mut In<T>, run: impl FnOnce(&[T], &mut Self)) {
        let Some(from) = self.from else {
            run(&input.slice()[..self.items], self);
            input.consume(self.items);
            return;
        };
        // SAFETY: as in `source`, and by `new` it is not where the lane leads to.
        run(unsafe { std::slice::from_raw_parts(from.of::<T>(), self.items) }, self);
    }
}
