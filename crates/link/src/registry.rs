//! The links of this build, by name: those that open ports, and those that carry frames.
//!
//! Every link accepts two common options: [`capture`]`=FILE.pcapng` and [`fault`]`=ACTION rx|tx …`.
//! A capture shows the frames after the faults.

use std::net::SocketAddrV4;

use crate::entry::{Factory, LinkEntry};
use crate::frame::{FrameLink, FrameOptions};
use crate::port::{Port, PortOptions};
use crate::spec::{Spec, split_name};
use crate::{LINKS, LinkError, capture, fault, options};

/// Returns the entry of the link that a link string names.
///
/// # Errors
/// [`LinkError::UnknownLink`] with the registered names.
pub fn find(link: &str) -> Result<&'static LinkEntry, LinkError> {
    let (name, _) = split_name(link);
    let found = LINKS.iter().find(|entry| entry.name == name).copied();
    found.ok_or_else(|| unknown(name))
}

/// Opens a port on the link that `link` names, bound to `bind` (port 0: any free one).
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    let entry = find(link)?;
    let Factory::Ports(factory) = entry.factory else { return Err(unknown(entry.name)) };
    let (spec, Common { capture, faults }) = Common::take(link, entry)?;
    let mut port = factory(&spec, bind, options).map_err(|error| with_names(error, entry))?;
    if !faults.is_empty() {
        port = fault::port(port, &faults)?;
    }
    match capture {
        Some(path) => capture::port(port, &path, entry.name),
        None => Ok(port),
    }
}

/// Whether `link` names a frame link: one that [`open_frames`] opens.
#[must_use]
pub fn carries_frames(link: &str) -> bool {
    find(link).is_ok_and(LinkEntry::carries_frames)
}

/// Whether `link` names a link that works on an interface of the kernel.
#[must_use]
pub fn takes_interface(link: &str) -> bool {
    find(link).is_ok_and(LinkEntry::takes_interface)
}

/// Returns the link string with an interface added, where its link needs one and it names none.
#[must_use]
pub fn at_interface(link: &str, interface: &str) -> String {
    match Spec::parse(link) {
        Ok(spec) if spec.target.is_none() && takes_interface(link) => {
            Spec { target: Some(interface.to_owned()), ..spec }.to_string()
        }
        _ => link.to_owned(),
    }
}

/// Whether the link that `link` names has an option of this name.
#[must_use]
pub fn has_option(link: &str, name: &str) -> bool {
    find(link).is_ok_and(|entry| entry.has_option(name))
}

/// Opens the frame link that `link` names, such as `xdp:eth1`.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open_frames(link: &str, options: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let entry = find(link)?;
    let Factory::Frames(factory) = entry.factory else { return Err(unknown(entry.name)) };
    let (spec, Common { capture, faults }) = Common::take(link, entry)?;
    let mut opened = factory(&spec, options).map_err(|error| with_names(error, entry))?;
    if !faults.is_empty() {
        opened = fault::frames(opened, &faults)?;
    }
    match capture {
        Some(path) => capture::frames(opened, &path),
        None => Ok(opened),
    }
}

/// Checks that a link string can be understood; nothing is opened or examined.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn check_options(link: &str) -> Result<(), LinkError> {
    let entry = find(link)?;
    let (spec, _) = Common::take(link, entry)?;
    (entry.check)(&spec).map_err(|error| with_names(error, entry))
}

/// The options common to all links.
struct Common {
    capture: Option<String>,
    faults: Vec<String>,
}

impl Common {
    /// Takes the common options out of a link string.
    fn take(link: &str, entry: &LinkEntry) -> Result<(Spec, Self), LinkError> {
        let mut spec = Spec::parse(link).map_err(|error| with_names(error, entry))?;
        let capture = spec.take_all(capture::OPTION).pop();
        let faults = spec.take_all(fault::OPTION);
        fault::check(&faults)?;
        Ok((spec, Self { capture, faults }))
    }
}

/// Adds the names of the existing options, or where the option of the error is described.
fn with_names(error: LinkError, entry: &LinkEntry) -> LinkError {
    let LinkError::BadOption { option, reason, .. } = error else { return error };
    let wrong = option.split_once('=').map_or("", |(name, _)| name);
    let hint = if entry.has_option(wrong) {
        String::new()
    } else {
        let all = (entry.options)();
        let names: Vec<_> = all.iter().map(|option| option.name).collect();
        let names = options::names_for(wrong, &names, "options of this link: ");
        format!("{names}; `millstream host net links {}` describes them", entry.name)
    };
    LinkError::BadOption { option, reason, hint }.see(entry.name)
}

fn unknown(name: &str) -> LinkError {
    let known = LINKS.iter().filter(|entry| entry.missing.is_none()).map(|entry| entry.name);
    let known = known.collect::<Vec<_>>().join(", ");
    LinkError::UnknownLink { name: name.to_owned(), known }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dpdk;
    use std::net::Ipv4Addr;

    #[test]
    fn an_unknown_link_lists_those_that_exist() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let error = open("warp:speed=9", any, &PortOptions::default()).err().unwrap();
        let start = "there is no link called \"warp\"; this program has: udp";
        assert!(error.to_string().starts_with(start), "{error}");
    }

    #[test]
    fn a_link_that_this_build_is_without_is_not_listed() {
        let LinkError::UnknownLink { known, .. } = unknown("warp") else { panic!() };
        assert_eq!(known.split(", ").any(|name| name == "dpdk"), dpdk::AVAILABLE, "{known}");
        assert!(known.split(", ").any(|name| name == "xdp"), "{known}");
    }

    #[test]
    fn every_link_has_a_name_of_its_own_and_describes_itself() {
        for (at, entry) in LINKS.iter().enumerate() {
            assert!(!entry.about.is_empty() && !entry.about.contains('\n'), "{}", entry.name);
            assert!(LINKS[..at].iter().all(|other| other.name != entry.name), "{}", entry.name);
            if let Some(family) = entry.rights {
                assert_eq!(family.link, entry.name, "what the broker grants by name");
            }
        }
    }
}
