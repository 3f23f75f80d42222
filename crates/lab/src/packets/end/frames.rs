//! Bare frames on a frame link: the rate of the link itself, without our stack.

use std::io;

use millstream_link::frame::{Frame, FrameLink, Steer};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::super::budget::PacketCopies;
use super::template::{ETHERTYPE, PacketTemplate, reverse};
use super::{BATCH, EchoMode, EndAddress, Look, PathEnd, SLEEP_MS, link_events};

/// Largest number of returned frames that wait for room; the rest is dropped and counted.
const WAITING_MAX: usize = 1024;

/// A frame link and the frames that it sends.
pub struct FrameEnd {
    link: Box<dyn FrameLink>,
    template: PacketTemplate,
    /// Parts of a frame, and bytes of each part but the last.
    parts: usize,
    part_bytes: usize,
    received: Vec<Frame>,
    /// Frames written and not yet taken by the link.
    waiting: Vec<Frame>,
    spare: Vec<Frame>,
    fresh: Vec<Frame>,
    no_room: u64,
    sleeps: u64,
}

impl FrameEnd {
    /// Creates the end of a link for frames like `template`.
    ///
    /// # Errors
    /// The reason why the link does not fit.
    pub fn new(
        mut link: Box<dyn FrameLink>,
        template: PacketTemplate,
        receives: bool,
    ) -> Result<Self, String> {
        let mut steer = Steer::default();
        if receives && template.is_ip() {
            steer.addresses = vec![*template.local().ip()];
            steer.udp_ports = vec![template.local().port()];
        } else if receives {
            steer.ethertypes = vec![ETHERTYPE];
        }
        link.steer(&steer).map_err(|error| error.to_string())?;
        let info = link.info();
        if template.frame_bytes() > info.mtu + 14 {
            return Err(format!(
                "frames of {} bytes are longer than the MTU of {} allows: give a smaller --size",
                template.frame_bytes(),
                info.mtu
            ));
        }
        // Transmit buffers may be larger than receive buffers.
        let (mut spare, least, batch) = (Vec::new(), info.part_bytes_max, info.batch_max);
        link.reserve(&mut spare, 1);
        let part_bytes = spare.first().map_or(least, |frame| frame.room().max(least));
        link.give_back(&mut spare);
        let parts = template.frame_bytes().div_ceil(part_bytes);
        let room = 2 * WAITING_MAX + batch + BATCH * parts;
        let vector = || Vec::with_capacity(room);
        let (received, waiting, spare, fresh) = (vector(), vector(), vector(), vector());
        Ok(Self {
            link,
            template,
            parts,
            part_bytes,
            received,
            waiting,
            spare,
            fresh,
            no_room: 0,
            sleeps: 0,
        })
    }

    /// Writes up to `count` frames behind the waiting ones.
    fn write(&mut self, count: usize) {
        self.link.reserve(&mut self.spare, count * self.parts);
        let whole = self.spare.len() / self.parts * self.parts;
        let memory = self.link.memory();
        let mut part = 0;
        for mut frame in self.spare.drain(..whole) {
            let left = self.template.frame_bytes() - part * self.part_bytes;
            frame.set_len(left.min(self.part_bytes));
            let last = part + 1 == self.parts;
            frame.set_continues(!last);
            if part == 0 {
                self.template.write(memory.bytes_mut(&mut frame));
            }
            part = if last { 0 } else { part + 1 };
            self.waiting.push(frame);
        }
        self.link.give_back(&mut self.spare);
    }

    /// Hands the waiting frames over; returns how many whole frames the link took.
    fn hand_over(&mut self) -> io::Result<usize> {
        let before = whole(&self.waiting);
        if before > 0 {
            self.link.transmit(&mut self.waiting)?;
        }
        self.link.flush()?;
        Ok(before - whole(&self.waiting))
    }

