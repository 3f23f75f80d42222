//! `millstream host net links`: the links of this build, and their options.

use crate::output::Report;
use millstream_link::LINKS;
use millstream_link::entry::{LinkEntry, Target};
use millstream_link::options::{Opt, Options};
use millstream_link::registry::find;
use millstream_net::EngineOptions;
use std::fmt::Write;

/// Lists the links of this program, or all options of the named links.
#[derive(clap::Args)]
pub struct Args {
    /// Links whose options to show.
    #[arg(value_name = "LINK")]
    links: Vec<String>,
}

crate::results! {
    /// The links of this program.
    struct KnownLinks {
        /// Each link.
        links: Vec<KnownLink>,
    }

    /// A link.
    struct KnownLink {
        /// Its name.
        name: &'static str,
        /// The start of its link string.
        string: String,
        /// What it is.
        about: &'static str,
        /// Whether it carries whole Ethernet frames.
        frames: bool,
        /// Why this program does not have it.
        missing: Option<&'static str>,
        /// Its options.
        options: Vec<Opt>,
    }
}

/// Succeeds when this build has every requested link.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let named = args.links.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    let shown = if named.is_empty() { LINKS.to_vec() } else { named };
    let mut text = String::new();
    for entry in &shown {
        let _ = writeln!(text, "{:<22} {}", spelled(entry), entry.about);
        if let Some(missing) = entry.missing {
            let _ = writeln!(text, "{:<22} {missing}", "");
        }
        for option in options(entry).iter().filter(|_| !args.links.is_empty()) {
            let _ = writeln!(text, "  {}", option.help());
        }
    }
    if args.links.is_empty() {
        text.push_str("`millstream host net links LINK` shows the options of a link\n");
    }
    let links = shown.iter().map(|entry| KnownLink::of(entry)).collect();
    Ok(Report::of(text, &KnownLinks { links }))
}

/// The start of its link string.
fn spelled(entry: &LinkEntry) -> String {
    let target = match entry.target {
        Target::None => "",
        Target::Interface { .. } => ":INTERFACE",
        Target::Device => ":DEVICE",
        Target::File => ":FILE",
    };
    format!("{}{target}", entry.name)
}

/// The link's own options, and those of the engine that drives it.
fn options(entry: &LinkEntry) -> Vec<Opt> {
    let engine = if entry.carries_frames() { EngineOptions::describe() } else { Vec::new() };
    (entry.options)().into_iter().chain(engine).collect()
}

impl KnownLink {
    fn of(entry: &LinkEntry) -> Self {
        Self {
            name: entry.name,
            string: spelled(entry),
            about: entry.about,
            frames: entry.carries_frames(),
            missing: entry.missing,
            options: options(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::wrapped;
    use millstream_link::rights::RightsOptions;
    use std::path::Path;

    /// The line before a list of options in the manual.
    const HEAD: &str = "\nOptions:\n\n";

    /// `MILLSTREAM_WRITE=1` writes the lists.
    #[test]
    fn the_manual_lists_the_options_of_links() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/links.md");
        let before = std::fs::read_to_string(&path).unwrap();
        let mut page = before.clone();
        let of_link = |name: &str| {
            let mut options = (find(name).unwrap().options)();
            options.retain(|option| !RightsOptions::NAMES.contains(&option.name));
            (format!("`{name}`"), options)
        };
        let of_frames = [EngineOptions::describe(), RightsOptions::describe()].concat();
        let frames = ("Threads and stack of frame links".to_owned(), of_frames);
        for (title, options) in
            ["udp", "packet", "xdp", "dpdk"].map(of_link).into_iter().chain([frames])
        {
            let section = page.find(&format!("\n## {title}\n")).unwrap();
            let list = section + page[section..].find(HEAD).unwrap() + HEAD.len();
            let end = list + page[list..].find("\n\n").unwrap();
            let item = |option: &Opt| {
                let default = option.default.as_ref().map(|text| format!("; default `{text}`"));
                let Opt { name, values, about, .. } = option;
                let text = format!("- `{name}={values}`: {about}{}", default.unwrap_or_default());
                wrapped(&text, 2)
            };
            let items: Vec<_> = options.iter().map(item).collect();
            page.replace_range(list..end, &items.join("\n"));
        }
        if std::env::var_os("MILLSTREAM_WRITE").is_some() {
            std::fs::write(&path, &page).unwrap();
        } else {
            assert_eq!(page, before, "MILLSTREAM_WRITE=1 writes docs/reference/links.md");
        }
    }
}
