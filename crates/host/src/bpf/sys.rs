//! bpf(2): the few commands that we need, with the prefixes of `union bpf_attr` that they read
//! (`linux/bpf.h`).

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::asm::Insn;

/// Commands of bpf(2), `enum bpf_cmd`.
mod command {
    pub const MAP_CREATE: u32 = 0;
    pub const MAP_UPDATE: u32 = 2;
    pub const MAP_DELETE: u32 = 3;
    pub const PROG_LOAD: u32 = 5;
    pub const PROG_TEST_RUN: u32 = 10;
    pub const PROG_GET_FD_BY_ID: u32 = 13;
    pub const OBJ_GET_INFO_BY_FD: u32 = 15;
    pub const RAW_TRACEPOINT_OPEN: u32 = 17;
    pub const MAP_FREEZE: u32 = 22;
    pub const LINK_CREATE: u32 = 28;
    pub const LINK_DETACH: u32 = 34;
}

const PROGRAM_XDP: u32 = 6;
const PROGRAM_TRACING: u32 = 26;
/// `BPF_XDP` of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;
/// `BPF_TRACE_RAW_TP` of `enum bpf_attach_type`.
const ATTACH_TRACEPOINT: u32 = 23;
/// The program takes frames in several parts (`BPF_F_XDP_HAS_FRAGS`, Linux 5.18).
const HAS_FRAGS: u32 = 1 << 5;
/// The value can be mapped into processes (`BPF_F_MMAPABLE`, Linux 5.5).
const MAPPABLE: u32 = 1 << 10;

/// # Safety
/// `T` has the layout of `union bpf_attr` for `command`, and its pointers are valid for the
/// command.
unsafe fn bpf<T>(command: u32, attribute: &mut T) -> io::Result<c_long> {
    let address: *mut T = attribute;
    // SAFETY: the kernel reads and writes at most `size_of::<T>()` bytes there; the pointers
    // inside are the caller's promise.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, address, size_of::<T>()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
}

/// Executes a command that returns a new descriptor.
///
/// # Safety
/// As `bpf`, and the command returns a descriptor.
unsafe fn bpf_fd<T>(command: u32, attribute: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise; a descriptor that bpf(2) returns is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(bpf(command, attribute)? as i32) })
}

fn name16(name: &str) -> [u8; 16] {
    std::array::from_fn(|i| name.as_bytes().get(i).copied().filter(|_| i < 15).unwrap_or(0))
}

/// The kind of a map.
#[derive(Debug, Clone, Copy)]
pub enum MapKind {
    /// One value, which programs address directly and processes may map.
    Value {
        /// The size of the value.
        bytes: u32,
    },
    /// Queue number to AF_XDP socket.
    Sockets {
        /// The number of queues.
        queues: u32,
    },
    /// Key to value, which programs look up.
    Hash {
        /// The most keys.
        entries: u32,
        /// The size of a value.
        bytes: u32,
    },
    /// Records from programs to a process (Linux 5.8), see [`super::RecordRing`].
    Records {
        /// Its size: a power of two, at least a page.
        bytes: u32,
    },
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
}

/// Creates a map.
///
/// # Errors
/// The error of bpf(2).
pub fn create_map(name: &str, kind: MapKind) -> io::Result<OwnedFd> {
    let (kind, key_bytes, value_bytes, entries, flags) = match kind {
        MapKind::Value { bytes } => (2, 4, bytes, 1, MAPPABLE),
        MapKind::Sockets { queues } => (17, 4, 4, queues, 0),
        MapKind::Hash { entries, bytes } => (1, 4, bytes, entries, 0),
        MapKind::Records { bytes } => (27, 0, 0, bytes, 0),
    };
    let (inner_map, numa_node, name) = (0, 0, name16(name));
    let mut attribute =
        MapCreate { kind, key_bytes, value_bytes, entries, flags, inner_map, numa_node, name };
    // SAFETY: the layout of BPF_MAP_CREATE, which holds no pointers and returns a descriptor.
    unsafe { bpf_fd(command::MAP_CREATE, &mut attribute) }
}