    fn receive(&mut self, look: Look) -> io::Result<usize> {
        let count = self.link.receive(&mut self.received)?;
        if count > 0 || look == Look::Glance {
            return Ok(count);
        }
        let Some(fd) = self.link.poll_fd() else {
            std::thread::yield_now();
            return self.link.receive(&mut self.received);
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP_MS * 1_000_000 };
        self.sleeps += 1;
        match rustix::event::poll(
            &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
            Some(&timeout),
        ) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(0),
            Ok(_) => self.link.receive(&mut self.received),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts received frames into the send queue, reversed.
    fn turn_received(&mut self, which: EchoMode) {
        let Self { link, template, received, waiting, spare, fresh, no_room, .. } = self;
        let forwards = link.info().forwards;
        if !forwards {
            link.reserve(fresh, received.len());
        }
        let memory = link.memory();
        let (mut first, mut kept) = (true, false);
        for mut frame in received.drain(..) {
            if first {
                let bytes = memory.bytes_mut(&mut frame);
                let wanted = which == EchoMode::All || template.number_of(bytes).is_some();
                kept = wanted && waiting.len() < WAITING_MAX;
                *no_room += u64::from(wanted && !kept);
                if kept {
                    reverse(bytes);
                }
            }
            let part = first;
            first = !frame.continues();
            if kept && forwards {
                waiting.push(frame);
                continue;
            }
            if kept && let Some(mut copy) = fresh.pop() {
                copy.set_len(frame.len());
                copy.set_continues(frame.continues());
                memory.bytes_mut(&mut copy).copy_from_slice(memory.bytes(&frame));
                waiting.push(copy);
            } else if kept {
                *no_room += u64::from(part);
                kept = false;
            }
            spare.push(frame);
        }
        spare.append(fresh);
        link.give_back(spare);
    }
}

impl FrameEnd {
    /// Writes one frame with a number behind those that wait; returns false without a free frame.
    fn write_numbered(&mut self, number: u64) -> bool {
        self.template.set_number(Some(number));
        let before = self.waiting.len();
        self.write(1);
        self.template.set_number(None);
        self.waiting.len() > before
    }
}

impl PathEnd for FrameEnd {
    fn address(&self) -> EndAddress {
        EndAddress { mac: self.link.info().mac, udp: self.template.local() }
    }

    fn aim(&mut self, peer: &EndAddress) {
        self.template.aim(self.link.info().mac, peer);
    }

    fn send(&mut self, count: usize) -> io::Result<usize> {
        let missing = count.min(BATCH).saturating_sub(whole(&self.waiting));
        self.write(missing);
        self.hand_over()
    }

    fn send_numbered(&mut self, number: u64) -> io::Result<bool> {
        let written = self.write_numbered(number);
        self.hand_over()?;
        Ok(written)
    }

    fn send_among(&mut self, number: u64) -> io::Result<usize> {
        self.write_numbered(number);
        self.hand_over()
    }

    fn take(&mut self, look: Look) -> io::Result<usize> {
        self.receive(look)?;
        let count = whole(&self.received);
        self.link.give_back(&mut self.received);
        Ok(count)
    }

    fn take_numbers(&mut self, look: Look, numbers: &mut Vec<u64>) -> io::Result<usize> {
        self.receive(look)?;
        let count = whole(&self.received);
        let memory = self.link.memory();
        let mut first = true;
        for frame in &self.received {
            if first {
                numbers.extend(self.template.number_of(memory.bytes(frame)));
            }
            first = !frame.continues();
        }
        self.link.give_back(&mut self.received);
        Ok(count)
    }

    fn echo(&mut self, look: Look, which: EchoMode) -> io::Result<(usize, usize)> {
        if self.receive(look)? == 0 {
            return Ok((0, if self.waiting.is_empty() { 0 } else { self.hand_over()? }));
        }
        let count = whole(&self.received);
        self.turn_received(which);
        let sent = if self.waiting.is_empty() { 0 } else { self.hand_over()? };
        Ok((count, sent))
    }

    fn calls(&mut self) -> Option<u64> {
        Some(self.link.counters().syscalls + self.sleeps)
    }

    fn copies(&mut self) -> PacketCopies {
        PacketCopies::new(self.link.info().copies, 0, 0)
    }

    fn events(&mut self) -> Vec<(String, u64)> {
        let mut events = link_events(&self.link.counters());
        if self.no_room > 0 {
            events.push(("no_room_to_return".to_owned(), self.no_room));
        }
        events
    }
}

/// Whole Ethernet frames among parts.
fn whole(frames: &[Frame]) -> usize {
    frames.iter().filter(|frame| !frame.continues()).count()
}
