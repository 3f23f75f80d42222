//! Memory that rings of one thread share, so that a chain of blocks works on a few hot buffers.
//!
//! Rings whose two ends belong to one thread are empty most of the time: a block fills one, the
//! next empties it. With memory of its own each would be cold when its turn comes again. A ring
//! of a pool borrows a buffer when its writer asks for room, and gives it back as soon as its
//! reader has emptied it; the buffer given back last is lent first. So a chain alternates between
//! two buffers, however long it is, and a ring that keeps items keeps its buffer.

use crate::map::{DoubleMap, MapError};
use crate::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::any::TypeId;
use std::ptr;
use std::sync::{Arc, OnceLock};

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
    /// Who may use it, as [`token`] names threads; 0 until somebody [enters](Pool::enter).
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
    /// # Safety
    /// No slice of one end of a ring of this pool may be in use while the other end of that ring
    /// is used. (That one thread at a time uses the pool is checked.)
    ///
    /// # Errors
    /// [`MapError`] when memory is refused.
    pub unsafe fn new(
        item: TypeId,
        rings: usize,
        bytes: usize,
        huge_pages: bool,
    ) -> Result<Self, MapError> {
        let maps = (0..rings).map(|_| DoubleMap::new(bytes, huge_pages));
        let maps: Box<[DoubleMap]> = maps.collect::<Result<_, _>>()?;
        let free = maps.iter().map(|map| AtomicPtr::new(map.base().as_ptr())).collect();
        let free_count = AtomicUsize::new(maps.len());
        let stock = Stock { item, owner: AtomicUsize::new(0), maps, free, free_count };
        Ok(Self { stock: Arc::new(stock) })
    }

    /// Makes the calling thread the one that may use the rings of this pool.
    ///
    /// # Safety
    /// The thread that entered before uses none of them any more, nor slices of them, and all that
    /// it did with them happened before this.
    pub unsafe fn enter(&self) {
        self.stock.owner.store(token(), Ordering::Relaxed);
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
        let left = self.stock.free_count.load(Ordering::Relaxed) - 1;
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
    /// Memory of the ring's own, once it has been settled.
    own: OnceLock<DoubleMap>,
    /// The writer has to start at the beginning of the buffer.
    anew: AtomicBool,
}

impl Loan {
    pub(crate) fn new(pool: &Pool) -> Self {
        let base = AtomicPtr::new(ptr::null_mut());
        let (own, anew) = (OnceLock::new(), AtomicBool::new(false));
        Self { shared: Arc::new(LoanShared { pool: pool.clone(), base, own, anew }) }
    }

    /// The pool that it borrows from, until it is settled.
    #[must_use]
    pub fn pool(&self) -> Option<&Pool> {
        self.shared.own.get().is_none().then_some(&self.shared.pool)
    }

    /// Gives the ring memory of its own, with what it holds, so that its ends may part.
    ///
    /// # Safety
    /// Neither end is used meanwhile, and no slice of them.
    ///
    /// # Errors
    /// [`MapError`] when memory is refused; nothing has changed then.
    pub unsafe fn settle(&self) -> Result<(), MapError> {
        let LoanShared { pool, base, own, anew } = &*self.shared;
        if own.get().is_some() {
            return Ok(());
        }
        let bytes = pool.capacity_bytes();
        let map = DoubleMap::new(bytes, false)?;
        let (from, to) = (base.load(Ordering::Relaxed), map.base().as_ptr());
        if from.is_null() {
            anew.store(true, Ordering::Relaxed);
        } else {
            // SAFETY: both are buffers of that many bytes, unlike ones, and nobody uses either.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
            pool.take_back(from);
        }
        base.store(to, Ordering::Relaxed);
        own.get_or_init(|| map);
        Ok(())
    }

    #[inline]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.shared.pool.capacity_bytes()
    }

    /// The buffer; null if there is none.
    ///
    /// # Panics
    /// On any thread but the one that entered the pool, until the ring is settled.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        let owner = self.shared.pool.stock.owner.load(Ordering::Relaxed);
        let allowed = owner == token() || self.shared.own.get().is_some();
        assert!(allowed, "a port was used outside of its block's thread");
        self.shared.base.load(Ordering::Relaxed)
    }

    /// The buffer for the writer, borrowed if there is none; true if it has to begin anew.
    #[inline]
    pub(crate) fn base_to_write(&self) -> (*mut u8, bool) {
        let base = self.base();
        if base.is_null() {
            let base = self.shared.pool.lend();
            self.shared.base.store(base, Ordering::Relaxed);
            return (base, true);
        }
        let anew = self.shared.anew.load(Ordering::Relaxed);
        if anew {
            self.shared.anew.store(false, Ordering::Relaxed);
        }
        (base, anew)
    }

    /// Whether there is a buffer that the writer has begun in: nothing is to be done before more is
    /// produced.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        let LoanShared { base, anew, .. } = &*self.shared;
        !base.load(Ordering::Relaxed).is_null() && !anew.load(Ordering::Relaxed)
    }

    /// Gives the buffer back, which has been read to the end; false if it is the ring's own.
    #[inline]
    pub(crate) fn give_back(&self) -> bool {
        if self.shared.own.get().is_some() {
            return false;
        }
        let base = self.base();
        if !base.is_null() {
            self.shared.pool.take_back(base);
            self.shared.base.store(ptr::null_mut(), Ordering::Relaxed);
        }
        true
    }
}

/// A number that no other thread has at the same time.
#[inline]
fn token() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| ptr::from_ref(place).addr())
}
