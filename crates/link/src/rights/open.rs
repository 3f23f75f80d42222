//! The choice of the process that acts for a link: this one, a broker, or an error with advice.

use std::io;
use std::path::Path;

use rustix::thread::CapabilitySet;

use super::{Broker, Choice, DirectSteps, Family, Rights, RightsOptions};
use crate::LinkError;

/// The inode of the first user namespace (`PROC_USER_INIT_INO` of the kernel).
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// Opens the rights of a link on an interface, as the options of its link string require.
///
/// # Errors
/// [`LinkError::Rights`], which describes both solutions.
pub fn open(
    options: &RightsOptions,
    family: &'static Family,
    interface: &str,
) -> Result<Box<dyn Rights>, LinkError> {
    let path = options.broker_path();
    let lack = match options.choice {
        Choice::Broker => None,
        Choice::Auto | Choice::Direct => match lacking(family) {
            None => return Ok(Box::new(direct(family, interface)?)),
            lack => lack,
        },
    };
    let broker = match options.choice {
        Choice::Direct => "rights=direct uses no broker".to_owned(),
        Choice::Auto | Choice::Broker => match Broker::connect(&path, family.link, interface) {
            Ok(broker) => return Ok(Box::new(broker)),
            Err(error) => unanswered(&path, &error),
        },
    };
    let reason = lack
        .map_or_else(|| broker.clone(), |lack| format!("{lack}, and no broker helps: {broker}"));
    Err(LinkError::Rights { link: family.link, interface: interface.to_owned(), reason })
}

fn direct(family: &'static Family, interface: &str) -> Result<DirectSteps, LinkError> {
    let what = "look for the interface; `ip link` lists those of this network namespace";
    DirectSteps::new(family, interface, None).map_err(|source| LinkError::Setup { what, source })
}

/// Returns the rights that this thread lacks to act by itself, in words.
fn lacking(family: &Family) -> Option<String> {
    let has = match rustix::thread::capabilities(None) {
        Ok(sets) => sets.effective,
        Err(error) => {
            return Some(format!("the capabilities of this process are unknown: {error}"));
        }
    };
    if let Some(text) = lacking_of(family, has) {
        return Some(text);
    }
    let namespace = std::fs::read_link("/proc/self/ns/user");
    let nested = namespace.is_ok_and(|name| name.as_os_str() != FIRST_USER_NAMESPACE);
    (nested && family.programs)
        .then(|| "XDP programs cannot be attached in a user namespace".to_owned())
}

fn lacking_of(family: &Family, has: CapabilitySet) -> Option<String> {
    let lacks = family.capabilities.iter().filter(|(one, _)| !has.contains(*one));
    let lacks: Vec<_> = lacks.map(|(_, name)| *name).collect();
    (!lacks.is_empty()).then(|| format!("this process lacks {}", lacks.join(", ")))
}

fn unanswered(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("no broker listens at {path}"),
        io::ErrorKind::ConnectionRefused => format!("the broker at {path} has ended"),
        // A broker's message already has the name.
        _ if error.raw_os_error().is_none() => error.to_string(),
        _ => format!("the broker at {path} cannot be reached: {error}"),
    }
}

/// Describes both ways to get rights, for an error.
pub(crate) fn ways_out(link: &str, interface: &str) -> String {
    let uid = rustix::process::getuid().as_raw();
    let needed = Family::of_link(link).map_or(&[][..], |family| family.capabilities);
    let names: Vec<_> = needed.iter().map(|(_, name)| name.to_lowercase()).collect();
    let program = std::env::current_exe()
        .map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string());
    format!(
        "start a broker (`sudo millstream host grant --interface {interface} --user {uid} --link \
         {link}`), or run this as root, or give it the capabilities (`sudo setcap {}+ep \
         {program}`)",
        names.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{packet, xdp};

    #[test]
    fn what_is_lacking_is_named() {
        let all = CapabilitySet::all();
        assert_eq!(lacking_of(&xdp::RIGHTS, all), None);
        let raw = CapabilitySet::NET_RAW;
        assert_eq!(lacking_of(&packet::RIGHTS, raw), None);
        let text = lacking_of(&xdp::RIGHTS, raw | CapabilitySet::BPF).unwrap();
        assert_eq!(text, "this process lacks CAP_NET_ADMIN, CAP_PERFMON");
    }

    #[test]
    fn without_a_broker_the_error_says_both_ways_out() {
        let mut options = RightsOptions { choice: Choice::Broker, ..RightsOptions::default() };
        options.broker = Some("/nonexistent/grant.sock".into());
        let error = open(&options, &xdp::RIGHTS, "veth0").err().unwrap().to_string();
        let start = "this process has no rights to open the link xdp on veth0: no broker listens \
             at /nonexistent/grant.sock; start a broker (`sudo millstream host grant --interface \
             veth0 --user";
        assert!(error.starts_with(start), "{error}");
        assert!(
            error.contains("setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon+ep"),
            "{error}"
        );
    }
}
