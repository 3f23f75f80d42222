//! The files of a recording, and their sample format.

use crate::numbers::name_of;
use crate::output::numbered;
use crate::stdout;
use anyhow::bail;
use millstream_flow::blocks::SampleFormat;
use std::path::{Path, PathBuf};

/// Formats of a recording.
pub const FORMATS: [(&str, &str, SampleFormat); 2] = [
    (
        "sc16",
        "Alternating I and Q, 16-bit integers, little-endian, as in the radio's packets",
        SampleFormat::Sc16,
    ),
    (
        "cf32",
        "Alternating I and Q, 32-bit floats, little-endian; full scale is 1",
        SampleFormat::Cf32,
    ),
];

/// The file of samples that nobody wants to keep.
const NULL: &str = "/dev/null";

/// The files of a recording.
#[derive(Debug)]
pub struct RecordingFiles {
    /// The samples.
    pub data: PathBuf,
    /// Their SigMF metadata.
    pub meta: Option<PathBuf>,
    /// Their format.
    pub format: SampleFormat,
}

impl RecordingFiles {
    /// One recording for each channel; of several, each has its number in its name. (SigMF can
    /// interleave channels in one file, but few programs read that.)
    pub fn for_each(
        channels: &[usize],
        out: &Path,
        format: Option<SampleFormat>,
    ) -> anyhow::Result<Vec<Self>> {
        let target = Self::of(out, format)?;
        if channels.len() == 1 {
            return Ok(vec![target]);
        }
        if out == Path::new(NULL) {
            let one = || Self { data: out.to_owned(), meta: None, format: target.format };
            return Ok(channels.iter().map(|_| one()).collect());
        }
        if !millstream_output::is_regular(out) {
            bail!(
                "{} is not a regular file, but each of several channels needs its own file: give \
                 the name of a file",
                stdout::name(out).map_or_else(|| out.display().to_string(), str::to_owned)
            );
        }
        Ok(channels.iter().map(|channel| target.numbered(*channel)).collect())
    }

    /// The files, of samples and of metadata.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.data), self.meta.as_ref()].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Whether the samples are only counted.
    pub fn keeps_nothing(&self) -> bool {
        self.data == Path::new(NULL)
    }

    /// The samples' file, as text.
    pub fn name(&self) -> String {
        stdout::name(&self.data).map_or_else(|| self.data.display().to_string(), str::to_owned)
    }

    /// The same with the channel in its name: `x-ch1.sc16`.
    fn numbered(&self, channel: usize) -> Self {
        let name = |path: &PathBuf| numbered(path, format_args!("ch{channel}"));
        let meta = self.meta.as_ref().map(name);
        Self { data: name(&self.data), meta, format: self.format }
    }

    fn of(out: &Path, format: Option<SampleFormat>) -> anyhow::Result<Self> {
        let extension = out.extension().and_then(|extension| extension.to_str());
        let (meta, implied) = match extension {
            Some("sigmf-meta" | "sigmf-data") => (Some(out.with_extension("sigmf-meta")), None),
            Some("sc16") => (None, Some(SampleFormat::Sc16)),
            Some("cf32" | "fc32") => (None, Some(SampleFormat::Cf32)),
            _ if format.is_some() || out == Path::new(NULL) => (None, None),
            _ if stdout::name(out).is_some() => bail!(
                "standard output has no file extension that shows the sample format: add --format \
                 sc16 or --format cf32"
            ),
            _ => bail!(
                "{}: the file extension does not show the sample format: use .sc16, .cf32 or \
                 .sigmf-meta, or add --format sc16 or --format cf32",
                out.display()
            ),
        };
        if let (Some(given), Some(implied)) = (format, implied) {
            if given != implied {
                let [implied, given] = [implied, given].map(|format| name_of(&FORMATS, &format));
                let out = out.display();
                bail!(
                    "{out}: the file extension means {implied}, but --format is {given}: change \
                     one of them"
                );
            }
        }
        let data = if meta.is_some() { out.with_extension("sigmf-data") } else { out.to_owned() };
        Ok(Self { data, meta, format: format.or(implied).unwrap_or(SampleFormat::Sc16) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(
        out: &str,
        format: Option<SampleFormat>,
    ) -> Result<(String, Option<String>, SampleFormat), String> {
        let name = |path: PathBuf| path.display().to_string();
        RecordingFiles::of(Path::new(out), format)
            .map(|target| (name(target.data), target.meta.map(name), target.format))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_name_says_how_to_write() {
        use SampleFormat::{Cf32, Sc16};
        assert_eq!(target("a/b.sc16", None), Ok(("a/b.sc16".into(), None, Sc16)));
        assert_eq!(target("b.fc32", None), Ok(("b.fc32".into(), None, Cf32)));
        assert_eq!(target("/dev/null", Some(Cf32)), Ok(("/dev/null".into(), None, Cf32)));
        assert_eq!(target("/dev/null", None), Ok(("/dev/null".into(), None, Sc16)));
        let pair = |format| Ok(("b.sigmf-data".into(), Some("b.sigmf-meta".into()), format));
        assert_eq!(target("b.sigmf-meta", None), pair(Sc16));
        assert_eq!(target("b.sigmf-data", Some(Cf32)), pair(Cf32));
    }

    #[test]
    fn a_name_that_says_nothing_or_something_else_is_refused() {
        let error = target("b.wav", None).unwrap_err();
        assert!(error.ends_with("or add --format sc16 or --format cf32"), "{error}");
        let error = target("b.sc16", Some(SampleFormat::Cf32)).unwrap_err();
        let expected =
            "b.sc16: the file extension means sc16, but --format is cf32: change one of them";
        assert_eq!(error, expected);
    }

    #[test]
    fn several_channels_have_their_numbers_in_their_names() {
        let names = |out: &str| -> Vec<String> {
            let all = RecordingFiles::for_each(&[0, 3], Path::new(out), Some(SampleFormat::Sc16))
                .unwrap();
            let names = all.into_iter().flat_map(|one| [Some(one.data), one.meta]);
            names.flatten().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names("a.b/x.y.sc16"), ["a.b/x.y-ch0.sc16", "a.b/x.y-ch3.sc16"]);
        let pairs =
            ["x-ch0.sigmf-data", "x-ch0.sigmf-meta", "x-ch3.sigmf-data", "x-ch3.sigmf-meta"];
        assert_eq!(names("x.sigmf-meta"), pairs);
        assert_eq!(names("x"), ["x-ch0", "x-ch3"]);
        let nowhere = RecordingFiles::for_each(&[0, 1], Path::new(NULL), None).unwrap();
        assert!(nowhere.iter().all(|one| one.data == Path::new(NULL)));
        let out = Path::new("/dev/zero");
        let error = RecordingFiles::for_each(&[0, 1], out, Some(SampleFormat::Sc16))
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "/dev/zero is not a regular file, but each of several channels needs its own file: \
             give the name of a file"
        );
    }
}
