//! Errors of opening a link, and what to do about each.

use std::io;
use std::net::SocketAddrV4;

use crate::options::BadOption;

/// The reason why a link could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No link of this name is registered.
    #[error("there is no link called \"{name}\"; this program has: {known}")]
    UnknownLink {
        /// The requested name.
        name: String,
        /// The registered names, comma separated.
        known: String,
    },
    /// The link string carries an option that the link does not have, or a value it cannot use.
    #[error("link option \"{option}\": {reason}{}", next(hint))]
    BadOption {
        /// The option as written.
        option: String,
        /// What is wrong with it.
        reason: String,
        /// The options that exist, or where they are described.
        hint: String,
    },
    /// The port could not be bound to its address.
    #[error("cannot open UDP port {address}: {source}; {hint}")]
    Bind {
        /// The requested address.
        address: SocketAddrV4,
        /// The system's error (with its errno).
        source: io::Error,
        /// What to do.
        hint: String,
    },
    /// Neither this process nor a broker has the rights that the link needs.
    #[error(
        "this process has no rights to open the link {link} on {interface}: {reason}; {}",
        crate::rights::ways_out(link, interface)
    )]
    Rights {
        /// The link.
        link: &'static str,
        /// The interface.
        interface: String,
        /// The missing right, and why no broker helps.
        reason: String,
    },
    /// The system refused something else while the port was set up.
    #[error("cannot open the link (failed step: {what}): {source}")]
    Setup {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A frame link could not be opened on its interface.
    #[error("cannot open {link} on {interface} (failed step: {step}): {source}; {hint}")]
    Interface {
        /// The link's name.
        link: &'static str,
        /// The requested interface.
        interface: String,
        /// The step that failed.
        step: String,
        /// The system's error.
        source: io::Error,
        /// What to do.
        hint: String,
    },
}

impl From<BadOption> for LinkError {
    fn from(BadOption { option, reason, hint }: BadOption) -> Self {
        Self::BadOption { option, reason, hint }
    }
}

fn next(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

impl LinkError {
    /// Adds where the options of `link` are described, unless there is a hint.
    #[must_use]
    pub fn see(mut self, link: &str) -> Self {
        if let Self::BadOption { hint, .. } = &mut self {
            if hint.is_empty() {
                *hint = format!("see `millstream host net links {link}`");
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::LINKS;
    use crate::check_options;
    use crate::entry::Target;

    /// The reason comes first, a short list of the choices after it.
    #[test]
    fn an_unknown_option_gets_the_names_and_not_the_whole_help() {
        for entry in LINKS {
            let link = match entry.target {
                Target::None => entry.name.to_owned(),
                Target::Interface { .. } => format!("{}:eth1", entry.name),
                // The driver may know more than the link.
                Target::Device => continue,
                Target::File => format!("{}:FILE", entry.name),
            };
            let comma = if link.contains(':') { "," } else { ":" };
            let text = check_options(&format!("{link}{comma}warp=9")).unwrap_err().to_string();
            let start = "link option \"warp=9\": is not known; options of this link: ";
            let list = text.strip_prefix(start).unwrap_or_else(|| panic!("{link}: {text}"));
            let end = format!("; `millstream host net links {}` describes them", entry.name);
            let list = list.strip_suffix(&end).unwrap_or_else(|| panic!("{link}: {text}"));
            assert!(list.len() <= 150 && !list.contains(['=', '(', '\n']), "{text}");
        }
        let error = check_options("udp:warp=9").unwrap_err().to_string();
        assert!(error.contains("this link: gro, gso, "), "{error}");
    }
}
