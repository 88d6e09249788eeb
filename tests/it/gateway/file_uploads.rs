//! Uploads of files: what is stored, what is refused, and what hostile clients cost.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolgate::core::blob::BlobHandle;
use toolgate::gateway::GatewaySettings;
use toolgate::ports::FileQuota;
use toolgate::service::{FileConfig, FileLimits, Service};
use toolgate::stores::MemoryStore;

use super::principals::{Badges, Person};
use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, World, given_an_agent, on_every_store};

pub(super) const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3 a report";
pub(super) const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";
pub(super) const ANN: &str = "ann acme all";

/// A part of a form: the parameters of its disposition, and its content.
pub(super) type FormPart<'a> = (&'a str, &'a [u8]);

const BOUNDARY: &str = "a-boundary-of-these-tests";

pub(super) fn form(boundary: &str, parts: &[FormPart<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (disposition, content) in parts {
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n").as_bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    body
}

/// A gateway that authenticates by badge and stores files within these limits.
pub(super) async fn served(world: World, limits: FileLimits) -> Served {
    let service = Service::new(world.runner.clone()).files(FileConfig::new(world.files(), limits));
    Served::over(service, world, |builder| {
        let settings = GatewaySettings { upload_timeout: Duration::from_secs(60), ..GatewaySettings::default() };
        builder.authenticator(Arc::new(Badges)).settings(settings).idempotency(Arc::new(MemoryStore::new()))
    })
    .await
}

async fn desk(kept: Kept) -> Served {
    served(given_an_agent().kept(kept).await, FileLimits::default()).await
}

pub(super) async fn send(served: &Served, badge: &str, parts: &[FormPart<'_>]) -> HttpAnswer {
    let request = served.request(Method::POST, "/v1/files").header("x-badge", badge);
    let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
    HttpAnswer::of(request.body(form(BOUNDARY, parts)).send().await.unwrap()).await
}

/// Uploads a file, and returns its id.
pub(super) async fn upload(served: &Served, badge: &str, name: &str, bytes: &[u8]) -> String {
    let uploaded = send(served, badge, &[(&format!("name=\"file\"; filename=\"{name}\""), bytes)]).await;
    assert_eq!(uploaded.status, 201, "{uploaded:?}");
    uploaded.text("id").to_owned()
}

fn pointer(refused: &HttpAnswer) -> (&str, &Value) {
    (refused.problem(), &refused.body["errors"][0]["pointer"])
}

on_every_store! {
    async fn an_upload_is_described_listed_downloaded_and_deleted(kept: Kept) {
        let served = desk(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let uploaded = send(&served, ANN, &[("name=\"file\"; filename=\"Q3 report.pdf\"", PDF)]).await;

        let path = format!("/v1/files/{}", uploaded.text("id"));
        assert_eq!((uploaded.status.as_u16(), uploaded.header("location")), (201, path.as_str()));
        let sha256 = BlobHandle::for_bytes(PDF).to_string().replace("media://sha256-", "");
        let expected = json!({
            "id": uploaded.body["id"], "object": "file", "name": "Q3 report.pdf", "media_type": "application/pdf",
            "bytes": PDF.len(), "sha256": sha256, "principal": null, "created_by": "ann",
            "created_at": uploaded.body["created_at"], "expires_at": uploaded.body["expires_at"],
        });
        assert_eq!(uploaded.body, expected);
        assert_eq!(ann.get(&path).await.body, expected);
        assert_eq!(ann.get("/v1/files").await.body["data"], json!([expected]));

        let request = served.request(Method::GET, &format!("{path}/content")).header("x-badge", ANN);
        let download = request.send().await.unwrap();
        let header = |name: &str| download.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "application/pdf");
        assert_eq!(header("content-disposition"), "attachment; filename=\"Q3 report.pdf\"; filename*=UTF-8''Q3%20report.pdf");
        assert_eq!((header("x-content-type-options"), header("cache-control")), ("nosniff".into(), "no-store".into()));
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(download.bytes().await.unwrap(), PDF);

        assert_eq!(ann.delete(&path).await.status, 204);
        assert_eq!(ann.delete(&path).await.problem(), "not_found");
        assert_eq!(ann.get(&format!("{path}/content")).await.problem(), "not_found");
        let blob = served.world.runner.blobs().unwrap().get(&BlobHandle::for_bytes(PDF)).await.unwrap();
        assert_eq!(blob, None, "nothing else uses the bytes");
    }

    async fn files_of_another_tenant_do_not_exist(kept: Kept) {
        let served = desk(kept).await;
        let file = upload(&served, ANN, "a.pdf", PDF).await;
        let bob = Person { served: &served, badge: "bob bolt all" };

        assert_eq!(bob.get("/v1/files").await.body["data"], json!([]));
        let path = format!("/v1/files/{file}");
        for refused in [
            bob.get(&path).await,
            bob.get(&format!("{path}/content")).await,
            bob.delete(&path).await,
            bob.get("/v1/files/file_unknown").await,
        ] {
            assert_eq!((refused.status.as_u16(), refused.problem()), (404, "not_found"));
        }
        assert_eq!(bob.get(&format!("/v1/files?after={file}")).await.problem(), "validation");
        assert_eq!(Person { served: &served, badge: ANN }.get(&path).await.status, 200);
    }

    async fn pages_of_files_are_newest_first(kept: Kept) {
        let served = desk(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let mut files = Vec::new();
        for number in 0..5 {
            files.push(upload(&served, ANN, "note.txt", format!("note {number}").as_bytes()).await);
        }
        files.reverse();
        let (mut listed, mut path) = (Vec::new(), "/v1/files?limit=2".to_owned());
        loop {
            let page = ann.get(&path).await;
            let data = page.body["data"].as_array().unwrap();
            listed.extend(data.iter().map(|file| file["id"].as_str().unwrap().to_owned()));
            if page.body["has_more"] == false {
                break;
            }
            path = format!("/v1/files?limit=2&after={}", page.text("last_id"));
        }
        assert_eq!(listed, files);
    }

    async fn a_tenant_has_no_more_than_its_quota(kept: Kept) {
        let limits = FileLimits { quota: FileQuota { files: 2, bytes: 100 }, ..FileLimits::default() };
        let served = served(given_an_agent().kept(kept).await, limits).await;
        let first = upload(&served, ANN, "a.txt", &[b'a'; 60]).await;
        let text = async |badge, size| send(&served, badge, &[("name=\"file\"; filename=\"b.txt\"", &vec![b'b'; size])]).await;

        let refused = text(ANN, 41).await;
        assert_eq!((refused.problem(), refused.text("reason")), ("conflict", "limit_reached"));
        assert!(refused.text("detail").contains("1 files with 60 bytes"), "{refused:?}");
        assert_eq!(text("bob bolt all", 41).await.status, 201, "another tenant");
        assert_eq!(text(ANN, 40).await.status, 201);
        assert_eq!(text(ANN, 1).await.problem(), "conflict");
        let ann = Person { served: &served, badge: ANN };
        assert_eq!(ann.delete(&format!("/v1/files/{first}")).await.status, 204);
        assert_eq!(text(ANN, 1).await.status, 201);
    }

    async fn concurrent_uploads_never_exceed_the_quota(kept: Kept) {
        let limits = FileLimits { quota: FileQuota { files: 3, bytes: 1000 }, ..FileLimits::default() };
        let served = served(given_an_agent().kept(kept).await, limits).await;
        let all = join_all((0..8).map(|_| send(&served, ANN, &[("name=\"file\"", b"text")]))).await;
        assert_eq!(all.iter().filter(|answer| answer.status == 201).count(), 3, "{all:?}");
    }
}

#[tokio::test]
async fn a_principal_deletes_its_own_files_and_reads_all() {
    let served = desk(Kept::InMemory).await;
    let file = upload(&served, "ann acme all ann", "a.pdf", PDF).await;
    let shared = upload(&served, ANN, "b.pdf", PDF).await;
    let eve = Person { served: &served, badge: "eve acme all eve" };
    for id in [&file, &shared] {
        let path = format!("/v1/files/{id}");
        assert_eq!(eve.get(&path).await.status, 200);
        let refused = eve.delete(&path).await;
        assert_eq!((refused.problem(), refused.text("reason")), ("forbidden", "other_principal"));
    }
    assert_eq!(eve.get(&format!("/v1/files/{file}")).await.text("principal"), "ann");
    let ann = Person { served: &served, badge: "ann acme all ann" };
    assert_eq!(ann.delete(&format!("/v1/files/{file}")).await.status, 204);
}

#[tokio::test]
async fn the_first_bytes_determine_the_type_whatever_the_client_says() {
    let served = desk(Kept::InMemory).await;
    let upload = async |name: &str, bytes: &[u8]| {
        let disposition = format!("name=\"file\"; filename=\"{name}\"\r\nContent-Type: image/svg+xml");
        send(&served, ANN, &[(&disposition, bytes)]).await
    };
    for (name, bytes, media_type) in [
        ("a.txt", PNG, "image/png"),
        ("a.md", b"# Hi".as_slice(), "text/markdown"),
        ("a.html", b"<script>alert(1)</script>", "text/html"),
        ("a.png", b"<svg onload=alert(1)>", "text/plain"),
        // A file of two types is what its first bytes say, and is never shown in this server's name.
        ("a.html", b"GIF89a/*<script>alert(1)</script>*/", "image/gif"),
    ] {
        let uploaded = upload(name, bytes).await;
        assert_eq!((uploaded.status.as_u16(), uploaded.text("media_type")), (201, media_type), "{name}");
    }
    for bytes in [&b"PK\x03\x04\x14\0"[..], b"\x7fELF\x02\0", b"caf\xe9", b"text\0"] {
        let refused = upload("a.pdf", bytes).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (415, "unsupported_media_type"), "{bytes:?}");
        assert!(refused.text("detail").contains("a PDF"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_hostile_name_is_cut_or_refused() {
    let served = desk(Kept::InMemory).await;
    let named =
        async |name: &str| send(&served, ANN, &[(&format!("name=\"file\"; filename=\"{name}\""), b"text")]).await;
    for (sent, name) in [("../../etc/passwd", "passwd"), ("/a/b c.txt", "b c.txt"), ("é.txt", "é.txt")] {
        assert_eq!(named(sent).await.text("name"), name, "{sent}");
    }
    for wrong in ["..", "a/", "a\u{1b}[2Jb", "a\u{202e}txt.exe", &"x".repeat(257)] {
        let refused = named(wrong).await;
        assert!(["validation", "invalid_request"].contains(&refused.problem()), "{wrong:?}: {refused:?}");
        assert!(refused.status.is_client_error(), "{wrong:?}");
    }
    let unnamed = send(&served, ANN, &[("name=\"file\"", b"text")]).await;
    assert_eq!(unnamed.text("name"), "file");
}

#[tokio::test]
async fn a_wrong_form_is_refused_at_its_part() {
    let limits = FileLimits { max_bytes: 1000, ..FileLimits::default() };
    let served = served(given_an_agent().kept(Kept::InMemory).await, limits).await;
    let file: FormPart<'_> = ("name=\"file\"; filename=\"a.txt\"", b"text");
    let seconds = |text: &'static str| ("name=\"expires_in_s\"", text.as_bytes());
    for (parts, problem) in [
        (vec![], ("invalid_request", json!("/file"))),
        (vec![seconds("60")], ("invalid_request", json!("/file"))),
        (vec![file, file], ("invalid_request", json!("/file"))),
        (vec![file, ("name=\"purpose\"", b"user_data")], ("invalid_request", json!("/purpose"))),
        (vec![file, seconds("soon")], ("invalid_request", json!("/expires_in_s"))),
        (vec![file, seconds("0")], ("validation", json!("/expires_in_s"))),
        (vec![file, seconds("604801")], ("validation", json!("/expires_in_s"))),
        (vec![("name=\"file\"; filename=\"a.txt\"", b"")], ("validation", json!("/file"))),
    ] {
        let refused = send(&served, ANN, &parts).await;
        assert_eq!(pointer(&refused), (problem.0, &problem.1), "{parts:?}");
    }
    let large = send(&served, ANN, &[("name=\"file\"; filename=\"a.txt\"", &[b'a'; 1001])]).await;
    assert_eq!((large.status.as_u16(), large.problem()), (413, "payload_too_large"));

    let body = async |media_type: &str, body: Vec<u8>| {
        let request = served.request(Method::POST, "/v1/files").header("x-badge", ANN);
        HttpAnswer::of(request.header("content-type", media_type).body(body).send().await.unwrap()).await
    };
    let whole = form(BOUNDARY, &[file]);
    let of_form = format!("multipart/form-data; boundary={BOUNDARY}");
    for (media_type, sent, problem) in [
        ("application/json", b"{}".to_vec(), "unsupported_media_type"),
        ("multipart/form-data", whole.clone(), "unsupported_media_type"),
        (&of_form, whole[..whole.len() - 20].to_vec(), "invalid_request"),
        (&of_form, Vec::new(), "invalid_request"),
        ("multipart/form-data; boundary=other", whole.clone(), "invalid_request"),
    ] {
        let refused = body(media_type, sent).await;
        assert_eq!(refused.problem(), problem, "{media_type}: {refused:?}");
    }
    // More than the file and the rest of the form may have: refused by its length, and while it arrives.
    assert_eq!(body(&of_form, vec![b'a'; 70_000]).await.problem(), "payload_too_large");
    let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'a'; 10_000]));
    let endless = served.request(Method::POST, "/v1/files").header("x-badge", ANN).header("content-type", &of_form);
    let answer = endless.body(reqwest::Body::wrap_stream(pieces)).send().await;
    assert!(answer.is_err() || answer.unwrap().status() == 413);
    assert_eq!(Person { served: &served, badge: ANN }.get("/v1/files").await.body["data"], json!([]));
}

/// Sends the head of an upload and the beginning of its body.
async fn begin(served: &Served, badge: &str) -> TcpStream {
    let mut socket = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /v1/files HTTP/1.1\r\nhost: localhost\r\nx-badge: {badge}\r\ncontent-length: 100000\r\n\
         content-type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n--{BOUNDARY}\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

async fn status(mut socket: TcpStream) -> String {
    let mut answer = vec![0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_ends_its_upload() {
    let served = desk(Kept::InMemory).await;
    let slow = begin(&served, ANN).await;
    assert_eq!(status(slow).await, "HTTP/1.1 408");
    upload(&served, ANN, "a.pdf", PDF).await;
}

#[tokio::test(start_paused = true)]
async fn slow_uploads_of_a_tenant_delay_only_its_own() {
    let served = desk(Kept::InMemory).await;
    let slow = [begin(&served, ANN).await, begin(&served, ANN).await];
    // Those of another tenant are received meanwhile; a third one of this tenant waits for ten seconds.
    upload(&served, "bob bolt all", "a.pdf", PDF).await;
    let third = begin(&served, ANN).await;
    let mut statuses = join_all(slow.into_iter().chain([third]).map(status)).await;
    statuses.sort();
    assert_eq!(statuses, ["HTTP/1.1 408", "HTTP/1.1 408", "HTTP/1.1 429"]);
    upload(&served, ANN, "a.pdf", PDF).await;
}

#[tokio::test]
async fn a_repeated_upload_is_the_same_file_whatever_its_boundary() {
    let served = desk(Kept::InMemory).await;
    let upload = async |boundary: &str, content: &[u8]| {
        let request = served.request(Method::POST, "/v1/files").header("x-badge", ANN).header("idempotency-key", "k");
        let request = request.header("content-type", format!("multipart/form-data; boundary={boundary}"));
        let form = form(boundary, &[("name=\"file\"; filename=\"a.txt\"", content)]);
        HttpAnswer::of(request.body(form).send().await.unwrap()).await
    };
    let first = upload("----one-boundary-of-a-client", b"text").await;
    let again = upload("----the-other-of-a-client", b"text").await;
    assert_eq!((again.status.as_u16(), &again.body), (201, &first.body));
    assert_eq!(again.header("idempotent-replayed"), "true");
    let other = upload("----one-boundary-of-a-client", b"texts").await;
    assert_eq!((other.problem(), other.text("reason")), ("validation", "key_reused"));
    let listed = Person { served: &served, badge: ANN }.get("/v1/files").await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_file_is_not_found_and_deleted_later() {
    let served = desk(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    let short = send(&served, ANN, &[("name=\"file\"", b"short"), ("name=\"expires_in_s\"", b"3600")]).await;
    let long = upload(&served, ANN, "long.txt", b"long").await;
    let path = format!("/v1/files/{}", short.text("id"));
    let sweep = async || {
        let files = served.gateway.service().file_config().unwrap();
        files.delete_expired(served.gateway.service().runner().now()).await.unwrap()
    };
    tokio::time::advance(Duration::from_secs(3000)).await;
    assert_eq!((ann.get(&path).await.status.as_u16(), sweep().await), (200, 0));

    tokio::time::advance(Duration::from_secs(700)).await;
    assert_eq!(ann.get(&path).await.problem(), "not_found");
    assert_eq!(ann.get("/v1/files").await.body["data"][0]["id"], long);
    let blob = async || {
        let blobs = served.world.runner.blobs().unwrap();
        blobs.get(&BlobHandle::for_bytes(b"short")).await.unwrap()
    };
    assert!(blob().await.is_some());
    assert_eq!(sweep().await, 1);
    assert!(blob().await.is_none());
    tokio::time::advance(Duration::from_secs(7 * 24 * 3600)).await;
    assert_eq!((sweep().await, ann.get("/v1/files").await.body["data"].clone()), (1, json!([])));
}
