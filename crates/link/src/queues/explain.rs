//! A sentence about frames on unwatched queues.

use std::fmt::Write as _;

/// Explains why wanted frames did not come, if some came on queues that the link does not watch:
/// queue and frames of each, most frames first.
#[must_use]
pub fn explain(interface: &str, unwatched: &[(u32, u64)], watched: &[u32]) -> Option<String> {
    let mut queues: Vec<_> = unwatched.iter().filter(|(_, frames)| *frames > 0).collect();
    queues.sort_by_key(|(queue, frames)| (std::cmp::Reverse(*frames), *queue));
    if queues.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (index, (queue, frames)) in queues.iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        let noun = if *frames == 1 { "frame" } else { "frames" };
        // Writing to memory does not fail.
        let _ = write!(text, "{separator}{frames} {noun} on queue {queue}");
    }
    let watched: Vec<_> = watched.iter().map(u32::to_string).collect();
    let watched = watched.join(", ");
    Some(format!(
        "{interface}: {text} went to the kernel, because this link watches queue {watched} only: \
         open it with queues=all, or with channels=1 so that the interface uses one queue"
    ))
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn the_queue_the_number_and_the_way_out_are_named() {
        let text = explain("veth0", &[(1, 0), (2, 812), (3, 1)], &[0]).unwrap();
        assert_eq!(
            text,
            "veth0: 812 frames on queue 2, 1 frame on queue 3 went to the kernel, because this \
             link watches queue 0 only: open it with queues=all, or with channels=1 so that the \
             interface uses one queue"
        );
    }

    #[test]
    fn nothing_is_said_while_nothing_goes_astray() {
        assert_eq!(explain("veth0", &[(1, 0)], &[0]), None);
        assert_eq!(explain("veth0", &[], &[0]), None);
    }
}
