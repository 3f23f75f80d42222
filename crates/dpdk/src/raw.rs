//! The shim's functions, as `shim/shim.h` declares them.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `struct ms_wanted`.
#[repr(C)]
pub struct Wanted {
    pub devargs: *const c_char,
    pub queues: u16,
    pub receive_ring: u16,
    pub transmit_ring: u16,
    pub receive_frames: u32,
    pub transmit_frames: u32,
    pub frame_bytes: u16,
    pub mtu: u16,
    pub guarded: bool,
    pub checksums: bool,
}

/// `MS_BURST`.
const BURST: usize = 64;

/// `struct ms_port`.
#[repr(C)]
#[derive(Debug)]
pub struct Port {
    pub receive: *mut c_void,
    pub transmit: *mut c_void,
    pub base: usize,
    pub bytes: u64,
    pub id: u16,
    pub queues: u16,
    pub mtu: u16,
    pub receive_ring: u16,
    pub transmit_ring: u16,
    pub mac: [u8; 6],
    pub guarded: bool,
    pub started: bool,
    pub next: u16,
    pub end: u16,
    pub waiting: [*mut c_void; BURST],
    pub checks: bool,
    pub completes: bool,
    pub gathers: bool,
    pub numa_node: c_int,
    pub driver: [c_char; 32],
}

/// `struct ms_part`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub mbuf: *mut c_void,
    pub data: *mut u8,
    pub bytes: u32,
    pub room: u32,
    pub checksum_start: u16,
    pub vlan: u16,
    pub continues: bool,
    pub trusted: bool,
    pub tagged: bool,
}

/// `struct ms_counted`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    pub missed: u64,
    pub without_buffer: u64,
    pub receive_errors: u64,
    pub transmit_errors: u64,
}

unsafe extern "C" {
    pub fn ms_eal_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    pub fn ms_eal_runs() -> bool;
    pub fn ms_eal_has_huge_pages() -> bool;
    pub fn ms_log_take(out: *mut c_char, bytes: usize) -> usize;
    pub fn ms_log_keep();
    pub fn ms_error_text(number: c_int) -> *const c_char;

    pub fn ms_port_open(wanted: *const Wanted, port: *mut Port, step: *mut *const c_char) -> c_int;
    pub fn ms_port_restart(port: *mut Port) -> c_int;
    pub fn ms_port_close(port: *mut Port);
    pub fn ms_port_link(port: *const Port) -> c_int;
    pub fn ms_port_counted(port: *const Port, counted: *mut Counted);
    pub fn ms_port_free(port: *const Port, receive: *mut c_uint, transmit: *mut c_uint);

    pub fn ms_receive(
        port: *mut Port,
        queue: u16,
        parts: *mut Part,
        room: c_uint,
        lost: *mut u64,
    ) -> c_uint;
    pub fn ms_transmit(
        port: *const Port,
        queue: u16,
        parts: *const Part,
        count: c_uint,
        busy: *mut bool,
    ) -> c_uint;
    pub fn ms_clean(port: *const Port, queue: u16);
    pub fn ms_reserve(port: *const Port, parts: *mut Part, count: c_uint) -> c_uint;
    pub fn ms_release(mbufs: *mut *mut c_void, count: c_uint);

    pub fn ms_flow_add(port: *const Port, udp_port: u16, queue: u16) -> *mut c_void;
    pub fn ms_flow_remove(port: *const Port, rule: *mut c_void);

    pub fn ms_gate_turn();
    #[cfg(test)]
    pub fn ms_sizes(sizes: *mut usize);
}
