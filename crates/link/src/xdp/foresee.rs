//! Predictions of what opening a link on an interface would meet, from its driver's properties.

use super::options::{XdpMode, XdpOptions};
use crate::entry::{OpenTarget, Remark};
use crate::{InterfaceState, Spec};
use Remark::{Note, Obstacle};
use millstream_host::netlink::XdpFeatures;

/// The largest MTU at which a driver accepts an XDP program without support for parts: a page less
/// the kernel's space besides the frame. Measured on veth.
const WHOLE_FRAME_MTU_MAX: u32 = 3506;

pub(super) fn outlook(place: &OpenTarget<'_>) -> String {
    if place.state.is_some_and(|state| state.interface.xdp.is_some()) {
        return "refused while the other program is attached".to_owned();
    }
    let best = match place.state.and_then(|state| state.features) {
        None => "the best of zero-copy, native copy and generic that opening it finds",
        Some(features) if features.zero_copy => "zero-copy, else native copy, else generic",
        Some(features) if features.native => "native copy, else generic",
        Some(_) => "generic",
    };
    best.to_owned()
}

pub(super) fn foresee(spec: &Spec, place: &OpenTarget<'_>) -> Vec<Remark> {
    let (Ok(options), Some(state)) = (XdpOptions::from_spec(spec), place.state) else {
        return Vec::new();
    };
    let interface = &state.interface;
    let mut remarks = Vec::new();
    if let Some(other) = &interface.xdp {
        let id = other.program_id.map_or_else(String::new, |id| format!(" (program {id})"));
        remarks.push(Obstacle(format!(
            "another XDP program is attached{id}: end the process that holds it, or detach it with \
             `ip link set {} xdp off`",
            place.name
        )));
    }
    let driver = state.driver.as_deref().unwrap_or("of this interface");
    remarks.extend(match state.features {
        Some(features) => judge(&options, driver, features, interface.mtu),
        None if options.mode == XdpMode::Generic => None,
        None => Some(Note(format!(
            "this kernel does not report what the driver {driver} can do for XDP (kernels do from \
             6.3 on): opening the link shows it"
        ))),
    });
    remarks.extend(queues(&options, state));
    // The veth driver's condition on the other end for accepting a program; otherwise it returns
    // ENOSPC.
    if let (Some(count), Some("veth")) = (options.channels, state.driver.as_deref()) {
        let plural = if count == 1 { "" } else { "s" };
        remarks.push(Note(format!(
            "on veth, the other end may transmit on {count} queue{plural} at most"
        )));
    }
    remarks
}

/// Judges a mode by the features of the driver.
fn judge(options: &XdpOptions, driver: &str, features: XdpFeatures, mtu: u32) -> Option<Remark> {
    let obstacle = |text: String| Some(Obstacle(text));
    match options.mode {
        XdpMode::ZeroCopy if !features.zero_copy => {
            obstacle(format!("the driver {driver} has no zero-copy: use mode = \"auto\""))
        }
        XdpMode::Native if !features.native => {
            obstacle(format!("the driver {driver} runs no XDP programs: use mode = \"generic\""))
        }
        XdpMode::Auto => {
            let best = match (features.zero_copy, features.native) {
                (true, _) => "zero-copy",
                (false, true) => "native copy",
                (false, false) => "generic",
            };
            Some(Note(format!("mode auto: at best {best} with the driver {driver}")))
        }
        XdpMode::Native if mtu > WHOLE_FRAME_MTU_MAX && !features.parts => {
            obstacle(format!("at an MTU of {mtu} the driver needs frames in parts: lower the MTU"))
        }
        _ => None,
    }
}

fn queues(options: &XdpOptions, state: &InterfaceState) -> Option<Remark> {
    let ((first, last), (now, _)) = (options.queues?, state.channels?);
    let serving = options.channels.unwrap_or(now.receiving());
    if last >= serving {
        let highest = serving.saturating_sub(1);
        return Some(Obstacle(format!(
            "there is no queue {last}: the interface has {serving}, 0 to {highest}"
        )));
    }
    let queues = if first == last { first.to_string() } else { format!("{first}-{last}") };
    (last + 1 < serving).then(|| {
        Note(format!(
            "queues {queues} of {serving} are served: what arrives on the others goes to the kernel"
        ))
    })
}
