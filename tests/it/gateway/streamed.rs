//! Helpers for streams: events are read one by one, as an `EventSource` does.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::described;
use super::served::Served;

/// How long a stream may be silent before a scenario fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream that is being read.
pub(crate) struct Stream {
    pub(crate) response: Response,
    read: String,
    /// The comments so far.
    pub(crate) comments: Vec<String>,
    /// The reconnection delay that the server sent.
    pub(crate) retry: Option<String>,
    /// The last id that the server sent.
    position: Option<String>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Served {
    /// A stream; another response fails the test.
    pub(crate) async fn watch(&self, path: &str) -> Stream {
        Stream::of(self.request(Method::GET, path)).await
    }

    /// A stream that resumes after an event.
    pub(crate) async fn watch_after(&self, path: &str, last: &str) -> Stream {
        Stream::of(self.request(Method::GET, path).header("last-event-id", last)).await
    }
}

impl Stream {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.header("accept", "text/event-stream").send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        Self::over(response)
    }

    /// The stream in a response.
    pub(crate) fn over(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { response, read: String::new(), comments: Vec::new(), retry: None, position: None }
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let block = self.block().await?;
            if let Some(frame) = self.take(&block) {
                return Some(frame);
            }
        }
    }

    /// The id that the first frame has: where a client resumes that received no event.
    pub(crate) async fn beginning(&mut self) -> String {
        let block = self.block().await.unwrap();
        assert_eq!(self.take(&block), None);
        self.position.clone().unwrap()
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                return Some(self.read.drain(..end + 2).collect());
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk());
            match chunk.await.expect("the stream is silent for too long").unwrap() {
                Some(bytes) => self.read.push_str(std::str::from_utf8(&bytes).unwrap()),
                None => {
                    assert_eq!(self.read, "", "the stream ends between events");
                    return None;
                }
            }
        }
    }

    fn take(&mut self, block: &str) -> Option<Frame> {
        let (mut id, mut event, mut data) = (None, None, None);
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(':').unwrap();
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "" => self.comments.push(value),
                "retry" => self.retry = Some(value),
                "id" => id = Some(value),
                "event" => event = Some(value),
                "data" => data = Some(serde_json::from_str(&value).unwrap()),
                other => panic!("{other} is not a field of an event"),
            }
        }
        self.position = id.clone().or(self.position.take());
        let frame = Frame { id, event: event?, data: data? };
        described::check(&frame.data);
        if frame.event == "stream.position" {
            assert_eq!(frame.data, json!({"type": "stream.position", "id": frame.id}));
            return None;
        }
        assert_eq!(frame.data["type"], frame.event.as_str(), "{frame:?}");
        assert_eq!(frame.data["id"].as_str(), frame.id.as_deref(), "{frame:?}");
        Some(frame)
    }

    /// Everything up to the event of that name, which has to come.
    pub(crate) async fn up_to(&mut self, event: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let is_it = frame.event == event;
            frames.push(frame);
            if is_it {
                return frames;
            }
        }
        panic!("the stream ended without {event}: {:?}", events(&frames));
    }

    /// Everything to the end of the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// The names of events.
pub(crate) fn events(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

/// The ids of the events that have one.
pub(crate) fn ids(frames: &[Frame]) -> Vec<&str> {
    frames.iter().filter_map(|frame| frame.id.as_deref()).collect()
}
