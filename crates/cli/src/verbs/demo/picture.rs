//! One decoded picture, by ffmpeg.

use crate::force::ForceArgs;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Position of the picture in the stream, seconds from its beginning.
const AT_S: &str = "1.5";

/// Writes one picture of `stream` to `picture`.
pub fn extract(stream: &Path, picture: &Path, force: ForceArgs) -> anyhow::Result<PathBuf> {
    let extension = picture.extension().and_then(|extension| extension.to_str());
    let codec = if matches!(extension, Some("jpg" | "jpeg")) { "mjpeg" } else { "png" };
    // Through a pipe: ffmpeg would replace whatever has that name.
    let output = Command::new("ffmpeg")
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-i"])
        .arg(stream)
        .args(["-ss", AT_S, "-frames:v", "1", "-c:v", codec, "-f", "image2pipe", "-"])
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
        output.status.success() && !output.stdout.is_empty(),
        "ffmpeg could not make {} from {} (the first 2 s of a signal may contain no picture). It \
         says: {}",
        picture.display(),
        stream.display(),
        said.lines().next().unwrap_or("it gives no reason")
    );
    force.write(picture, output.stdout)?;
    Ok(picture.to_owned())
}
