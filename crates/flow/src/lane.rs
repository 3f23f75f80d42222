//! Trains: straight blocks of one thread that hand a batch on without the rings between them.
//!
//! ```text
//!   apart:     block ─▶ ring ─▶ block ─▶ ring ─▶ block      a look at two rings for each call
//!   as train:  block ───▶ lane ───▶ block ───▶ lane ───▶ block      one look for all
//! ```
//!
//! Where a batch passes several blocks in the nearest cache, what the runtime does between two of
//! them counts: looking at rings, borrowing memory, carrying tags. Blocks that
//! [are straight](crate::Block::is_one_to_one) need none of it as long as nothing is left in the
//! rings between them and no tag is on its way. The runtime then lends the first of them a place to
//! write to, the next the same place to read from, and so on. Whenever anything is unusual, it
//! calls every block by itself as ever, so a train is never needed for a result.
//!
//! Positions and counters go on as if the items had gone through the rings; they may be told a few
//! batches, that is a few microseconds, later.

use crate::item::Item;
use crate::port::{In, Out};
use std::any::TypeId;
use std::cell::UnsafeCell;

/// What a [`BatchMemory`] is aligned to. As page begins on page, so that a block which writes one
/// place while it reads another never reads what has the same low address bits as what it has just
/// written: processors take the one for the other for a moment, which costs up to 8 % of a copy.
pub(crate) const PAGE_BYTES: usize = 4096;

#[derive(Debug)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Memory for a batch of one type between two blocks.
#[derive(Debug)]
pub(crate) struct BatchMemory {
    pages: Box<[UnsafeCell<Page>]>,
    item: TypeId,
}

impl BatchMemory {
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

    #[inline]
    fn base<T: Item>(&self) -> *mut T {
        assert!(self.item == TypeId::of::<T>(), "a lane was used with another port");
        self.pages.as_ptr().cast_mut().cast()
    }

    /// # Safety
    /// There are that many `items`, and nobody writes here as long as they are borrowed.
    #[inline]
    unsafe fn read<T: Item>(&self, items: usize) -> &[T] {
        // SAFETY: passed on to the caller; of this type, which is checked, and zeros or items of an
        // earlier batch, both valid (`Item`).
        unsafe { std::slice::from_raw_parts(self.base(), items) }
    }

    /// # Safety
    /// There is room for that many `items`, and nobody else uses it as long as it is borrowed.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller sees to it, and the pages are cells")]
    unsafe fn write<T: Item>(&self, items: usize) -> &mut [T] {
        // SAFETY: as in `read`.
        unsafe { std::slice::from_raw_parts_mut(self.base(), items) }
    }
}

/// The way of one batch through one block of a train: from where the block before left it, or from
/// the block's input, to where the next one takes it, or to the block's output.
#[derive(Debug)]
pub struct Lane<'a> {
    items: usize,
    from: Option<&'a BatchMemory>,
    to: Option<&'a BatchMemory>,
}

impl<'a> Lane<'a> {
    /// Before the first block: for batches of so many `items`.
    #[inline]
    pub(crate) fn new(items: usize) -> Self {
        Self { items, from: None, to: None }
    }

    /// Leads through the next block, and from there `to` a place, or to its output.
    ///
    /// # Safety
    /// As long as the lane leads there or from there, nobody else uses the place; it is not the
    /// one that the lane led to before, and holds that many items, aligned to at most
    /// [`PAGE_BYTES`].
    #[inline]
    pub(crate) unsafe fn lead(&mut self, to: Option<&'a BatchMemory>) {
        (self.from, self.to) = (self.to, to);
    }

    /// Takes the batch through a block with these two ports: `run` gets two slices of one length.
    #[inline]
    pub fn through<A: Item, B: Item>(
        &mut self,
        input: &mut In<A>,
        output: &mut Out<B>,
        run: impl FnOnce(&[A], &mut [B]),
    ) {
        match (self.from, self.to) {
            (Some(from), Some(to)) => {
                // SAFETY: by `lead`, and as the lane is borrowed, `run` cannot use it again.
                let (from, to) = unsafe { (from.read(self.items), to.write(self.items)) };
                run(from, to);
            }
            _ => self.through_ports(input, output, run),
        }
    }

    /// Takes the batch out of a block with this one port.
    #[inline]
    pub fn source<T: Item>(&mut self, output: &mut Out<T>, run: impl FnOnce(&mut [T])) {
        self.out(output, run);
    }

    #[inline]
    fn out<T: Item>(&self, output: &mut Out<T>, run: impl FnOnce(&mut [T])) {
        match self.to {
            // SAFETY: as in `through`.
            Some(to) => run(unsafe { to.write(self.items) }),
            None => self.fill_port(output, run),
        }
    }

    /// Takes the batch into a block with this one port.
    #[inline]
    pub fn sink<T: Item>(&mut self, input: &mut In<T>, run: impl FnOnce(&[T])) {
        match self.from {
            // SAFETY: as in `through`.
            Some(from) => run(unsafe { from.read(self.items) }),
            None => self.empty_port(input, run),
        }
    }

    // What happens at the ends of a train is kept out of the way of what happens inside, which
    // needs hardly a register then.

    #[inline(never)]
    fn through_ports<A: Item, B: Item>(
        &self,
        input: &mut In<A>,
        output: &mut Out<B>,
        run: impl FnOnce(&[A], &mut [B]),
    ) {
        match self.from {
            // SAFETY: as in `through`.
            Some(from) => self.fill_port(output, |to| run(unsafe { from.read(self.items) }, to)),
            None => self.empty_port(input, |from| self.out(output, |to| run(from, to))),
        }
    }

    #[inline(never)]
    fn empty_port<T: Item>(&self, input: &mut In<T>, run: impl FnOnce(&[T])) {
        run(&input.slice()[..self.items]);
        input.consume(self.items);
    }

    #[inline(never)]
    fn fill_port<T: Item>(&self, output: &mut Out<T>, run: impl FnOnce(&mut [T])) {
        run(&mut output.slice_mut()[..self.items]);
        output.produce(self.items);
    }
}
