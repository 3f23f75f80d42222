//! `millstream host`: this machine's settings. One folder a job.

mod doctor;
mod grant;
mod net;
mod shield;

group! {
    typed;
    /// Checks and prepares this machine: settings, free CPUs, network interfaces, privileges.
    HostVerb: Doctor(doctor), Shield(shield), Net(net), Grant(grant),
}

impl Args {
    /// Whether it opens links.
    pub fn opens_links(&self) -> bool {
        matches!(&self.what, HostVerb::Net(args) if args.opens_links())
    }
}
