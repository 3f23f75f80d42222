//! The clients of a server: taking them, their threads, and the blocks that they share.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use millstream_cpu::listener::RestingListener;
use millstream_wire::rtl_tcp::{COMMAND_LEN, RtlCommand, TUNER_R820T, header};

use super::{GAINS, RtlClient, Shared, TICK};

/// Blocks that wait for a client: more than a second at usual rates.
const BLOCKS: usize = 64;

/// A client that takes nothing for so long is gone.
const CLIENT_MAX: Duration = Duration::from_secs(10);

/// Blocks that are used again when no client needs them any more.
#[derive(Debug, Default)]
pub(super) struct BlockPool {
    blocks: Vec<Arc<Vec<u8>>>,
    next: usize,
}

impl BlockPool {
    /// Returns a block with these bytes of samples.
    pub fn fill(&mut self, bytes: impl Iterator<Item = u8>) -> Arc<Vec<u8>> {
        for _ in 0..self.blocks.len() {
            self.next = (self.next + 1) % self.blocks.len();
            if let Some(block) = Arc::get_mut(&mut self.blocks[self.next]) {
                block.clear();
                block.extend(bytes);
                return self.blocks[self.next].clone();
            }
        }
        // All are on their way; clients hold a limited number.
        self.blocks.push(Arc::new(bytes.collect()));
        self.blocks[self.blocks.len() - 1].clone()
    }
}

/// The body of the thread that takes clients. The listener does not wait, so that a stop is seen.
pub(super) fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut listener = RestingListener::new(listener);
    while !shared.is_stopped() {
        match listener.accept(|listener| listener.accept()) {
            Some((socket, _)) => {
                // A client that cannot be served is closed by dropping its socket.
                let _ = welcome(shared, socket);
            }
            None => std::thread::sleep(TICK),
        }
    }
}

/// Starts the threads of a client.
fn welcome(shared: &Arc<Shared>, socket: TcpStream) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(CLIENT_MAX))?;
    (&socket).write_all(&header(TUNER_R820T, GAINS))?;
    let (blocks, waiting) = sync_channel(BLOCKS);
    let (out, mut commands) = (socket.try_clone()?, socket.try_clone()?);
    {
        let mut clients = shared.clients();
        if clients.len() >= shared.options.clients_max || shared.is_stopped() {
            return Ok(());
        }
        clients.push(RtlClient { blocks, socket });
    }
    shared.counts.clients.fetch_add(1, Ordering::Relaxed);
    let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
    };
    // Both end with the socket.
    spawn("ms-rtl-out", Box::new(move || write_blocks(&waiting, &out)))?;
    let shared = Arc::downgrade(shared);
    spawn(
        "ms-rtl-in",
        Box::new(move || {
            let mut bytes = [0; COMMAND_LEN];
            while commands.read_exact(&mut bytes).is_ok() {
                let Some(shared) = shared.upgrade() else { break };
                shared.execute(RtlCommand::parse(&bytes));
            }
            let _ = commands.shutdown(Shutdown::Both);
        }),
    )
}

fn write_blocks(blocks: &Receiver<Arc<Vec<u8>>>, mut out: &TcpStream) {
    while let Ok(block) = blocks.recv() {
        if out.write_all(&block).is_err() {
            break;
        }
    }
    let _ = out.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_again() {
        let mut pool = BlockPool::default();
        let first = pool.fill([128, 0, 255, 129].into_iter());
        assert_eq!(**first, [128, 0, 255, 129]);
        let second = pool.fill([1, 2].into_iter());
        assert_eq!(pool.blocks.len(), 2, "the first is in use");
        drop((first, second));
        for _ in 0..10 {
            pool.fill([3, 4].into_iter());
        }
        assert_eq!(pool.blocks.len(), 2);
    }
}