#[repr(C)]
struct MapElement {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Sets the value of `key`.
///
/// # Errors
/// The error of bpf(2).
///
/// # Safety
/// The values of the map have at most the size of `T`, and `T` has no padding.
pub unsafe fn update<T>(map: BorrowedFd<'_>, key: u32, value: &T) -> io::Result<()> {
    let mut attribute = MapElement {
        map: map.as_raw_fd() as u32,
        unused: 0,
        key: (&raw const key) as u64,
        value: (&raw const *value) as u64,
        flags: 0,
    };
    // SAFETY: the layout of BPF_MAP_UPDATE_ELEM; key and value live through the call, and are as
    // long as the map's (the caller's promise; every map here has keys of 4 bytes).
    unsafe { bpf(command::MAP_UPDATE, &mut attribute) }.map(drop)
}

/// Removes `key` from a hash.
///
/// # Errors
/// The error of bpf(2): `NotFound` where it is not in it.
pub fn delete(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    let map = map.as_raw_fd() as u32;
    let mut attribute =
        MapElement { map, unused: 0, key: (&raw const key) as u64, value: 0, flags: 0 };
    // SAFETY: the layout of BPF_MAP_DELETE_ELEM; the key lives through the call.
    unsafe { bpf(command::MAP_DELETE, &mut attribute) }.map(drop)
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    device: u32,
    attach_type: u32,
    /// What we do not use of it: BTF of the program itself.
    own_types: [u32; 9],
    attach_type_id: u32,
}

/// The place where a program runs.
#[derive(Debug, Clone, Copy)]
pub enum ProgramPlace {
    /// At the frames of an interface.
    Xdp {
        /// The program takes frames in several parts.
        parts: bool,
    },
    /// At a tracepoint (Linux 5.5): the number of its type in the kernel's BTF.
    Tracepoint(u32),
}

/// The settings of loading a program.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The name in `bpftool` and `ip link`; at most 15 bytes.
    pub name: &'a str,
    /// The place where it runs.
    pub place: ProgramPlace,
}

/// Loads a program.
///
/// # Errors
/// The error of bpf(2); when the verifier refused the program, with the end of the verifier's log.
pub fn load(code: &[Insn], options: LoadOptions<'_>) -> io::Result<OwnedFd> {
    let license = c"Dual MIT/GPL";
    let (kind, attach_type, attach_type_id, flags) = match options.place {
        ProgramPlace::Xdp { parts: true } => (PROGRAM_XDP, ATTACH_XDP, 0, HAS_FRAGS),
        ProgramPlace::Xdp { parts: false } => (PROGRAM_XDP, ATTACH_XDP, 0, 0),
        ProgramPlace::Tracepoint(id) => (PROGRAM_TRACING, ATTACH_TRACEPOINT, id, 0),
    };
    let mut log = Vec::new();
    for log_bytes in [0, 1 << 18] {
        log.resize(log_bytes, 0u8);
        let mut attribute = ProgramLoad {
            kind,
            count: code.len() as u32,
            code: code.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: u32::from(log_bytes > 0),
            log_bytes: log_bytes as u32,
            log: if log_bytes > 0 { log.as_mut_ptr() as u64 } else { 0 },
            kernel_version: 0,
            flags,
            name: name16(options.name),
            device: 0,
            attach_type,
            own_types: [0; 9],
            attach_type_id,
        };
        // SAFETY: the layout of BPF_PROG_LOAD; code, licence and log live through the call.
        match unsafe { bpf_fd(command::PROG_LOAD, &mut attribute) } {
            // Again with a log, for errors of the verifier only.
            Err(error) if log_bytes == 0 && verifier_spoke(&error) => {}
            Err(error) if log_bytes > 0 => return Err(with_log(&error, &log)),
            done => return done,
        }
    }
    unreachable!("the second round returns")
}

fn verifier_spoke(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES | libc::E2BIG))
}

