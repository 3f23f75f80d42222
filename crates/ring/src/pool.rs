//! Memory that rings of one thread share, so that a chain of blocks works on a few hot buffers.
//!
//! Rings whose two ends belong to one thread are empty most of the time: a block fills one, the
//! next empties it. With memory of its own each would be cold when its turn comes again. A ring
//! of a pool borrows a buffer when its writer asks for room, and gives it back as soon as its
//! reader has emptied it; the buffer given back last is lent first. So a chain alternates between
//! two buffers, however long it is, and a ring that keeps items keeps its buffer.
//!
//! **Ownership.** A buffer that is lent is one ring's until that ring is empty and its writer has
//! put down the room that it last took up: then nobody can have a slice of it. One thread at a time
//! borrows, which every access checks, until a ring is [settled](Loan::reclaim): it keeps its
//! buffer from then on, and its ends may part.

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
    /// Who may use it, as [`token`] names threads.
    owner: AtomicUsize,
    maps: Box<[DoubleMap]>,
    /// Base addresses of the free buffers, the hottest last.
    free: Box<[AtomicPtr<u8>]>,
    free_count: AtomicUsize,
}

impl Pool {
    /// `rings` buffers of at least `bytes` for items of the type `item`: one for each ring that is
    /// to use it, so that there is always one left.
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
    /// No other thread is using one of them now, nor will before it enters; and all that others did
    /// with them happened before this.
    pub unsafe fn enter(&self) {
        self.stock.owner.store(token(), Ordering::Relaxed);
    }

    /// Makes it nobody's. No thread can use the rings of this pool until one enters.
    ///
    /// # Safety
    /// No thread is using one of them now.
    pub unsafe fn leave(&self) {
        self.stock.owner.store(NOBODY, Ordering::Relaxed);
    }

    /// Bytes of each buffer; 0 without any.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.stock.maps.first().map_or(0, DoubleMap::capacity_bytes)
    }

    /// Whether both are the same pool.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stock, &other.stock)
    }

    /// The hottest free buffer.
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

/// What one ring has borrowed, shared by its two ends and by who moves them to other threads.
#[derive(Clone, Debug)]
pub struct Loan {
    shared: Arc<LoanShared>,
}

#[derive(Debug)]
struct LoanShared {
    pool: Pool,
    /// Null while the ring is empty and not settled.
    base: AtomicPtr<u8>,
    /// Position of the item that the buffer began with when it was lent.
    origin: AtomicU64,
    /// The writer may have a slice of the buffer.
    taken_up: AtomicBool,
    /// The ring keeps its buffer.
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

    /// The pool that it borrows from, until it is settled.
    #[must_use]
    pub fn pool(&self) -> Option<&Pool> {
        (!self.is_settled()).then_some(&self.shared.pool)
    }

    /// Gives the ring a buffer of the pool's for good, the one it has or another, so that its ends
    /// may part.
    ///
    /// # Safety
    /// No other thread is using a ring of the pool now, and all that others did with them happened
    /// before this.
    pub unsafe fn reclaim(&self) {
        if self.is_settled() {
            return;
        }
        let LoanShared { pool, base, settled, .. } = &*self.shared;
        if base.load(Ordering::Relaxed).is_null() {
            base.store(pool.lend(), Ordering::Relaxed);
        }
        // Release: whoever sees that it is settled sees the buffer.
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

    /// The buffer, null if there is none, and the position of the item it began with.
    ///
    /// # Panics
    /// On any thread but the one that entered the pool, until the ring is settled.
    #[inline]
    pub(crate) fn base(&self) -> (*mut u8, u64) {
        let owner = self.shared.pool.stock.owner.load(Ordering::Relaxed);
        let allowed = owner == token() || self.is_settled();
        assert!(allowed, "a port was used outside of its block's thread");
        let LoanShared { base, origin, .. } = &*self.shared;
        (base.load(Ordering::Relaxed), origin.load(Ordering::Relaxed))
    }

    /// The writer at `position` takes a slice: there is a buffer from here on, and it stays until
    /// the writer [puts it down](Self::put_down).
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

    /// The writer has no slice any more.
    #[inline]
    pub(crate) fn put_down(&self) {
        if self.shared.taken_up.load(Ordering::Relaxed) {
            // Release: what the writer's slice was used for comes before the buffer is another's.
            self.shared.taken_up.store(false, Ordering::Release);
        }
    }

    /// The reader has read everything and has no slice any more: gives the buffer back, unless it
    /// is the ring's for good or the writer may have a slice.
    #[inline]
    pub(crate) fn give_back(&self) {
        let (base, _) = self.base();
        if !base.is_null() && !self.is_settled() && !self.shared.taken_up.load(Ordering::Acquire) {
            self.shared.pool.take_back(base);
            self.shared.base.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
}

/// Of a pool: no thread.
const NOBODY: usize = 0;

/// A number that no other thread of this process ever has.
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
