//! One decoded picture, by ffmpeg.

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Position of the picture in the stream, seconds from its beginning.
const AT_S: &str = "1.5";

/// Writes one picture of `stream` to `picture`.
pub fn extract(stream: &Path, picture: &Path) -> anyhow::Result<PathBuf> {
    // A picture of an earlier run must not count.
    let _ = std::fs::remove_file(picture);
    let output = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y", "-i"])
        .arg(stream)
        .args(["-ss", AT_S, "-frames:v", "1"])
        .arg(picture)
        .stdin(Stdio::null())
        .output()
        .with_context(|| {
            format!(
                "ffmpeg is not installed, so no picture was made: install it (apt-get install \
                 ffmpeg) and run: ffmpeg -i {} -ss {AT_S} -frames:v 1 {}",
                stream.display(),
                picture.display()
            )
        })?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success() && picture.exists(),
        "ffmpeg could not make {} from {} (the first 2 s of a signal may contain no picture). It \
         says: {}",
        picture.display(),
        stream.display(),
        said.lines().next().unwrap_or("it gives no reason")
    );
    Ok(picture.to_owned())
}
