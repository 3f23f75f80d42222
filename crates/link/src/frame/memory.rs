//! The memory that frames lie in, and the token of the ownership of a part of it.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// One address range, shared with the kernel or a device while the link is open.
#[derive(Debug)]
pub struct FrameMemory {
    base: NonNull<u8>,
    bytes: usize,
    id: u32,
    /// The range was mapped here, and is unmapped on drop.
    own: bool,
}

// SAFETY: the memory is only reached through frames, and a frame has one owner at a time
// (`Frame::new`); the struct itself is never changed.
unsafe impl Send for FrameMemory {}
// SAFETY: as above.
unsafe impl Sync for FrameMemory {}

impl FrameMemory {
    /// Maps fresh zeroed memory; `flags` may ask for huge pages. Other mappings may be laid over
    /// parts of it (`MAP_FIXED`); all are unmapped when it is dropped.
    pub(crate) fn anonymous(bytes: usize, flags: MapFlags) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE | flags)?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes, id: next_id(), own: true })
    }

    /// Wraps memory of another owner, from `base` on.
    ///
    /// # Safety
    /// As long as a frame of it exists, the bytes of that frame stay in place.
    #[cfg(feature = "dpdk")]
    pub(crate) unsafe fn borrowed(base: NonNull<u8>, bytes: usize) -> Self {
        Self { base, bytes, id: next_id(), own: false }
    }

    /// Asks for large pages, which the machine may not have. Without them, code that goes through
    /// thousands of buffers waits for an address translation with each. It is useful only before
    /// the memory is touched.
    pub(crate) fn prefer_large_pages(&self) {
        // SAFETY: advice on a mapping of our own does not change its content.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxHugepage) };
    }

    /// Its first address.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether an address lies in it, which proves that nothing was copied.
    #[must_use]
    pub fn contains(&self, address: *const u8) -> bool {
        let base = self.base.as_ptr() as usize;
        (base..base + self.bytes).contains(&(address as usize))
    }

    /// Whether a frame belongs to this memory.
    pub(crate) fn owns(&self, frame: &Frame) -> bool {
        frame.memory == self.id
    }

    /// Returns the bytes of a frame.
    ///
    /// # Panics
    /// If the frame belongs to another memory.
    #[must_use]
    pub fn bytes<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        assert_eq!(frame.memory, self.id, "a frame of another link");
        // SAFETY: `Frame::new` promised that these bytes lie in this memory and that the holder of
        // the frame owns them; the shared borrow prevents the holder from writing meanwhile.
        unsafe {
            std::slice::from_raw_parts(
                self.base.as_ptr().add(frame.at as usize),
                frame.length as usize,
            )
        }
    }

    /// Returns the `bytes` bytes in front of a frame, to write.
    ///
    /// # Safety
    /// The frame's owner owns those bytes, too.
    pub(crate) unsafe fn in_front<'a>(&'a self, frame: &'a mut Frame, bytes: u32) -> &'a mut [u8] {
        assert!(frame.memory == self.id && frame.at >= u64::from(bytes));
        let at = (frame.at - u64::from(bytes)) as usize;
        // SAFETY: the bytes are within the memory, before a frame that lies in it; the rest is the
        // caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), bytes as usize) }
    }

    /// Returns the bytes of a frame, to write.
    ///
    /// # Panics
    /// If the frame belongs to another memory.
    #[must_use]
    pub fn bytes_mut<'a>(&'a self, frame: &'a mut Frame) -> &'a mut [u8] {
        assert_eq!(frame.memory, self.id, "a frame of another link");
        // SAFETY: as in `bytes`; the exclusive borrow makes this the only reference.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.as_ptr().add(frame.at as usize),
                frame.length as usize,
            )
        }
    }
}

/// Returns an identifier that no memory had before.
fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        // SAFETY: the range was mapped in `anonymous`; frames cannot be read without this struct.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The ownership of one part of a link's frame memory: not copyable, to be returned to its link.
///
/// Dropping one elsewhere loses its buffer until the link is closed; the link's frame counts show
/// it.
#[derive(Debug)]
#[must_use = "a frame that is not handed back is lost to its link"]
pub struct Frame {
    at: u64,
    length: u32,
    room: u32,
    memory: u32,
    /// For the link alone: the block, slot or queue of the frame.
    tag: u32,
    vlan: Option<u16>,
    continues: bool,
    checksum_trusted: bool,
    /// The position of a checksum to be completed: where its sum begins, and its field behind that.
    checksum_at: (u8, u8),
}

