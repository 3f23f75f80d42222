//! Memory that rings of one thread share, so that a chain of blocks works on a few hot buffers.
//!
//! Rings whose two ends belong to one thread are empty most of the time: a block fills one, the
//! next empties it. With memory of its own each would be cold when it is used again. A ring of a
//! pool borrows a buffer when its writer asks for room, and gives it back as soon as its reader has
//! emptied it; the buffer given back last is lent first. So a chain alternates between two buffers,
//! however long it is, and a ring that keeps items keeps its buffer.
//!
//! **Ownership.** A buffer that is lent is one ring's until that ring is empty and its writer has
//! put down the room that it last took up: then no slice of it can exist. One thread at a time
//! borrows, which every access checks, until a ring is [reclaimed](Loan::reclaim): it keeps its
//! buffer from then on, and its ends may be on different threads.

use crate::map::{DoubleMap, MapError};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::any::TypeId;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// Buffers of one size for items of one type. Clones are the same pool.
///
/// Every access is relaxed and no step is atomic beyond one word: see [`Pool::new`].
#[derive(Clone, Debug)]
pub struct Pool {
    stock: Arc<Stock>,
}

#[derive(Debug)]
struct Stock {
    item: TypeId,
    /// The thread that may use it, as a [`token`].
    owner: AtomicUsize,
    maps: Box<[DoubleMap]>,
    /// Base addresses of the free buffers, the hottest last.
    free: Box<[AtomicPtr<u8>]>,
    free_count: AtomicUsize,
}

impl Pool {
    /// Makes `rings` buffers of at least `bytes` for items of the type `item`: one for each ring
    /// that is to use the pool, so that there is always a free one.
    ///
    /// # Errors
    /// [`MapError`] when memory is refused.
    pub fn new(
        item: TypeId,
        rings: usize,
        bytes: usize,
        huge_pages: bool,
    ) -> Result<Self, MapError> {
        let maps = (0..rings).map(|_| DoubleMap::new(bytes, huge_pages));
        let maps: Box<[DoubleMap]> = maps.collect::<Result<_, _>>()?;
        let free = maps.iter().map(|map| AtomicPtr::new(map.base().as_ptr())).collect();
        let free_count = AtomicUsize::new(maps.len());
        let stock = Stock { item, owner: AtomicUsize::new(NOBODY), maps, free, free_count };
        Ok(Self { stock: Arc::new(stock) })
    }

    /// Makes the calling thread the one that may use the rings of this pool.
    ///
    /// # Safety
    /// No other thread is using one of them now, nor will before it enters; and all uses by others
    /// happened before this.
    pub unsafe fn enter(&self) {
        self.stock.owner.store(token(), Ordering::Relaxed);
    }

    /// Removes the owner. No thread can use the rings of this pool until one enters.
    ///
    /// # Safety
    /// No thread is using one of them now.
    pub unsafe fn leave(&self) {
        self.stock.owner.store(NOBODY, Ordering::Relaxed);
    }

    /// Returns the bytes of each buffer; 0 without any.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.stock.maps.first().map_or(0, DoubleMap::capacity_bytes)
    }

    /// Whether both are the same pool.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stock, &other.stock)
    }

    /// Takes the hottest free buffer.
    #[inline]
    fn lend(&self) -> *mut u8 {
        let left = self.stock.free_count.load(Ordering::Relaxed);
        let left = left.checked_sub(1).expect("a pool serves as many rings as it was made for");
        self.stock.free_count.store(left, Ordering::Relaxed);
        self.stock.free[left].load(Ordering::Relaxed)
    }

    #[inline]
    fn take_back(&self, base: *mut u8) {
        let count = self.stock.free_count.load(Ordering::Relaxed);
        self.stock.free[count].store(base, Ordering::Relaxed);
        self.stock.free_count.store(count + 1, Ordering::Relaxed);
    }

    /// Whether rings of such items may use it.
    pub(crate) fn fits(&self, item: TypeId, size: usize) -> bool {
        let capacity = self.capacity_bytes();
        self.stock.item == item && capacity > 0 && capacity.is_multiple_of(size)
    }
}

