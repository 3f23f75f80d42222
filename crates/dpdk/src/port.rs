//! A DPDK port: the buffers that it lends and takes.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;

use crate::error::{DpdkError, cause, log};
use crate::quiet::{SignalsBlocked, be_ordinary};
use crate::raw;

/// The settings of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortWanted {
    /// The device in EAL's form: a PCI address, or a virtual device with its arguments.
    pub devargs: String,
    /// Queues in each direction.
    pub queues: u16,
    /// Descriptors of each queue; 0: as many as the driver suggests.
    pub ring: u16,
    /// Receive buffers beyond those that wait in rings.
    pub receive_frames: u32,
    /// Transmit buffers, beyond those too.
    pub transmit_frames: u32,
    /// The data size of a buffer, bytes.
    pub frame_bytes: u16,
    /// Largest IP packet, bytes; 0: the device's own.
    pub mtu: u16,
    /// Whether its driver's interrupts must not run while it is polled (memif).
    pub guarded: bool,
    /// Whether the device checks and completes UDP checksums, where it can.
    pub checksums: bool,
}

/// Whether frames can pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Frames can pass.
    Up,
    /// Frames cannot pass now.
    Down,
    /// The device was removed.
    Gone,
}

/// One buffer of a frame: the shim's own form. The holder owns its bytes.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Part(raw::Part);

impl Part {
    /// Creates a part to hand back: the buffer, the start of its data and their length.
    #[must_use]
    pub fn new(mbuf: usize, data: usize, bytes: u32) -> Self {
        Self(raw::Part {
            mbuf: mbuf as *mut c_void,
            data: data as *mut u8,
            bytes,
            room: bytes,
            checksum_start: 0,
            vlan: 0,
            continues: false,
            trusted: false,
            tagged: false,
        })
    }

    /// Returns the address of the buffer, a multiple of 64.
    #[must_use]
    pub fn mbuf(&self) -> usize {
        self.0.mbuf as usize
    }

    /// Returns the address of its data.
    #[must_use]
    pub fn data(&self) -> usize {
        self.0.data as usize
    }

    /// Returns the length of its data, bytes.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.0.bytes
    }

    /// Returns the largest possible length of the data, bytes.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.0.room
    }

    /// Returns the tag that the device removed.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.0.tagged.then_some(self.0.vlan)
    }

    /// Whether the device verified the UDP checksum.
    #[must_use]
    pub fn checksum_trusted(&self) -> bool {
        self.0.trusted
    }

    /// Whether the next part belongs to the same frame.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.0.continues
    }

    /// Sets whether the next part belongs to the same frame.
    pub fn set_continues(&mut self, continues: bool) {
        self.0.continues = continues;
    }

    /// Makes the device complete the UDP checksum, whose sum starts at this byte of the frame.
    pub fn complete_checksum(&mut self, start: u16) {
        self.0.checksum_start = start;
    }
}

// SAFETY: it has addresses only; the owner of the bytes may be any thread.
unsafe impl Send for Part {}

/// The counters of the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Received frames lost because the ring was full.
    pub missed: u64,
    /// Times that there was no buffer to receive into.
    pub without_buffer: u64,
    /// Received frames lost for other reasons.
    pub receive_errors: u64,
    /// Frames that were not transmitted.
    pub transmit_errors: u64,
}

/// A rule of the device; removed with its port.
#[derive(Debug)]
pub struct FlowRule(*mut c_void);

// SAFETY: the rule is a handle that only its port's calls use, one at a time.
unsafe impl Send for FlowRule {}

/// An open port.
#[derive(Debug)]
pub struct Port {
    raw: raw::Port,
    scratch: Vec<*mut c_void>,
}

// SAFETY: DPDK does not bind a port to a thread: a queue must be polled by one thread at a time,
// which `&mut self` ensures.
unsafe impl Send for Port {}