impl Frame {
    /// Creates the frame that begins at `at` in `memory`, `length` bytes long, with `room` bytes to
    /// grow to.
    ///
    /// # Panics
    /// If those bytes do not lie in the memory.
    ///
    /// # Safety
    /// Until this frame is returned nothing else, the kernel included, touches those `room` bytes,
    /// and no other frame covers any of them.
    pub(crate) unsafe fn new(
        memory: &FrameMemory,
        at: u64,
        length: u32,
        room: u32,
        tag: u32,
    ) -> Self {
        let end = at.checked_add(u64::from(room));
        assert!(length <= room && end.is_some_and(|end| end <= memory.bytes as u64));
        let id = memory.id;
        let (vlan, continues, checksum_trusted) = (None, false, false);
        let checksum_at = (0, 0);
        Self { at, length, room, memory: id, tag, vlan, continues, checksum_trusted, checksum_at }
    }

    /// Its start: the offset in the memory.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Its largest possible length, bytes.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room as usize
    }

    /// Changes its length.
    ///
    /// # Panics
    /// Beyond its [room](Self::room).
    pub fn set_len(&mut self, bytes: usize) {
        assert!(bytes <= self.room as usize, "a frame of {bytes} bytes in room of {}", self.room);
        self.length = bytes as u32;
    }

    /// Whether the next frame in the batch is the next part of the same Ethernet frame.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// Sets whether the next frame in the batch continues this one.
    pub fn set_continues(&mut self, continues: bool) {
        self.continues = continues;
    }

    /// Returns the 802.1Q tag control information that the kernel removed from a received frame.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    /// Whether the kernel verified the checksums of a received frame, or it never left this
    /// machine.
    #[must_use]
    pub fn checksum_trusted(&self) -> bool {
        self.checksum_trusted
    }

    /// Makes the link complete a checksum of the frame that this part begins, where
    /// [`LinkInfo::completes_checksums`](super::LinkInfo::completes_checksums): the sum covers byte
    /// `start` to the frame's end, and the checksum field, `place` bytes behind `start`, holds the
    /// sum of the pseudo-header so far. A field beyond this part is not changed.
    pub fn complete_checksum(&mut self, start: u8, place: u8) {
        self.checksum_at = (start, place);
    }

    /// The arguments of [`Frame::complete_checksum`], if it was called.
    pub(crate) fn checksum_at(&self) -> Option<(u8, u8)> {
        Some(self.checksum_at).filter(|(start, _)| *start > 0)
    }

    /// The link's tag of it.
    pub(crate) fn tag(&self) -> u32 {
        self.tag
    }

    /// Stores the facts that a link received with the bytes.
    pub(crate) fn note(&mut self, vlan: Option<u16>, checksum_trusted: bool) {
        self.vlan = vlan;
        self.checksum_trusted = checksum_trusted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_and_writes_its_own_bytes() {
        let memory = FrameMemory::anonymous(8192, MapFlags::empty()).unwrap();
        // SAFETY: these are the only frames of this memory, and they do not overlap.
        let (mut a, b) =
            unsafe { (Frame::new(&memory, 0, 4, 4096, 0), Frame::new(&memory, 4096, 4, 4096, 0)) };
        a.set_len(6);
        memory.bytes_mut(&mut a).copy_from_slice(b"millst");
        assert_eq!(memory.bytes(&a), b"millst");
        assert_eq!(memory.bytes(&b), [0; 4]);
        assert!(memory.contains(memory.bytes(&b).as_ptr()));
        assert!(!memory.contains(b"elsewhere".as_ptr()));
    }

    #[test]
    #[should_panic(expected = "a frame of another link")]
    fn a_frame_of_another_memory_is_refused() {
        let [one, two] = [0, 0].map(|_| FrameMemory::anonymous(4096, MapFlags::empty()).unwrap());
        // SAFETY: this is the only frame of this memory.
        let frame = unsafe { Frame::new(&one, 0, 4, 4, 0) };
        let _ = two.bytes(&frame);
    }

    #[test]
    fn a_frame_is_small() {
        assert!(size_of::<Frame>() <= 32);
    }
}