/// The loan of one ring, shared by its two ends and by the code that moves them to other threads.
#[derive(Clone, Debug)]
pub struct Loan {
    shared: Arc<LoanShared>,
}

#[derive(Debug)]
struct LoanShared {
    pool: Pool,
    /// Null while the ring is empty and has no permanent buffer.
    base: AtomicPtr<u8>,
    /// Position of the item that the buffer began with when it was lent.
    origin: AtomicU64,
    /// The writer may have a slice of the buffer.
    taken_up: AtomicBool,
    /// The ring keeps its buffer permanently.
    settled: AtomicBool,
}

impl Loan {
    pub(crate) fn new(pool: &Pool) -> Self {
        let shared = LoanShared {
            pool: pool.clone(),
            base: AtomicPtr::new(ptr::null_mut()),
            origin: AtomicU64::new(0),
            taken_up: AtomicBool::new(false),
            settled: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the pool that it borrows from, until it has a permanent buffer.
    #[must_use]
    pub fn pool(&self) -> Option<&Pool> {
        (!self.is_settled()).then_some(&self.shared.pool)
    }

    /// Gives the ring a buffer of the pool permanently, its present one or another, so that its
    /// ends may be on different threads.
    ///
    /// # Safety
    /// No other thread is using a ring of the pool now, and all uses by others happened before
    /// this.
    pub unsafe fn reclaim(&self) {
        if self.is_settled() {
            return;
        }
        let LoanShared { pool, base, settled, .. } = &*self.shared;
        if base.load(Ordering::Relaxed).is_null() {
            base.store(pool.lend(), Ordering::Relaxed);
        }
        // Release: a thread that sees `settled` sees the buffer.
        settled.store(true, Ordering::Release);
    }

    #[inline]
    fn is_settled(&self) -> bool {
        self.shared.settled.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.shared.pool.capacity_bytes()
    }

    /// Returns the buffer, null if there is none, and the position of the item it began with.
    ///
    /// # Panics
    /// On any thread but the one that entered the pool, unless the buffer is permanent.
    #[inline]
    pub(crate) fn base(&self) -> (*mut u8, u64) {
        let owner = self.shared.pool.stock.owner.load(Ordering::Relaxed);
        let allowed = owner == token() || self.is_settled();
        assert!(allowed, "a port was used outside of its block's thread");
        let LoanShared { base, origin, .. } = &*self.shared;
        (base.load(Ordering::Relaxed), origin.load(Ordering::Relaxed))
    }

    /// Notes that the writer at `position` takes a slice: there is a buffer from here on, and it
    /// stays until the writer [puts it down](Self::put_down).
    #[inline]
    pub(crate) fn take_up(&self, position: u64) {
        let (base, _) = self.base();
        if self.is_settled() {
            return;
        }
        if base.is_null() {
            self.shared.base.store(self.shared.pool.lend(), Ordering::Relaxed);
            self.shared.origin.store(position, Ordering::Relaxed);
        }
        self.shared.taken_up.store(true, Ordering::Relaxed);
    }

    /// Notes that the writer has no slice any more.
    #[inline]
    pub(crate) fn put_down(&self) {
        if self.shared.taken_up.load(Ordering::Relaxed) {
            // Release: all uses of the writer's slice come before another ring gets the buffer.
            self.shared.taken_up.store(false, Ordering::Release);
        }
    }

    /// Returns the buffer after the reader has read everything and has no slice any more, unless it
    /// is permanent or the writer may have a slice.
    #[inline]
    pub(crate) fn give_back(&self) {
        let (base, _) = self.base();
        if !base.is_null() && !self.is_settled() && !self.shared.taken_up.load(Ordering::Acquire) {
            self.shared.pool.take_back(base);
            self.shared.base.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
}

/// The owner of a pool without a thread.
const NOBODY: usize = 0;

/// Returns a number that is unique among the threads of this process.
#[inline]
fn token() -> usize {
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(NOBODY) };
    }
    let own = OWN.get();
    if own == NOBODY { first_token(&OWN) } else { own }
}

#[cold]
fn first_token(own: &'static std::thread::LocalKey<Cell<usize>>) -> usize {
    static LAST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(NOBODY);
    own.set(LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
    own.get()
}
