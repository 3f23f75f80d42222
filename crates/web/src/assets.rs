//! The files of the page, which are part of the program.

use millstream_cpu::fnv1a;

/// Names, media types and contents of all files.
const FILES: &[(&str, &str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// One file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    pub media_type: &'static str,
    pub content: &'static [u8],
}

impl Asset {
    /// Returns the file at an address, such as `/draw.js`; `/` is the page itself.
    pub fn find(path: &str) -> Option<Self> {
        let name = path.strip_prefix('/')?;
        let name = if name.is_empty() { "index.html" } else { name };
        let found = FILES.iter().find(|file| file.0 == name);
        found.map(|(_, media_type, content)| Self { media_type, content })
    }

    /// Returns the text that tells this content from another of the same name.
    pub fn etag(&self) -> String {
        format!("\"{:016x}\"", fnv1a(self.content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn the_page_is_there_and_nothing_outside_it() {
        let page = Asset::find("/").unwrap();
        assert!(page.media_type.starts_with("text/html"));
        assert_eq!(Asset::find("/index.html").unwrap().content, page.content);
        for path in ["", "index.html", "/../Cargo.toml", "/page/index.html", "//"] {
            assert!(Asset::find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn the_page_is_small_and_needs_no_other_server() {
        let mut bytes = 0;
        for (name, _, content) in FILES {
            let text = String::from_utf8_lossy(content);
            let foreign = ["src=\"http", "href=\"http", "import(\"http", "from \"http", "url(http"];
            assert!(!foreign.iter().any(|foreign| text.contains(foreign)), "{name}");
            let mut gzip = Command::new("gzip");
            gzip.args(["-9", "-c"]).stdin(Stdio::piped());
            let mut gzip = gzip.stdout(Stdio::piped()).spawn().unwrap();
            let mut input = gzip.stdin.take().unwrap();
            let writer = std::thread::spawn(move || input.write_all(content).unwrap());
            bytes += gzip.wait_with_output().unwrap().stdout.len();
            writer.join().unwrap();
        }
        assert!((1000..=150_000).contains(&bytes), "{bytes} bytes, compressed");
    }
}
