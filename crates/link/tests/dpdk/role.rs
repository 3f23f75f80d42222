//! The roles of this program when a test starts it again.

use std::io::Write;
use std::time::{Duration, Instant};

use millstream_link::frame::{Frame, FrameLink, FrameOptions};
use millstream_link::{LinkError, open_frames};

/// The environment variable with the role.
pub const NAME: &str = "MILLSTREAM_TEST_ROLE";
/// The environment variable with the role's argument.
pub const ARGUMENT: &str = "MILLSTREAM_TEST_ARGUMENT";

/// Far longer than any step takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn play() {
    let Ok(name) = std::env::var(NAME) else { return };
    let argument = std::env::var(ARGUMENT).unwrap_or_default();
    match name.as_str() {
        "manners" => crate::manners::play(),
        "parts" => crate::parts::play(&argument),
        "refused" => crate::start::play_refused(),
        "open" => drop(open(&argument).unwrap_or_else(|error| panic!("{error}"))),
        "chatter" => chatter(&argument),
        other => panic!("there is no role {other}"),
    }
}

/// Opens a link without huge pages.
pub fn open(link: &str) -> Result<Box<dyn FrameLink>, LinkError> {
    let link = if link.contains("huge=") { link.to_owned() } else { format!("{link},huge=off") };
    open_frames(&link, &FrameOptions { receive_frames: 1024, transmit_frames: 512 })
}

/// Sends and receives until the process is killed; prints a line when the first frame has come.
fn chatter(link: &str) {
    let mut link = open(link).unwrap_or_else(|error| panic!("{error}"));
    println!("open");
    let (until, mut heard) = (Instant::now() + PATIENCE, false);
    while Instant::now() < until {
        exchange(&mut *link);
        if !heard && link.counters().rx_frames > 0 {
            println!("heard");
            std::io::stdout().flush().expect("somebody listens");
            heard = true;
        }
    }
}

/// Sends some frames and takes the received ones; errors mean that the peer is absent.
pub fn exchange(link: &mut dyn FrameLink) -> bool {
    let mut frames: Vec<Frame> = Vec::with_capacity(128);
    let is_up = link.receive(&mut frames).is_ok();
    link.give_back(&mut frames);
    link.reserve(&mut frames, 32);
    for frame in &mut frames {
        frame.set_len(200);
    }
    let sent = link.transmit(&mut frames);
    link.give_back(&mut frames);
    is_up && sent.is_ok()
}
