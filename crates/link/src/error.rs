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

/// The names of the options that there are; nothing for an option that is known, whose trouble has
/// been named.
fn choice(option: &str, help: &str) -> String {
    let known = option.split_once('=').is_some_and(|(name, _)| names(help).any(|one| one == name));
    let list = option_names(help);
    if known || list.is_empty() { String::new() } else { format!("; options of this link: {list}") }
}

fn names(help: &str) -> impl Iterator<Item = &str> {
    let of_option = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    let names = help.split(' ').filter_map(|word| word.split_once('=')).map(|(name, _)| name);
    names.filter(move |name| !name.is_empty() && name.bytes().all(of_option))
}

/// The names of the options that a help text explains, separated by commas.
#[must_use]
pub fn option_names(help: &str) -> String {
    let mut all: Vec<_> = Vec::new();
    for name in names(help) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::LINKS;

    /// What is wrong comes first, and a short list of what there is after it.
    #[test]
    fn an_unknown_option_gets_the_names_and_not_the_whole_help() {
        for (link, help) in LINKS.map(|entry| (entry.name, entry.options_help)) {
            let (option, reason) = ("warp=9".to_owned(), "is not known".to_owned());
            let text = LinkError::BadOption { option, reason, help }.to_string();
            let start = "link option \"warp=9\": is not known; options of this link: ";
            let list = text.strip_prefix(start).unwrap_or_else(|| panic!("{link}: {text}"));
            assert!(list.len() <= 150 && !list.contains(['=', '(', '\n']), "{text}");
        }
        assert_eq!(option_names(crate::udp::OPTIONS_HELP).split(", ").next(), Some("gro"));
    }
}
