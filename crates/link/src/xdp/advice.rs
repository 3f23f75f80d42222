//! Errors with advice on what to do.

use std::io;

use super::open::NAME;
use super::queue::Binding;
use crate::LinkError;
use crate::device::InterfaceState;
use crate::frame::{LinkInfo, Mode};

fn error(device: &InterfaceState, step: &str, source: io::Error, hint: String) -> LinkError {
    let (interface, step) = (device.interface.name.clone(), step.to_owned());
    LinkError::Interface { link: NAME, interface, step, source, hint }
}

/// Returns the error of a refused step, with advice by its errno.
pub fn refused(device: &InterfaceState, step: &str, source: io::Error) -> LinkError {
    let name = &device.interface.name;
    let hint = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it needs root (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF) outside a user namespace: start \
             the broker with `sudo millstream host grant`, or use the link packet or udp"
                .to_owned()
        }
        Some(libc::EOPNOTSUPP) => format!(
            "the driver ({}) does not support this mode: use mode=auto, which takes the best one, \
             or mode=generic, which works everywhere",
            driver(device)
        ),
        Some(libc::ERANGE | libc::EINVAL) if device.mtu() > super::plan::SINGLE_BUFFER_MTU_MAX => {
            format!(
                "at an MTU of {} the driver ({}) must take XDP frames in parts (Linux 6.6 and a \
                 driver that can): lower it with `ip link set {name} mtu {}`, or use mode=generic",
                device.mtu(),
                driver(device),
                super::plan::SINGLE_BUFFER_MTU_MAX
            )
        }
        Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
            "this kernel was built without AF_XDP (CONFIG_BPF_SYSCALL, CONFIG_XDP_SOCKETS): use \
             the link packet or udp"
                .to_owned()
        }
        Some(libc::ENETDOWN) => format!("bring it up with `ip link set {name} up`"),
        Some(libc::ENOMEM | libc::ENOBUFS) => {
            "there is not enough memory: serve fewer queues (queues=0)".to_owned()
        }
        _ => format!("`ip -d link show {name}` and `ethtool -i {name}` say more"),
    };
    error(device, step, source, hint)
}

fn driver(device: &InterfaceState) -> &str {
    device.driver.as_deref().unwrap_or("none")
}

/// Returns the error of an interface that has another program.
pub fn occupied(device: &InterfaceState, source: io::Error) -> LinkError {
    let hint = super::attached::explain(device);
    error(device, "attach the program", source, hint)
}

/// Returns the error of refused frame memory.
pub fn memory(device: &InterfaceState, bytes: usize, source: io::Error) -> LinkError {
    if source.raw_os_error() != Some(libc::ENOBUFS) {
        return refused(device, "register frame memory", source);
    }
    let hint = format!(
        "the link locks {} KiB of memory, which is more than this user may: raise the limit \
         (`ulimit -l`, or LimitMEMLOCK= of a systemd unit), or serve fewer queues (queues=0)",
        bytes.div_ceil(1024)
    );
    error(device, "register frame memory", source, hint)
}

/// Returns the error of a socket that could not be bound to its queue.
pub fn bind(device: &InterfaceState, to: &Binding, source: io::Error) -> LinkError {
    let name = &device.interface.name;
    let step = format!("bind to queue {}", to.queue);
    let hint = match source.raw_os_error() {
        Some(libc::EBUSY) => format!(
            "another AF_XDP socket uses this queue (processes with such sockets: {}): stop that \
             program, or choose other queues (queues=)",
            super::attached::socket_holders().join(", ")
        ),
        Some(libc::EINVAL) => format!(
            "queue {} may not exist (`ethtool -l {name}`), or this kernel cannot do frames in \
             parts (Linux 6.6): then lower the MTU to {}",
            to.queue,
            super::plan::SINGLE_BUFFER_MTU_MAX
        ),
        Some(libc::EOPNOTSUPP) => format!(
            "the driver ({}) has no zero-copy for this queue, MTU or chunk size: use mode=native, \
             or mode=auto, which takes the best that there is",
            driver(device)
        ),
        _ => return refused(device, &step, source),
    };
    error(device, &step, source, hint)
}

/// Returns advice on frames that do not fit a buffer in generic mode, which receives trains of
/// a sender on the same machine before the kernel splits them. In native mode of veth the sender
/// splits them.
pub fn trains(info: &LinkInfo, too_long: u64) -> Option<String> {
    let name = info.interface.as_deref().unwrap_or_default();
    (info.mode == Mode::Generic && too_long > 0).then(|| {
        format!(
            "{name}: {too_long} frames did not fit into buffers: in generic mode trains of a \
             sender on the same machine are not split: use mode=native, or split them at the \
             sender (`udp:gso=off`, or `ethtool -K PEER tx-udp-segmentation off`)"
        )
    })
}
