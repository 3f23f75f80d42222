//! `millstream host net`: interfaces, their configuration, and the threads that drive them.

mod check;
mod host;
mod import;
mod links;
mod schema;
mod show;
mod threads;

group! {
    /// Shows network interfaces, and configures the links on them.
    NetVerb:
    Check(check), Host(host), Import(import), Links(links), Schema(schema), Show(show),
    Threads(threads),
}

impl Args {
    /// Whether it opens links, which the configuration is about.
    pub fn opens_links(&self) -> bool {
        matches!(self.what, NetVerb::Host(_))
    }
}
