//! The account of a capture's radio packets.

use crate::account::{self, FlowAccount};
use crate::output::{Report, shown};
use anyhow::{Context, anyhow};
use millstream_link::pcapng::{CaptureError, CaptureReader};
use millstream_watch::{CaptureAccount, Captured, LinkType};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bytes read from the file at once.
const READ_AHEAD: usize = 1 << 20;

crate::results! {
    also [account::results],

    /// A capture of a radio's packets.
    struct InspectedCapture {
        /// Its file.
        recording: String,
        /// `capture`.
        kind: &'static str,
        /// Why the file could not be read to its end.
        damage: Option<String>,
        /// What its packets show.
        #[serde(flatten)]
        account: FlowAccount,
    }
}

/// Whether a file begins as a capture does.
pub fn is_capture(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    let words = [u32::from_be_bytes(magic), u32::from_le_bytes(magic)];
    read.is_ok()
        && (words.contains(&0x0a0d_0d0a)
            || words.iter().any(|word| matches!(word, 0xa1b2_c3d4 | 0xa1b2_3c4d)))
}

/// Reads a capture.
pub fn inspect(path: &Path) -> anyhow::Result<Report> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| name.clone())?;
    let mut reader = CaptureReader::new(BufReader::with_capacity(READ_AHEAD, file))
        .map_err(|error| anyhow!(error))
        .with_context(|| name.clone())?;
    let (mut account, mut begin_ns, mut other_links) = (CaptureAccount::new(), None, 0);
    let damage = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                begin_ns = begin_ns.or(packet.at_ns);
                let Some(link) = LinkType::of(packet.link_type) else {
                    other_links += 1;
                    continue;
                };
                account.take(&Captured { at_ns: packet.at_ns, link, bytes: packet.bytes });
            }
            Ok(None) => break None,
            // What was captured until then counts.
            Err(error @ CaptureError::Damaged(_)) => break Some(error.to_string()),
            Err(error) => return Err(anyhow!(error).context(name)),
        }
    };
    let account = FlowAccount::of(&account, begin_ns, other_links, reader.dropped(), None);
    let results = InspectedCapture { recording: shown(path), kind: "capture", damage, account };
    Ok(Report::of(text(&results), &results))
}

fn text(found: &InspectedCapture) -> String {
    let InspectedCapture { recording, damage, account, .. } = found;
    let mut text = format!("capture      {recording}: {}\n", account.frame_words());
    if let Some(damage) = damage {
        text += &format!("damage       {damage}: the account ends there\n");
    }
    if account.flows.is_empty() {
        text += "flows        none: it has no CHDR data packets. Capture the interface to the \
                 radio, e.g. tcpdump -i eth0 -s 256 -w FILE udp\n";
    }
    text + &account.text()
}