impl Port {
    /// Opens a port. EAL must have been [started](crate::start()).
    ///
    /// # Errors
    /// [`DpdkError::Port`], with DPDK's log.
    pub fn open(wanted: &PortWanted) -> Result<Self, DpdkError> {
        let failed =
            |step: &str, source| DpdkError::Port { step: step.to_owned(), source, log: log() };
        let devargs = CString::new(wanted.devargs.as_str())
            .map_err(|_| failed("device", io::ErrorKind::InvalidInput.into()))?;
        let _quiet = SignalsBlocked::new();
        log();
        // Drivers start threads, which inherit the scheduling class of the starting thread.
        let opened = std::thread::scope(|scope| {
            let name = std::thread::Builder::new().name("ms-dpdk-open".to_owned());
            let thread = name.spawn_scoped(scope, || {
                be_ordinary();
                Self::open_here(wanted, &devargs)
            })?;
            thread
                .join()
                .map_err(|_| io::Error::other("the thread that opens the DPDK port has panicked"))
        });
        match opened {
            Ok(Ok(port)) => Ok(port),
            Ok(Err((step, code))) => Err(failed(&step, cause(-code))),
            Err(source) => Err(failed("start a thread", source)),
        }
    }

    fn open_here(wanted: &PortWanted, devargs: &CStr) -> Result<Self, (String, c_int)> {
        let given = raw::Wanted {
            devargs: devargs.as_ptr(),
            queues: wanted.queues,
            receive_ring: wanted.ring,
            transmit_ring: wanted.ring,
            receive_frames: wanted.receive_frames,
            transmit_frames: wanted.transmit_frames,
            frame_bytes: wanted.frame_bytes,
            mtu: wanted.mtu,
            guarded: wanted.guarded,
            checksums: wanted.checksums,
        };
        // SAFETY: it is plain data, for which all zeros is valid.
        let mut port: raw::Port = unsafe { std::mem::zeroed() };
        let mut step: *const c_char = std::ptr::null();
        // SAFETY: the devargs and both structs outlive the call, which keeps no pointer to them.
        let done = unsafe { raw::ms_port_open(&raw const given, &raw mut port, &raw mut step) };
        if done == 0 {
            return Ok(Self { raw: port, scratch: Vec::with_capacity(256) });
        }
        // SAFETY: the shim leaves a string literal there.
        Err((unsafe { CStr::from_ptr(step) }.to_string_lossy().into_owned(), done))
    }

    /// Returns the address range of its buffers: the first address, and the length in bytes.
    #[must_use]
    pub fn memory(&self) -> (usize, usize) {
        (self.raw.base, self.raw.bytes as usize)
    }