fn with_log(error: &io::Error, log: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default());
    let lines: Vec<_> = text.lines().collect();
    let end = &lines[lines.len().saturating_sub(12)..];
    io::Error::new(error.kind(), format!("{error}; the verifier: {}", end.join(" | ")))
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Attaches a program to an interface; `flags` as in `XDP_FLAGS_*` of `linux/if_link.h`. It is
/// detached when the last descriptor of the link is closed.
///
/// # Errors
/// The error of bpf(2).
pub fn attach(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    let mut attribute = LinkCreate { program, interface, attach_type: ATTACH_XDP, flags };
    // SAFETY: the layout of BPF_LINK_CREATE, which holds no pointers and returns a descriptor.
    unsafe { bpf_fd(command::LINK_CREATE, &mut attribute) }
}

#[repr(C)]
struct TracepointOpen {
    name: u64,
    program: u32,
    unused: u32,
}

/// Attaches a program to the tracepoint that it was loaded for. It is detached when the last
/// descriptor is closed.
///
/// # Errors
/// The error of bpf(2).
pub fn attach_tracepoint(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attribute = TracepointOpen { name: 0, program: program.as_raw_fd() as u32, unused: 0 };
    // SAFETY: the layout of BPF_RAW_TRACEPOINT_OPEN, without a name: it returns a descriptor.
    unsafe { bpf_fd(command::RAW_TRACEPOINT_OPEN, &mut attribute) }
}

/// Detaches the program of a link, even if another process has the link open: a child that was just
/// forked has, until it executes its program.
///
/// # Errors
/// The error of bpf(2): it needs CAP_BPF where unprivileged users may not use it (Linux 5.9).
pub fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the layout of BPF_LINK_DETACH: the link's descriptor.
    unsafe { bpf(command::LINK_DETACH, &mut (link.as_raw_fd() as u32)) }.map(drop)
}

#[repr(C)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}

/// Returns a descriptor of a loaded program.
///
/// # Errors
/// The error of bpf(2): it needs CAP_SYS_ADMIN.
pub fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: the layout of BPF_PROG_GET_FD_BY_ID, which returns a descriptor.
    unsafe { bpf_fd(command::PROG_GET_FD_BY_ID, &mut ById { id, next: 0, flags: 0 }) }
}

#[repr(C)]
struct InfoByFd {
    descriptor: u32,
    bytes: u32,
    info: u64,
}

/// Prevents all processes from writing a map's values, even with its descriptor; programs still
/// may.
///
/// # Errors
/// The error of bpf(2).
pub fn freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the layout of BPF_MAP_FREEZE: the map's descriptor.
    unsafe { bpf(command::MAP_FREEZE, &mut (map.as_raw_fd() as u32)) }.map(drop)
}

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    before_name: [u64; 7],
    name: [u8; 16],
}

/// Returns the number and name of a program.
///
/// # Errors
/// The error of bpf(2).
pub fn program_info(program: BorrowedFd<'_>) -> io::Result<(u32, String)> {
    let mut info = ProgramInfo::default();
    let mut attribute = InfoByFd {
        descriptor: program.as_raw_fd() as u32,
        bytes: size_of::<ProgramInfo>() as u32,
        info: (&raw mut info) as u64,
    };
    // SAFETY: the layout of BPF_OBJ_GET_INFO_BY_FD; the kernel writes at most `bytes` to `info`.
    unsafe { bpf(command::OBJ_GET_INFO_BY_FD, &mut attribute)? };
    let name = info.name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok((info.id, String::from_utf8_lossy(name).into_owned()))
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    returned: u32,
    in_bytes: u32,
    out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
}

/// Runs an XDP program over one frame, for tests; returns its result, and nanoseconds per run.
///
/// # Errors
/// The error of bpf(2).
pub fn test_run(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<(u32, u32)> {
    let mut attribute = TestRun {
        program: program.as_raw_fd() as u32,
        in_bytes: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat,
        ..TestRun::default()
    };
    // SAFETY: the layout of BPF_PROG_TEST_RUN; the frame lives through the call.
    unsafe { bpf(command::PROG_TEST_RUN, &mut attribute)? };
    Ok((attribute.returned, attribute.duration_ns))
}
