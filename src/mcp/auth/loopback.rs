//! Loopback browser flow: shows a page to the user of this machine, and receives the answer on a local port.
//!
//! One answer counts, the one with our state. Every other connection gets a page that it is not expected, learns
//! nothing, and ends nothing. The pages are the same for every client: they repeat nothing from a request.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::browser::Browser;
use super::callback::{Callback, state_of};

const PATH: &str = "/callback";
/// How long a connection may take to send its request.
const REQUEST: Duration = Duration::from_secs(5);
/// The longest request that is read.
const LONGEST: u64 = 16 * 1024;

/// Shows a page to the user.
type Show = Box<dyn Fn(&str) + Send + Sync>;

/// A local port that waits for a browser.
pub struct Loopback {
    listener: TcpListener,
    port: u16,
    timeout: Duration,
    show: Show,
}

impl Loopback {
    /// Listens on 127.0.0.1. `show` receives the address of each page, and `timeout` limits how long the user may
    /// take.
    pub async fn bind(
        port: Option<u16>,
        timeout: Duration,
        show: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, timeout, show: Box::new(show) })
    }

    /// Waits for the request with that state.
    async fn answer(&self, state: &str) -> io::Result<String> {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => open.push(self.served(accepted?.0, state)),
                Some(answer) = open.next() => if let Some(address) = answer {
                    return Ok(address);
                },
            }
        }
    }

    /// Serves one connection. Returns the requested address if it is the answer.
    async fn served(&self, mut stream: TcpStream, state: &str) -> Option<String> {
        let target = timeout(REQUEST, target_of(&mut stream)).await.ok().flatten()?;
        let address = format!("http://127.0.0.1:{}{target}", self.port);
        let callback = match target.strip_prefix(PATH).is_some_and(|rest| rest.starts_with('?')) {
            true => Callback::read(&address, state).ok(),
            false => None,
        };
        let page = match callback {
            Some(Callback::Granted { .. }) => GRANTED,
            Some(Callback::Denied(_)) => DENIED,
            None => STRAY,
        };
        // A browser that has already disconnected has still delivered the answer.
        let _ = timeout(REQUEST, respond(&mut stream, page)).await;
        callback.map(|_| address)
    }
}

#[async_trait]
impl Browser for Loopback {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    async fn visit(&self, page: &str) -> Result<String, String> {
        let state = state_of(page).ok_or("the authorization page asks without a state")?;
        (self.show)(page);
        match timeout(self.timeout, self.answer(&state)).await {
            Ok(answer) => answer.map_err(|error| format!("the port {} cannot be listened to: {error}", self.port)),
            Err(_) => Err(format!("the page was not completed within {} s", self.timeout.as_secs())),
        }
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback").field("port", &self.port).finish_non_exhaustive()
    }
}

/// The target of a request; `None` if it is not a request for a page.
async fn target_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut limited = stream.take(LONGEST);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if limited.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = std::str::from_utf8(&head).ok()?;
    let mut line = head.lines().next()?.split(' ');
    let (method, target, version) = (line.next()?, line.next()?, line.next()?);
    (method == "GET" && version.starts_with("HTTP/1.") && target.starts_with('/')).then(|| target.to_owned())
}

/// A page that the browser shows.
struct Page {
    status: &'static str,
    title: &'static str,
    text: &'static str,
}

const GRANTED: Page = Page {
    status: "200 OK",
    title: "toolgate has its answer",
    text: "You can close this page and go back to the terminal.",
};
const DENIED: Page = Page {
    status: "200 OK",
    title: "toolgate was not given access",
    text: "You can close this page. The terminal says more.",
};
const STRAY: Page = Page {
    status: "404 Not Found",
    title: "toolgate does not expect this",
    text: "Open the address that the terminal shows, and finish there.",
};

async fn respond(stream: &mut TcpStream, page: Page) -> io::Result<()> {
    let Page { status, title, text } = page;
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1><p>{text}</p></html>\n"
    );
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\
         x-content-type-options: nosniff\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