    /// Returns its Ethernet address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.raw.mac
    }

    /// Returns the driver's name.
    #[must_use]
    pub fn driver(&self) -> String {
        let name = self.raw.driver.map(|byte| byte as u8);
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    /// Returns the device's largest IP packet, bytes.
    #[must_use]
    pub fn mtu(&self) -> usize {
        self.raw.mtu.into()
    }

    /// Returns the descriptors of each queue: to receive, to transmit.
    #[must_use]
    pub fn rings(&self) -> (usize, usize) {
        (self.raw.receive_ring.into(), self.raw.transmit_ring.into())
    }

    /// Returns whether the device checks UDP checksums, completes them, and transmits frames in
    /// parts.
    #[must_use]
    pub fn offloads(&self) -> (bool, bool, bool) {
        (self.raw.checks, self.raw.completes, self.raw.gathers)
    }

    /// Returns its memory node. `None` when it has none.
    #[must_use]
    pub fn numa_node(&self) -> Option<usize> {
        usize::try_from(self.raw.numa_node).ok()
    }

    /// Whether it was started; a port that needs a peer to start is not, until there is one.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.raw.started
    }

    /// Starts it again, after it lost its peer; returns whether it started. For the thread that
    /// polls it: while another thread opens or closes a port it does not wait, and returns false.
    pub fn restart(&mut self) -> bool {
        let Some(_quiet) = SignalsBlocked::try_new() else { return false };
        // SAFETY: the port is open, and none of its queues is polled meanwhile.
        unsafe { raw::ms_port_restart(&raw mut self.raw) == 0 }
    }

    /// Whether frames can pass.
    #[must_use]
    pub fn carrier(&self) -> LinkState {
        // SAFETY: the port is open.
        match unsafe { raw::ms_port_link(&raw const self.raw) } {
            0 => LinkState::Up,
            1 => LinkState::Down,
            _ => LinkState::Gone,
        }
    }

    /// Returns the device's counters since the port was opened.
    #[must_use]
    pub fn counted(&self) -> DeviceCounters {
        let mut counted = raw::Counted::default();
        // SAFETY: the port is open.
        unsafe { raw::ms_port_counted(&raw const self.raw, &raw mut counted) };
        let raw::Counted { missed, without_buffer, receive_errors, transmit_errors } = counted;
        DeviceCounters { missed, without_buffer, receive_errors, transmit_errors }
    }

    /// Returns the number of free buffers: to receive into, to transmit from.
    #[must_use]
    pub fn free(&self) -> (usize, usize) {
        let (mut receive, mut transmit): (c_uint, c_uint) = (0, 0);
        // SAFETY: the port is open.
        unsafe { raw::ms_port_free(&raw const self.raw, &raw mut receive, &raw mut transmit) };
        (receive as usize, transmit as usize)
    }

    /// Lets the drivers' interrupts run, where polls delay them.
    pub fn let_interrupts_run(&self) {
        if self.raw.guarded {
            // SAFETY: it posts a semaphore that the opening of the port created.
            unsafe { raw::ms_gate_turn() }
        }
    }

    /// Receives from one queue into `parts`, whose length is the limit; returns the number of
    /// parts. A frame for which there is too little room waits for the next call, on any queue;
    /// `lost` grows by the frames in more than 64 parts.
    pub fn receive(&mut self, queue: u16, parts: &mut [Part], lost: &mut u64) -> usize {
        debug_assert!(queue < self.raw.queues);
        let room = parts.len() as c_uint;
        let first = parts.as_mut_ptr().cast();
        // SAFETY: `Part` is the shim's struct, the given length is that of `parts`, and no other
        // thread polls the port.
        let count =
            unsafe { raw::ms_receive(&raw mut self.raw, queue, first, room, &raw mut *lost) };
        count as usize
    }

    /// Transmits whole frames. Returns how many parts the device took, or `None` while the driver's
    /// interrupts run, when it was not called.
    ///
    /// # Safety
    /// The parts belong to this port and to the caller; those taken do not any more.
    pub unsafe fn transmit(&mut self, queue: u16, parts: &[Part]) -> Option<usize> {
        debug_assert!(parts.last().is_none_or(|last| !last.continues()));
        let (first, count) = (parts.as_ptr().cast(), parts.len() as c_uint);
        let mut busy = false;
        // SAFETY: the caller promises it, and whole frames.
        let taken =
            unsafe { raw::ms_transmit(&raw const self.raw, queue, first, count, &raw mut busy) };
        (!busy).then_some(taken as usize)
    }

    /// Makes the device give back the buffers that it has sent.
    pub fn clean(&mut self, queue: u16) {
        // SAFETY: the port is open.
        unsafe { raw::ms_clean(&raw const self.raw, queue) }
    }

    /// Takes free buffers to write frames into, as many as `parts` has room for; returns their
    /// number.
    pub fn reserve(&mut self, parts: &mut [Part]) -> usize {
        let (first, count) = (parts.as_mut_ptr().cast(), parts.len() as c_uint);
        // SAFETY: the given length is that of `parts`.
        unsafe { raw::ms_reserve(&raw const self.raw, first, count) as usize }
    }

    /// Frees buffers, by their addresses.
    ///
    /// # Safety
    /// The buffers belong to this port and to the caller, and end here.
    pub unsafe fn release(&mut self, mbufs: impl Iterator<Item = usize>) {
        self.scratch.extend(mbufs.map(|mbuf| mbuf as *mut c_void));
        // SAFETY: the caller promises it.
        unsafe { raw::ms_release(self.scratch.as_mut_ptr(), self.scratch.len() as c_uint) };
        self.scratch.clear();
    }

    /// Makes the device send datagrams for a UDP port to a queue; `None` where it has no such
    /// rules.
    pub fn steer(&mut self, udp_port: u16, queue: u16) -> Option<FlowRule> {
        let _quiet = SignalsBlocked::new();
        // SAFETY: the port is open.
        let rule = unsafe { raw::ms_flow_add(&raw const self.raw, udp_port, queue) };
        (!rule.is_null()).then_some(FlowRule(rule))
    }

    /// Removes a rule.
    pub fn unsteer(&mut self, rule: FlowRule) {
        let _quiet = SignalsBlocked::new();
        // SAFETY: it is a rule of this port, which ends here.
        unsafe { raw::ms_flow_remove(&raw const self.raw, rule.0) };
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _quiet = SignalsBlocked::new();
        // SAFETY: the port is not used again. Buffers that are still lent keep their pool.
        unsafe { raw::ms_port_close(&raw mut self.raw) };
    }
}
