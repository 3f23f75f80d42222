//! Two byte queues in place of a socket, so that h2 works from memory to memory.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection has received and h2 not taken, and what h2 has written and the connection not
/// sent. Both are emptied by each call of the owner, so they stay as short as what arrives at once.
#[derive(Debug, Default)]
struct Queues {
    received: Vec<u8>,
    unsent: Vec<u8>,
}

/// A handle of the queues; h2 has another one. Only one thread uses them at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pipe(Arc<Mutex<Queues>>);

impl Pipe {
    /// Adds received bytes.
    pub fn receive(&self, bytes: &[u8]) {
        self.lock().received.extend_from_slice(bytes);
    }

    /// Moves the bytes to send behind those in `unsent`.
    pub fn drain_into(&self, unsent: &mut Vec<u8>) {
        unsent.append(&mut self.lock().unsent);
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let received = &mut self.lock().received;
        let count = buffer.remaining().min(received.len());
        if count == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(&received[..count]);
        received.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.lock().unsent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
