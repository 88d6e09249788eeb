//! Tests of the line transport.

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

/// The server at the other end of a transport.
struct Server {
    stdout: DuplexStream,
    stdin: BufReader<DuplexStream>,
    cut: Disconnection,
    /// The observed texts, each with the name of its observer.
    seen: Arc<Mutex<Vec<(&'static str, String)>>>,
}

type Client = LineTransport<DuplexStream, DuplexStream>;

fn connected() -> (Client, Server) {
    let (stdout, reading) = duplex(1 << 20);
    let (writing, stdin) = duplex(1 << 20);
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let tap = |name: &'static str| -> OnText {
        let seen = seen.clone();
        let note = move |text: &[u8]| (name, String::from_utf8_lossy(text).trim().to_owned());
        Box::new(move |text| seen.lock().expect("no panic").push(note(text)))
    };
    let taps = StreamObservers {
        on_message: tap("message"),
        on_noise: tap("noise"),
        on_cut_off: tap("cut off"),
        redact: Box::new(|text| text.replace("s3cret", "[redacted]")),
    };
    let cut = Disconnection::default();
    let client = LineTransport::new(reading, writing, Requests::default(), cut.clone(), taps);
    (client, Server { stdout, stdin: BufReader::new(stdin), cut, seen })
}

impl Server {
    async fn writes(&mut self, text: &str) {
        self.stdout.write_all(text.as_bytes()).await.expect("there is room");
    }

    /// The next message that the server receives.
    async fn reads(&mut self) -> Value {
        let mut line = String::new();
        self.stdin.read_line(&mut line).await.expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    fn saw(&self, tap: &str) -> Vec<String> {
        let seen = self.seen.lock().expect("no panic");
        seen.iter().filter(|(name, _)| *name == tap).map(|(_, text)| text.clone()).collect()
    }
}

async fn calls(client: &mut Client, id: i64) {
    let call = ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("charge")));
    client.send(JsonRpcMessage::request(call, RequestId::Number(id))).await.expect("it is sent");
}

async fn received(client: &mut Client) -> Value {
    serde_json::to_value(client.receive().await).expect("JSON")
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

#[tokio::test]
async fn messages_are_handed_on_and_noise_is_noted() {
    let (mut client, mut server) = connected();
    calls(&mut client, 1).await;
    server.writes(&format!("Listening on 3000\n{CHANGED}\n\n{{\"level\":\"info\",\"id\":1}}\n{ANSWER}\n")).await;
    assert_eq!(received(&mut client).await["method"], "notifications/tools/list_changed");
    assert_eq!(received(&mut client).await["id"], 1);
    assert_eq!(server.saw("noise"), ["Listening on 3000", r#"{"level":"info","id":1}"#]);
    assert_eq!(server.saw("message"), [CHANGED, ANSWER]);
}

#[tokio::test]
async fn a_text_beyond_the_bound_ends_the_connection_with_the_reason() {
    let (mut client, mut server) = connected();
    client.frames = Frames::up_to(100);
    server.writes(&format!("{CHANGED}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}", "x".repeat(100))).await;
    assert_eq!(received(&mut client).await["method"], "notifications/tools/list_changed");
    assert_eq!(received(&mut client).await, Value::Null);
    let reason = server.cut.reason().expect("it was cut");
    assert!(reason.starts_with("it sent a message longer than 64 MiB"), "{reason}");
}

#[tokio::test]
async fn a_stream_that_ends_in_the_middle_of_an_answer_answers_nothing() {
    let (mut client, mut server) = connected();
    calls(&mut client, 1).await;
    server.writes(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{""#).await;
    server.stdout.shutdown().await.expect("it is closed");
    assert_eq!(received(&mut client).await, Value::Null);
    assert_eq!(server.saw("cut off"), [r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{""#]);
    assert!(client.requests.is_in_flight(&RequestId::Number(1)), "what ended the stream is the reason");
}

#[tokio::test]
async fn the_last_line_needs_no_end() {
    for (rest, noise) in [(ANSWER, &[][..]), ("Bye", &["Bye"])] {
        let (mut client, mut server) = connected();
        calls(&mut client, 1).await;
        server.writes(rest).await;
        server.stdout.shutdown().await.expect("it is closed");
        assert_eq!(received(&mut client).await["id"] == 1, noise.is_empty(), "{rest}");
        assert_eq!(server.saw("noise"), noise);
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_that_breaks_off_is_waited_for_as_long_as_a_pause() {
    let (mut client, mut server) = connected();
    calls(&mut client, 1).await;
    let begun = Instant::now();
    server.writes("{\"jsonrpc\":\"2.0\",\"id\":1,\n").await;
    let failure = received(&mut client).await;
    let why = failure["error"]["message"].as_str().expect("words");
    assert!(failure["id"] == 1 && why.contains("it ends in the middle"), "{failure}");
    assert!((PAUSE..PAUSE * 2).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn log_lines_do_not_extend_a_text_that_breaks_off() {
    let (mut client, server) = connected();
    calls(&mut client, 1).await;
    let begun = Instant::now();
    let Server { mut stdout, stdin: _stdin, cut: _cut, seen: _seen } = server;
    let logging = tokio::spawn(async move {
        stdout.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\n").await.expect("there is room");
        loop {
            tokio::time::sleep(PAUSE / 2).await;
            stdout.write_all(b"still working\n").await.expect("there is room");
        }
    });
    let failure = received(&mut client).await;
    logging.abort();
    assert_eq!(failure["id"], 1, "{failure}");
    assert!((LONGEST_TEXT..LONGEST_TEXT + PAUSE * 2).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_an_id_fails_the_call_unless_the_right_one_follows() {
    let anonymous = r#"{"jsonrpc":"2.0","result":{"content":["s3cret"]}}"#;
    let (mut client, mut server) = connected();
    calls(&mut client, 1).await;
    server.writes(&format!("{anonymous}\nworking\n{ANSWER}\n")).await;
    assert_eq!(received(&mut client).await["result"], json!({"content": []}));

    calls(&mut client, 2).await;
    server.writes(&format!("{anonymous}\n")).await;
    let failure = received(&mut client).await;
    let why = failure["error"]["message"].as_str().expect("words");
    assert!(failure["id"] == 2 && why.contains("no id that can be one") && why.contains("[redacted]"), "{failure}");
}

#[tokio::test]
async fn pings_are_answered_here_and_few_other_requests_wait_at_a_time() {
    let (mut client, mut server) = connected();
    for id in 0..=MAX_PENDING {
        server.writes(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"roots/list\"}}\n")).await;
    }
    server.writes(&format!("{{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}}\n{CHANGED}\n")).await;
    for id in 0..MAX_PENDING {
        assert_eq!(received(&mut client).await["id"], id);
    }
    assert_eq!(received(&mut client).await["method"], "notifications/tools/list_changed");
    let refused = server.reads().await;
    assert_eq!((&refused["id"], refused["error"].is_object()), (&json!(MAX_PENDING), true), "{refused}");
    let pong = server.reads().await;
    assert_eq!((&pong["id"], &pong["result"]), (&json!("p"), &json!({})), "{pong}");
}
