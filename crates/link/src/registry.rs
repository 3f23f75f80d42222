//! The links of this build, by name.

use std::net::SocketAddrV4;

use crate::LinkError;
use crate::port::{Port, PortOptions};
use crate::spec::{Spec, split_name};
use crate::udp;

/// Opens a port of one link: options, address to bind, sizes.
pub type Factory = fn(&Spec, SocketAddrV4, &PortOptions) -> Result<Port, LinkError>;

/// A link that can be chosen by name.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// The name in a link string.
    pub name: &'static str,
    /// Its options, for help texts and errors.
    pub options_help: &'static str,
    /// How a port of this link is opened.
    pub factory: Factory,
}

/// Every link of this build.
pub const LINKS: &[Link] =
    &[Link { name: "udp", options_help: udp::OPTIONS_HELP, factory: udp::open }];

/// Opens a port on the link that `link` names, bound to `bind` (port 0: any free one).
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    let (name, _) = split_name(link);
    let found = LINKS.iter().find(|candidate| candidate.name == name).ok_or_else(|| {
        let known: Vec<_> = LINKS.iter().map(|link| link.name).collect();
        LinkError::UnknownLink { name: name.to_owned(), known: known.join(", ") }
    })?;
    (found.factory)(&Spec::parse(link, found.options_help)?, bind, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_unknown_link_lists_those_that_exist() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let error = open("warp:speed=9", any, &PortOptions::default()).err().unwrap();
        assert_eq!(error.to_string(), "there is no link called \"warp\"; this build has: udp");
    }
}
