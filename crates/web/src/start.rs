//! Starts and ends a server.

use crate::address::WebAddress;
use crate::board::Board;
use crate::documents::Hello;
use crate::guard::Guard;
use crate::server::Service;
use crate::streams::Streams;
use std::io;
use std::net::TcpListener;
use std::thread::JoinHandle;

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The address is taken or does not exist here.
    #[error(
        "cannot serve the dashboard at {address}: {source}; give another address or port with \
         --web, or port 0 for a free one"
    )]
    Listen {
        /// The address.
        address: WebAddress,
        /// The reason.
        source: io::Error,
    },
    /// Something else that the system refused.
    #[error("cannot start the dashboard's server: {0}")]
    System(#[from] io::Error),
}

/// What a server serves, and where.
pub struct ServerOptions {
    /// Where it listens.
    pub address: WebAddress,
    /// Whether clients may set things.
    pub control: bool,
    /// What runs; the streams are filled in.
    pub hello: Hello,
    /// The streams.
    pub streams: Streams,
}

/// A running server. Dropping it ends it.
pub struct WebServer {
    board: Board,
    url: String,
    thread: Option<JoinHandle<()>>,
}

impl WebServer {
    /// Starts a server on a thread of its own.
    ///
    /// # Errors
    /// [`WebError`] if the address cannot be used.
    pub fn start(options: ServerOptions) -> Result<Self, WebError> {
        let ServerOptions { address, control, mut hello, streams } = options;
        let refuse = |source| WebError::Listen { address, source };
        let listener = TcpListener::bind(address.0).map_err(refuse)?;
        listener.set_nonblocking(true)?;
        let guard = Guard::new(address.needs_token())?;
        let feeds = streams.into_feeds();
        hello.streams = feeds.iter().map(|feed| feed.info.clone()).collect();
        let (board, awake) = Board::new(hello)?;
        let url = url(&listener, &guard)?;
        let service = Service::new((listener, awake), guard, (board.clone(), feeds), control)?;
        let thread = std::thread::Builder::new().name("ms-web".to_owned());
        let thread = Some(thread.spawn(move || service.run())?);
        Ok(Self { board, url, thread })
    }

    /// Returns the board on which the run publishes.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the address of the page, with the token if one is needed.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.board.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and is none of the run.
            let _ = thread.join();
        }
    }
}

fn url(listener: &TcpListener, guard: &Guard) -> io::Result<String> {
    let address = listener.local_addr()?;
    let token = guard.token().map(|token| format!("#token={token}")).unwrap_or_default();
    if address.ip().is_unspecified() {
        // Any address of this machine; its name is one that other machines may know.
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = if name.trim().is_empty() { "localhost" } else { name.trim() };
        return Ok(format!("http://{name}:{}/{token}", address.port()));
    }
    Ok(format!("http://{address}/{token}"))
}
