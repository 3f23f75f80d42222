//! `millstream host net`: interfaces, their configuration, and the threads that drive them.

mod check;
mod host;
mod import;
mod links;
mod schema;
mod show;
#[cfg(test)]
mod tests;
mod threads;

use crate::output::Join;
use millstream_net::config::InterfaceSurvey;

group! {
    typed;
    /// Shows network interfaces, and configures the links on them.
    NetVerb:
    Check(check), Host(host), Import(import), Links(links), Schema(schema), Show(show),
    Threads(threads),
}

/// The error about an interface that is not there.
fn no_interface(name: &str, survey: &InterfaceSurvey) -> anyhow::Error {
    let known = survey.interfaces.iter().map(|found| &found.state.interface.name).join(", ");
    anyhow::anyhow!("there is no network interface \"{name}\" here; there are: {known}")
}

impl Args {
    /// Whether it opens links, which the configuration is about.
    pub fn opens_links(&self) -> bool {
        matches!(self.what, NetVerb::Host(_))
    }
}
