//! Fused chains: one-to-one blocks of one thread that pass a batch on without the rings between
//! them.
//!
//! ```text
//!   apart:  block ─▶ ring ─▶ block ─▶ ring ─▶ block      two rings polled for each call
//!   fused:  block ───▶ lane ───▶ block ───▶ lane ───▶ block      one poll for all
//! ```
//!
//! Where a batch passes several blocks in the nearest cache, the runtime's work between two of them
//! counts: polling rings, carrying tags. Blocks that [are
//! one-to-one](crate::OneToOne) need none of it as long as the rings between them are
//! empty and no tag is on its way. The runtime then lends the first of them a buffer to write to
//! (a [`Lane`]), the next the same buffer to read from, and so on. In any other state it calls
//! every block by itself, so a result never depends on a fused chain.
//!
//! Positions and counters advance as if the items had gone through the rings, but up to a few
//! batches (a few microseconds) later.

use crate::item::Item;
use crate::port::{In, Out};
use std::any::TypeId;
use std::cell::UnsafeCell;

/// The alignment of a [`BatchMemory`]. Buffers begin on pages, so that a block which writes one
/// buffer while it reads another never reads an address with the same low bits as one that it has
/// just written: processors mistake the one for the other for a moment, which costs up to 8 % of a
/// copy.
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
    /// Returns zeroed memory for at least `bytes` of items of the type `item`.
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

    /// Returns `items` of the buffer to read.
    ///
    /// # Safety
    /// The buffer holds that many `items`, and nothing writes to it while they are borrowed.
    #[inline]
    unsafe fn read<T: Item>(&self, items: usize) -> &[T] {
        // SAFETY: the caller's duty; the type is checked, and the bytes are zeros or items of an
        // earlier batch, both valid (`Item`).
        unsafe { std::slice::from_raw_parts(self.base(), items) }
    }

    /// Returns room for `items` in the buffer.
    ///
    /// # Safety
    /// There is room for that many `items`, and nothing else uses the buffer while it is borrowed.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller sees to it, and the pages are cells")]
    unsafe fn write<T: Item>(&self, items: usize) -> &mut [T] {
        // SAFETY: as in `read`.
        unsafe { std::slice::from_raw_parts_mut(self.base(), items) }
    }
}

/// The path of one batch through one block of a fused chain: from the buffer of the block before,
/// or the block's input, to the buffer for the next block, or the block's output.
#[derive(Debug)]
pub struct Lane<'a> {
    items: usize,
    /// A block has taken a lane [without items](Self::empty).
    taken: bool,
    from: Option<&'a BatchMemory>,
    to: Option<&'a BatchMemory>,
}

impl<'a> Lane<'a> {
    /// Returns a lane before the first block, for batches of `items`.
    #[inline]
    pub(crate) fn new(items: usize) -> Self {
        Self { items, taken: false, from: None, to: None }
    }

    /// Returns a lane from the ports of a block to its ports, for as many items as there are and
    /// find room: `work` of a block whose [`pass`](crate::Block::pass) says all.
    #[inline]
    #[must_use]
    pub fn of_ports() -> Self {
        Self::new(usize::MAX)
    }

    /// Whether `pass` of a block takes a lane. No item moves.
    pub(crate) fn is_taken_by(pass: impl FnOnce(&mut Self)) -> bool {
        let mut lane = Self::new(0);
        pass(&mut lane);
        lane.taken
    }

    /// Advances to the next block, which writes to the buffer `to`, or to its output.
    ///
    /// # Safety
    /// As long as the lane leads to or from the buffer, nothing else uses it; it is not the buffer
    /// that the lane led to before, and holds that many items, aligned to at most [`PAGE_BYTES`].
    #[inline]
    pub(crate) unsafe fn lead(&mut self, to: Option<&'a BatchMemory>) {
        (self.from, self.to) = (self.to, to);
    }

    /// Passes the batch through a block with these two ports: `run` gets two slices of one length.
    #[inline]
    pub fn through<A: Item, B: Item>(
        &mut self,
        input: &mut In<A>,
        output: &mut Out<B>,
        run: impl FnOnce(&[A], &mut [B]),
    ) {
        match (self.from, self.to) {
            (Some(from), Some(to)) => {
                // SAFETY: guaranteed by `lead`; the lane is borrowed, so `run` cannot use it again.
                let (from, to) = unsafe { (from.read(self.items), to.write(self.items)) };
                run(from, to);
            }
            _ => self.through_ports(input, output, run),
        }
    }

    /// Takes the batch out of a block with this one port.
    #[inline]
    pub fn source<T: Item>(&mut self, output: &mut Out<T>, run: impl FnOnce(&mut [T])) {
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

    // The code for the ends of a chain is kept apart from the code for its middle, which then needs
    // few registers. A chain has polled its ends; without a chain the ports decide.

    #[inline(never)]
    fn through_ports<A: Item, B: Item>(
        &mut self,
        input: &mut In<A>,
        output: &mut Out<B>,
        run: impl FnOnce(&[A], &mut [B]),
    ) {
        match (self.from, self.to) {
            (Some(from), _) => {
                // SAFETY: as in `through`.
                let from = unsafe { from.read(self.items) };
                run(from, &mut output.slice_mut()[..from.len()]);
                output.produce(from.len());
            }
            (None, Some(to)) => {
                // SAFETY: as in `through`.
                let to = unsafe { to.write(self.items) };
                let items = to.len();
                run(&input.slice()[..items], to);
                input.consume(items);
            }
            (None, None) => {
                let (from, to) = (input.slice(), output.slice_mut());
                let items = self.items_of_ports(from.len().min(to.len()));
                if items > 0 {
                    run(&from[..items], &mut to[..items]);
                    input.consume(items);
                    output.produce(items);
                }
            }
        }
    }

    #[inline(never)]
    fn empty_port<T: Item>(&mut self, input: &mut In<T>, run: impl FnOnce(&[T])) {
        let from = input.slice();
        let items = self.items_of_ports(from.len());
        if items > 0 {
            run(&from[..items]);
            input.consume(items);
        }
    }

    #[inline(never)]
    fn fill_port<T: Item>(&mut self, output: &mut Out<T>, run: impl FnOnce(&mut [T])) {
        let to = output.slice_mut();
        let items = self.items_of_ports(to.len());
        if items > 0 {
            run(&mut to[..items]);
            output.produce(items);
        }
    }

    /// Returns the items that pass where the ports have so many.
    fn items_of_ports(&mut self, items: usize) -> usize {
        self.taken = true;
        items.min(self.items)
    }
}
