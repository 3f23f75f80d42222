//! What can go wrong when a link is opened, and what to do about it.

use std::io;
use std::net::SocketAddrV4;

/// Why a link could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No link of this name is registered.
    #[error("there is no link called \"{name}\"; this build has: {known}")]
    UnknownLink {
        /// The name asked for.
        name: String,
        /// The registered names, comma separated.
        known: String,
    },
    /// The link string carries an option that the link does not have, or a value it cannot use.
    #[error("link option \"{option}\": {reason}{}", choice(option, help))]
    BadOption {
        /// The option as written.
        option: String,
        /// What is wrong with it.
        reason: String,
        /// The options that exist.
        help: &'static str,
    },
    /// The port could not be bound to its address.
    #[error("cannot open UDP port {address}: {source}; {hint}")]
    Bind {
        /// The address asked for.
        address: SocketAddrV4,
        /// The system's error (with its errno).
        source: io::Error,
        /// What to do.
        hint: String,
    },
    /// Neither this process nor a broker has the rights that the link needs.
    #[error(
        "no rights for the link {link} on {interface}: {reason}; {}",
        crate::rights::ways_out(link, interface)
    )]
    Rights {
        /// The link.
        link: &'static str,
        /// The interface.
        interface: String,
        /// What is lacking, and why no broker helps.
        reason: String,
    },
    /// The system refused something else while the port was set up.
    #[error("cannot set up the link ({what}): {source}")]
    Setup {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A frame link could not be opened on its interface.
    #[error("cannot open {link} on {interface} ({step}): {source}; {hint}")]
    Interface {
        /// The link's name.
        link: &'static str,
        /// The interface asked for.
        interface: String,
        /// The step that failed.
        step: String,
        /// The system's error.
        source: io::Error,
        /// What to do.
        hint: String,
    },
}

/// The options that there are; not for one that is known, whose trouble has been named.
fn choice(option: &str, help: &str) -> String {
    let known = option.split_once('=').is_some_and(|(name, _)| {
        let mut words = help.split(' ');
        words.any(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
    });
    if known { String::new() } else { format!("; options of this link: {help}") }
}
