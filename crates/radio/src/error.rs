//! The errors of a radio, with their remedies.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_link::LinkError;

use crate::rpc::RpcError;

/// Why an operation on a radio failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RadioError {
    /// A port could not be opened.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A remote procedure call failed.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// A device argument cannot be used.
    #[error("device argument \"{argument}\": {reason}; the known arguments are: {known}")]
    BadArgument {
        /// The argument as written.
        argument: String,
        /// The fault.
        reason: &'static str,
        /// The arguments that exist.
        known: &'static str,
    },
    /// No device of this description answered.
    #[error(
        "no device{wanted} answers in the networks of this machine: give its address \
         (addr=IPV4), see what answers with `millstream find`, or start an emulated one with \
         `millstream sim radio`"
    )]
    NotFound {
        /// Its description.
        wanted: String,
    },
    /// Several devices of this description answered.
    #[error("several devices{wanted} answer: {found}: choose one with addr=IPV4 or serial=SERIAL")]
    Ambiguous {
        /// The description.
        wanted: String,
        /// What answered.
        found: String,
    },
    /// The system refused to send or receive.
    #[error("cannot {what} {address}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The peer.
        address: SocketAddrV4,
        /// The system's error.
        source: io::Error,
    },
    /// The machine's network interfaces could not be listed.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(io::Error),
    /// No answer over UDP within the bound.
    #[error(
        "the device at {address} did not answer {what} ({attempts} attempts of {wait_ms} ms): {}",
        silence(claim_lost.as_deref())
    )]
    Silent {
        /// The device's address.
        address: SocketAddrV4,
        /// The request.
        what: &'static str,
        /// The number of attempts.
        attempts: u32,
        /// The wait of each attempt, milliseconds.
        wait_ms: u64,
        /// Why the device had forgotten this host, if it had: the claim was lost before.
        claim_lost: Option<String>,
    },
    /// The steps of opening a device took too long, though each of them was answered.
    #[error(
        "the device at {address} answers, but it took longer than {allowed_s} s to open it: \
         restart it, check the network for losses (ping), or allow more time (open_max_s=N)"
    )]
    OpenTooSlow {
        /// The device's address.
        address: Ipv4Addr,
        /// The limit for all steps, seconds.
        allowed_s: f64,
    },
    /// The device has another version of a protocol.
    #[error("{what} of the device is {found}, but this program supports {supported}: {hint}")]
    Compat {
        /// The protocol.
        what: &'static str,
        /// The device's.
        found: String,
        /// Ours.
        supported: &'static str,
        /// The remedy.
        hint: &'static str,
    },
    /// The device refused a register access.
    #[error("the device refused {what} at register {address:#x} of port {port}: {status}")]
    Refused {
        /// Read or write.
        what: &'static str,
        /// The block's control port.
        port: u16,
        /// The register.
        address: u32,
        /// The status of the answer.
        status: &'static str,
    },
    /// The device lacks what the host needs.
    #[error("the device at {address} cannot be used: {reason}")]
    Unusable {
        /// Its address.
        address: Ipv4Addr,
        /// The missing part.
        reason: String,
    },
    /// The channel does not exist.
    #[error(
        "there is no {what} channel {channel}: the device has {available} channels, counted from \
         0"
    )]
    NoSuchChannel {
        /// Receive or transmit.
        what: &'static str,
        /// The requested channel.
        channel: usize,
        /// The number of channels.
        available: usize,
    },
    /// Another stream has the channel.
    #[error("{what} channel {channel} is already in use by a stream: end that stream first")]
    ChannelBusy {
        /// Receive or transmit.
        what: &'static str,
        /// The requested channel.
        channel: usize,
    },
    /// The devices of a set have different rates.
    #[error(
        "the device at {address} runs at {rate_hz} samples per second, but the first device at \
         {others_hz}: choose a rate that all devices have"
    )]
    RatesDiffer {
        /// The device that differs.
        address: Ipv4Addr,
        /// Its rate.
        rate_hz: f64,
        /// The first device's rate.
        others_hz: f64,
    },
    /// No PPS edge came.
    #[error(
        "the device at {address} saw no PPS edge in {waited_ms} ms (the time of its latest one \
         stays {ticks} ticks): check its PPS cable and time source"
    )]
    NoPps {
        /// The device.
        address: Ipv4Addr,
        /// The host's wait, milliseconds.
        waited_ms: u64,
        /// Its time at the latest edge, ticks.
        ticks: u64,
    },
    /// A device did not take the time at the common PPS edge.
    #[error(
        "the device at {address} has the time {ticks} at the latest PPS edge instead of \
         {wanted_ticks}: check that all devices have the same tick rate (master_clock_rate=HZ), \
         and that the same PPS and reference clock reach them"
    )]
    PpsDiffers {
        /// The device that differs.
        address: Ipv4Addr,
        /// Its time at the latest edge, ticks.
        ticks: u64,
        /// The expected time, ticks.
        wanted_ticks: u64,
    },
    /// A device took the time at another PPS edge than the first device, or its clock drifts.
    #[error(
        "the device at {address} has the time {ticks}, but the first device {from_ticks} to \
         {to_ticks}: check that all devices have the same tick rate (master_clock_rate=HZ), and \
         that the same PPS and reference clock reach them"
    )]
    TimesDiffer {
        /// The device that differs.
        address: Ipv4Addr,
        /// Its time, ticks.
        ticks: u64,
        /// The first device's time just before, ticks.
        from_ticks: u64,
        /// The first device's time just after, ticks.
        to_ticks: u64,
    },
    /// A setting of the front end that this host cannot make.
    #[error(
        "the device at {address} is of the product \"{product}\", whose {what} this host cannot \
         set: set it with the vendor's tools, and leave the option out"
    )]
    NoSetting {
        /// Its address.
        address: Ipv4Addr,
        /// The setting.
        what: &'static str,
        /// Its product.
        product: String,
    },
    /// A value outside its range.
    #[error("{what} {value} {unit} is not possible: it must be {from} to {to} {unit}")]
    OutOfRange {
        /// The setting.
        what: &'static str,
        /// The requested value.
        value: f64,
        /// The smallest value.
        from: f64,
        /// The largest value.
        to: f64,
        /// The unit of the values.
        unit: &'static str,
    },
    /// An antenna that the channel does not have.
    #[error("there is no antenna \"{antenna}\"; the channel has {known}")]
    NoSuchAntenna {
        /// The requested antenna.
        antenna: String,
        /// The antennas that exist.
        known: String,
    },
    /// A source of the clock or time that the device does not have.
    #[error("there is no {what} source \"{source_name}\"; the device has {known}")]
    NoSuchSource {
        /// Clock or time.
        what: &'static str,
        /// The requested source.
        source_name: String,
        /// The sources that exist.
        known: String,
    },
    /// A command whose time had passed when it came.
    #[error(
        "the command came too late: its time was {ticks}, and the time of the device is already \
         {now_ticks}; give a later time"
    )]
    TooLate {
        /// The time of the command, ticks.
        ticks: u64,
        /// The device's time, ticks.
        now_ticks: u64,
    },
    /// A sample rate that the device does not have, nor one near it.
    #[error(
        "the radio has no sample rate of {rate_hz} Hz: the nearest at its clock of {clock_hz} Hz \
         is {nearest_hz} Hz, so give this one, or another that it has"
    )]
    NoSuchRate {
        /// The requested rate.
        rate_hz: f64,
        /// The master clock rate, of which the device's rates are fractions.
        clock_hz: f64,
        /// The nearest rate.
        nearest_hz: f64,
    },
    /// A rate that no device can have.
    #[error("{rate_hz} samples per second is not a sample rate: give a number above 0")]
    BadRate {
        /// The requested rate.
        rate_hz: f64,
    },
}

pub(crate) fn io_error(
    what: &'static str,
    address: SocketAddrV4,
) -> impl FnOnce(io::Error) -> RadioError {
    move |source| RadioError::Io { what, address, source }
}

/// Returns the remedy for a device that does not answer: it may have forgotten this host.
fn silence(claim_lost: Option<&str>) -> String {
    match claim_lost {
        Some(reason) => format!(
            "its claim was lost before, so it may have forgotten this host, as when this program \
             was stopped for seconds: open it again ({reason})"
        ),
        None => {
            "check that it is on, that `ping` reaches it, and that no firewall drops UDP".into()
        }
    }
}
