//! The queue manager: how many queues an interface uses, which of them gets a UDP port, and why
//! nothing comes when frames arrive on a queue that nobody watches.
//!
//! What is changed on the interface is changed through the journal (`millstream_host::journal`): it
//! is put back when the link is closed, and after `kill -9` by the next start.

mod explain;

use std::io;

use millstream_host::ethtool::{Channels, Ethtool};
use millstream_host::journal::{Journal, JournalError, SettingValue, TemporaryChange, recover};

pub use explain::explain;

/// What was changed on one interface for one link. Dropping it puts everything back.
#[derive(Debug)]
pub struct Queues {
    interface: String,
    /// In the order of changes; undone backwards.
    changes: Vec<TemporaryChange>,
    /// Ports that hardware was told a queue for.
    steered: Vec<(u16, TemporaryChange)>,
}

impl Queues {
    /// Nothing changed yet.
    #[must_use]
    pub fn new(interface: &str) -> Self {
        Self { interface: interface.to_owned(), changes: Vec::new(), steered: Vec::new() }
    }

    /// Has the interface use `count` queues; how many received before. To be called while no XDP
    /// program is attached: drivers refuse it, or drop frames, otherwise.
    ///
    /// # Errors
    /// `InvalidInput` for more than there are, in words; what the driver says.
    pub fn set_count(&mut self, count: u32) -> io::Result<u32> {
        // What a process that died has left is not what the interface was before.
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

    /// Has hardware give every port to one of the queues that are watched, where some are not.
    /// Where it cannot, its hash decides, and [`explain`] tells what that costs.
    ///
    /// # Errors
    /// What the driver says, other than that it has no such rules.
    pub fn steer_ports(&mut self, ports: &[u16], watched: &[u32]) -> io::Result<()> {
        self.steered.retain(|(port, _)| ports.contains(port));
        let used = Ethtool::open()?.channels(&self.interface).map(|(now, _)| now.receiving());
        // One queue, or all of them: nothing can come elsewhere.
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

/// What a driver says that has no rules, or has them switched off.
fn cannot(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::EPERM))
}

/// The journal's error with the errno of its cause, where that is all that it says.
fn into_io(error: JournalError) -> io::Error {
    match error {
        JournalError::Set { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Channels so that `count` queues receive: combined ones where the device has such, else single
/// ones with as many to transmit; or the most that there could be.
fn channels_for(max: Channels, count: u32) -> Result<Channels, u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_queues_are_taken_where_the_device_has_them() {
        let of = |receive, transmit, combined| Channels { receive, transmit, combined };
        // As ice, igb and virtio tell them.
        assert_eq!(channels_for(of(64, 64, 64), 8), Ok(of(0, 0, 8)));
        assert_eq!(channels_for(of(0, 0, 4), 4), Ok(of(0, 0, 4)));
        // As veth does.
        assert_eq!(channels_for(of(4, 4, 0), 2), Ok(of(2, 2, 0)));
        assert_eq!(channels_for(of(4, 1, 0), 2), Ok(of(2, 1, 0)));
    }

    #[test]
    fn more_queues_than_there_are_is_refused_with_their_number() {
        let max = Channels { receive: 4, transmit: 4, combined: 0 };
        assert_eq!(channels_for(max, 5), Err(4));
        assert_eq!(channels_for(max, 0), Err(4));
    }
}
