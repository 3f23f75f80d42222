//! The queue manager: the number of queues of an interface, the assignment of UDP ports to queues,
//! and an explanation when frames arrive on a queue that is not watched.
//!
//! Interface settings are changed through the journal (`millstream_host::journal`): they are
//! restored when the link is closed, and after `kill -9` by the next start.

use std::fmt::Write as _;
use std::io;

use millstream_host::ethtool::{Channels, Ethtool};
use millstream_host::journal::{Journal, JournalError, SettingValue, TemporaryChange, recover};

/// The changes made to one interface for one link. Dropping it restores everything.
#[derive(Debug)]
pub struct Queues {
    interface: String,
    /// In the order of changes; undone in reverse order.
    changes: Vec<TemporaryChange>,
    /// The ports for which hardware has a queue rule.
    steered: Vec<(u16, TemporaryChange)>,
}

impl Queues {
    /// Creates an empty list of changes.
    #[must_use]
    pub fn new(interface: &str) -> Self {
        Self { interface: interface.to_owned(), changes: Vec::new(), steered: Vec::new() }
    }

    /// Makes the interface use `count` queues; returns how many received before. To be called while
    /// no XDP program is attached: otherwise drivers refuse it, or drop frames.
    ///
    /// # Errors
    /// `InvalidInput` for more than there are, in words; or the driver's error.
    pub fn set_count(&mut self, count: u32) -> io::Result<u32> {
        // The leftovers of a process that died are not the interface's original state.
        recover()?;
        let (now, max) = Ethtool::open()?.channels(&self.interface)?;
        let wanted = channels_for(max, count).map_err(|most| {
            let text = format!("{} has at most {most} queues", self.interface);
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        if wanted != now {
            let change =
                Journal::of_process().change(&self.interface, SettingValue::Channels(wanted));
            self.changes.push(change.map_err(into_io)?);
        }
        Ok(now.receiving())
    }

    /// Makes the hardware send every port to one of the watched queues, where some queues are not
    /// watched. Where it cannot, its hash decides, and [`explain`] reports the consequences.
    ///
    /// # Errors
    /// The driver's error, other than that it has no such rules.
    pub fn steer_ports(&mut self, ports: &[u16], watched: &[u32]) -> io::Result<()> {
        self.steered.retain(|(port, _)| ports.contains(port));
        let used = Ethtool::open()?.channels(&self.interface).map(|(now, _)| now.receiving());
        // With one queue, or all watched, frames cannot come elsewhere.
        if watched.is_empty() || used.unwrap_or(1) as usize <= watched.len() {
            return Ok(());
        }
        for (index, port) in ports.iter().enumerate() {
            if self.steered.iter().any(|(steered, _)| steered == port) {
                continue;
            }
            let queue = Some(watched[index % watched.len()]);
            let value = SettingValue::PortQueue { port: *port, queue };
            match Journal::of_process().change(&self.interface, value).map_err(into_io) {
                Ok(change) => self.steered.push((*port, change)),
                Err(error) if cannot(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.steered.clear();
        while let Some(change) = self.changes.pop() {
            drop(change);
        }
    }
}

/// Whether the error is that of a driver without rules, or with rules switched off.
fn cannot(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::EPERM))
}

/// Converts the journal's error; keeps the errno of its cause, where that is its whole content.
fn into_io(error: JournalError) -> io::Error {
    match error {
        JournalError::Set { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Returns the channels with which `count` queues receive: combined ones where the device has them,
/// else single ones with as many to transmit.
///
/// # Errors
/// The most queues that are possible.
pub fn channels_for(max: Channels, count: u32) -> Result<Channels, u32> {
    let most = max.combined.max(max.receive);
    if !(1..=most).contains(&count) {
        return Err(most);
    }
    Ok(if max.combined >= count {
        Channels { combined: count, ..Channels::default() }
    } else {
        Channels { receive: count, transmit: count.min(max.transmit), combined: 0 }
    })
}

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
    use super::*;

    #[test]
    fn combined_queues_are_taken_where_the_device_has_them() {
        let of = |receive, transmit, combined| Channels { receive, transmit, combined };
        // As ice, igb and virtio report them.
        assert_eq!(channels_for(of(64, 64, 64), 8), Ok(of(0, 0, 8)));
        assert_eq!(channels_for(of(0, 0, 4), 4), Ok(of(0, 0, 4)));
        // As veth reports them.
        assert_eq!(channels_for(of(4, 4, 0), 2), Ok(of(2, 2, 0)));
        assert_eq!(channels_for(of(4, 1, 0), 2), Ok(of(2, 1, 0)));
    }

    #[test]
    fn more_queues_than_there_are_is_refused_with_their_number() {
        let max = Channels { receive: 4, transmit: 4, combined: 0 };
        assert_eq!(channels_for(max, 5), Err(4));
        assert_eq!(channels_for(max, 0), Err(4));
    }

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
