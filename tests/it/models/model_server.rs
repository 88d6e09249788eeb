//! Fake model server: sends prepared answers in prepared pieces, and records the requests. A request without a prepared
//! answer gets status 599.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::serve::ListenerExt;
use futures::StreamExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One prepared answer.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) before_head: Duration,
    pub(crate) ending: Ending,
}

/// What happens after the last piece.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    /// The body ends properly.
    Close,
    /// The connection stays silent.
    Silence,
    /// Comments follow without end.
    Comments,
    /// The connection breaks.
    Break,
}

/// The content of a request.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Default)]
struct Shared {
    answers: VecDeque<Prepared>,
    asked: Vec<Asked>,
    connections: usize,
}

pub(crate) struct ModelServer {
    pub(crate) base_url: String,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

impl Prepared {
    pub(crate) fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::of("application/json", vec![body.into()])
    }

    pub(crate) fn stream(events: &[&str]) -> Self {
        Self::of("text/event-stream", events.iter().map(|event| format!("data: {event}\n\n").into_bytes()).collect())
    }

    pub(crate) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    fn of(content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        let headers = vec![("content-type".into(), content_type.into())];
        Self { status: 200, headers, pieces, before_head: Duration::ZERO, ending: Ending::Close }
    }

    fn body(self) -> Body {
        let pieces = self.pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
        let pieces = futures::stream::iter(pieces);
        match self.ending {
            Ending::Close => Body::from_stream(pieces.map(|piece: Result<_, std::io::Error>| piece)),
            Ending::Silence => Body::from_stream(pieces.chain(futures::stream::pending())),
            Ending::Comments => {
                let comments = futures::stream::unfold((), |()| async {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Some((Ok(Bytes::from_static(b": still here\n\n")), ()))
                });
                Body::from_stream(pieces.chain(comments))
            }
            Ending::Break => {
                // Yields to the scheduler first, so that the written bytes are sent before the connection breaks.
                let broken = futures::stream::once(async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Err(std::io::Error::other("broken on purpose"))
                });
                Body::from_stream(pieces.chain(broken))
            }
        }
    }
}

impl ModelServer {
    pub(crate) async fn answering(answers: impl IntoIterator<Item = Prepared>) -> Self {
        let shared = Arc::new(Mutex::new(Shared { answers: answers.into_iter().collect(), ..Shared::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::clone(&shared);
        let listener = listener.tap_io(move |socket| {
            socket.set_nodelay(true).unwrap();
            seen.lock().unwrap().connections += 1;
        });
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base_url, shared, task }
    }

    /// The number of connections opened so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().unwrap().connections
    }

    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.shared.lock().unwrap().asked)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let prepared = {
        let mut shared = shared.lock().unwrap();
        shared.asked.push(Asked { path: parts.uri.path().into(), headers: parts.headers, body });
        shared.answers.pop_front()
    };
    let Some(prepared) = prepared else {
        return Response::builder().status(599).body(Body::empty()).unwrap();
    };
    tokio::time::sleep(prepared.before_head).await;
    let mut response = Response::builder().status(prepared.status);
    for (name, value) in &prepared.headers {
        response = response.header(name, value);
    }
    response.body(prepared.body()).unwrap()
}
