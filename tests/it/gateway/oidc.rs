//! OpenID Connect: tokens of the issuer authenticate, and forgeries do not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures::future::join_all;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolgate::gateway::{Authenticator as _, Claims, OidcAuthenticator, OidcSettings};
use toolgate::service::{Scope, Scopes};

use super::served::{HttpAnswer, Served};
use super::test_site::until;
use crate::runner::world::{Kept, given_an_agent, say};

const AUDIENCE: &str = "toolgate";

/// An issuer on this machine.
struct Issuer {
    url: String,
    kept: Arc<Published>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Published {
    url: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    is_down: Mutex<bool>,
    hangs: watch::Sender<bool>,
    asked: AtomicUsize,
}

/// A signing key.
#[derive(Clone)]
struct Signer {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
}

fn ed25519(id: &str) -> Signer {
    let pair = Ed25519KeyPair::generate().unwrap();
    let der = pair.to_pkcs8v1().unwrap();
    Signer { id: id.to_owned(), algorithm: Algorithm::EdDSA, key: EncodingKey::from_ed_der(der.as_ref()) }
}

fn p256(id: &str) -> Signer {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let der = pair.to_pkcs8v1().unwrap();
    Signer { id: id.to_owned(), algorithm: Algorithm::ES256, key: EncodingKey::from_ec_der(der.as_ref()) }
}

fn rsa(id: &str) -> Signer {
    let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
    // The older form of the same key, which the newer one contains.
    let pkcs1 = inner_key(der.as_ref());
    Signer { id: id.to_owned(), algorithm: Algorithm::RS256, key: EncodingKey::from_rsa_der(pkcs1) }
}

/// The last octet string of a PKCS #8 document: version, algorithm, key.
fn inner_key(pkcs8: &[u8]) -> &[u8] {
    let start = pkcs8.windows(4).skip(4).position(|bytes| bytes[0] == 0x30 && bytes[1] == 0x82).unwrap() + 4;
    &pkcs8[start..]
}

impl Signer {
    fn published(&self) -> Value {
        let mut key = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        key["kid"] = json!(self.id);
        key["use"] = json!("sig");
        key
    }

    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).unwrap()
    }
}

impl Issuer {
    async fn publishing(signers: &[&Signer]) -> Self {
        let kept = Arc::new(Published::default());
        let keys = |State(kept): State<Arc<Published>>| async move {
            kept.asked.fetch_add(1, Ordering::SeqCst);
            kept.hangs.subscribe().wait_for(|hangs| !hangs).await.unwrap();
            match *kept.is_down.lock().unwrap() {
                true => Err(StatusCode::BAD_GATEWAY),
                false => Ok(Json(json!({"keys": kept.keys.lock().unwrap().clone()}))),
            }
        };
        let discovery = |State(kept): State<Arc<Published>>| async move {
            let url = kept.url.lock().unwrap().clone();
            Json(json!({"issuer": url, "jwks_uri": format!("{url}/keys")}))
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .with_state(kept.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        kept.url.lock().unwrap().clone_from(&url);
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let issuer = Self { url, kept, _serving: serving };
        issuer.publish(signers);
        issuer
    }

    fn publish(&self, signers: &[&Signer]) {
        // A key of an unknown kind must not cost the others.
        let unknown = json!({"kty": "lattice", "kid": "tomorrow", "alg": "ML-DSA-44"});
        let keys = std::iter::once(unknown).chain(signers.iter().map(|signer| signer.published()));
        *self.kept.keys.lock().unwrap() = keys.collect();
    }

    fn goes_down(&self) {
        *self.kept.is_down.lock().unwrap() = true;
    }

    fn hangs(&self, hangs: bool) {
        self.kept.hangs.send_replace(hangs);
    }

    fn asked(&self) -> usize {
        self.kept.asked.load(Ordering::SeqCst)
    }

    /// The claims of a valid token.
    fn claims(&self) -> Value {
        let now = jiff::Timestamp::now().as_second();
        json!({
            "iss": self.url, "aud": AUDIENCE, "sub": "ann", "scope": "openid runs:read runs:write", "org": "acme",
            "iat": now, "nbf": now, "exp": now + 300,
        })
    }

    fn claims_with(&self, field: &str, value: Value) -> Value {
        let mut claims = self.claims();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(field)),
            value => claims[field] = value,
        }
        claims
    }

    fn settings(&self) -> OidcSettings {
        OidcSettings::new(self.url.as_str(), AUDIENCE)
    }
}

async fn served(settings: OidcSettings) -> Served {
    let world = given_an_agent().whose_model_says(json!([say("Hello.")])).kept(Kept::InMemory).await;
    Served::with(world, |builder| builder.authenticator(Arc::new(OidcAuthenticator::new(settings).unwrap()))).await
}

async fn shown(served: &Served, token: &str) -> HttpAnswer {
    HttpAnswer::of(served.request(Method::GET, "/v1/runs").bearer_auth(token).send().await.unwrap()).await
}

async fn refuses(served: &Served, token: &str, what: &str) {
    let answer = shown(served, token).await;
    assert_eq!((answer.status.as_u16(), answer.problem()), (401, "unauthorized"), "{what}");
    assert_eq!(answer.header("www-authenticate"), r#"Bearer realm="toolgate", error="invalid_token""#);
    assert!(!answer.text("detail").contains("expired"), "the reason is not disclosed: {answer:?}");
}

#[tokio::test]
async fn a_valid_token_authenticates_with_its_scopes() {
    let signers = [ed25519("ed"), p256("ec"), rsa("rsa")];
    let issuer = Issuer::publishing(&signers.iter().collect::<Vec<_>>()).await;
    let served = served(issuer.settings()).await;
    for signer in &signers {
        let answer = shown(&served, &signer.sign(&issuer.claims())).await;
        assert_eq!(answer.status, 200, "{:?}: {answer:?}", signer.algorithm);
    }
    let token = signers[0].sign(&issuer.claims());
    let run = served.request(Method::POST, "/v1/runs").bearer_auth(&token).json(&json!({"input": "Hello"}));
    let run = HttpAnswer::of(run.send().await.unwrap()).await;
    assert_eq!((run.text("created_by"), run.text("principal")), ("user:ann", "ann"), "{run:?}");
    let reader = signers[0].sign(&issuer.claims_with("scope", json!(["runs:read"])));
    assert_eq!(shown(&served, &reader).await.status, 200);
    let nothing = signers[0].sign(&issuer.claims_with("scope", json!("openid")));
    assert_eq!(shown(&served, &nothing).await.problem(), "forbidden");
    assert_eq!(issuer.asked(), 1, "the keys were fetched once");
}

#[tokio::test]
async fn a_token_with_wrong_claims_is_refused() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let served = served(issuer.settings()).await;
    let now = jiff::Timestamp::now().as_second();
    for (field, value) in [
        ("aud", json!("another")),
        ("aud", Value::Null),
        ("iss", json!("https://evil.example")),
        ("iss", json!(format!("{}/", issuer.url))),
        ("iss", Value::Null),
        ("exp", json!(now - 61)),
        ("exp", Value::Null),
        ("nbf", json!(now + 90)),
        ("sub", Value::Null),
        ("sub", json!("")),
    ] {
        refuses(&served, &signer.sign(&issuer.claims_with(field, value.clone())), &format!("{field}: {value}")).await;
    }
    for (field, value) in [("exp", json!(now - 30)), ("nbf", json!(now + 30)), ("aud", json!(["x", AUDIENCE]))] {
        let answer = shown(&served, &signer.sign(&issuer.claims_with(field, value))).await;
        assert_eq!(answer.status, 200, "clocks may differ a little: {field}");
    }
}

#[tokio::test]
async fn a_forged_signature_is_refused() {
    let (signer, rsa) = (ed25519("ed"), rsa("rsa"));
    let issuer = Issuer::publishing(&[&signer, &rsa]).await;
    let served = served(issuer.settings()).await;
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = issuer.claims();
    let good = signer.sign(&claims);
    assert_eq!(shown(&served, &good).await.status, 200);

    let [head, body, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    for algorithm in ["none", "None", "NONE", "nOnE"] {
        let head = part(&json!({"alg": algorithm, "kid": "ed"}));
        refuses(&served, &format!("{head}.{body}."), algorithm).await;
        refuses(&served, &format!("{head}.{body}.{signature}"), algorithm).await;
    }
    // The public key used as a shared secret.
    for known in [rsa.published(), signer.published()] {
        for secret in [known.to_string(), known["n"].as_str().or(known["x"].as_str()).unwrap().to_owned()] {
            let header =
                Header { kid: Some(known["kid"].as_str().unwrap().to_owned()), ..Header::new(Algorithm::HS256) };
            let forged = encode(&header, &claims, &EncodingKey::from_secret(secret.as_bytes())).unwrap();
            refuses(&served, &forged, "a public key as a secret").await;
        }
    }
    let stranger = Signer { id: "ed".to_owned(), ..ed25519("x") };
    refuses(&served, &stranger.sign(&claims), "another's signature under a known id").await;
    let mixed = Signer { id: "rsa".to_owned(), ..signer.clone() };
    refuses(&served, &mixed.sign(&claims), "the id of a key of another kind").await;
    let other_body = part(&issuer.claims_with("sub", json!("root")));
    refuses(&served, &format!("{head}.{other_body}.{signature}"), "another body").await;
    let critical = part(&json!({"alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false}));
    refuses(&served, &format!("{critical}.{body}.{signature}"), "something critical").await;
    let nested = Header { kid: None, jwk: None, ..Header::new(Algorithm::EdDSA) };
    let without_id = encode(&nested, &claims, &signer.key).unwrap();
    refuses(&served, &without_id, "no id where there are several keys").await;
    for rubbish in ["..", "a.b.c", &format!("{good}.x"), &"x".repeat(20_000)] {
        refuses(&served, rubbish, "rubbish").await;
    }
}

#[tokio::test]
async fn keys_of_other_kinds_verify_no_signature() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let symmetric = json!({"kty": "oct", "kid": "oct", "k": BASE64_URL_SAFE_NO_PAD.encode("secret"), "alg": "HS256"});
    let mut for_encryption = signer.published();
    for_encryption["kid"] = json!("enc");
    for_encryption["use"] = json!("enc");
    *issuer.kept.keys.lock().unwrap() = vec![symmetric, for_encryption];
    let served = served(issuer.settings()).await;
    let header = Header { kid: Some("oct".to_owned()), ..Header::new(Algorithm::HS256) };
    let forged = encode(&header, &issuer.claims(), &EncodingKey::from_secret(b"secret")).unwrap();
    refuses(&served, &forged, "a shared secret that was published").await;
    let other_use = Signer { id: "enc".to_owned(), ..signer };
    refuses(&served, &other_use.sign(&issuer.claims()), "a key for encryption").await;
}

#[tokio::test]
async fn unknown_key_ids_cause_few_fetches_and_a_new_key_is_found() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let settings = OidcSettings { pause: Duration::from_millis(400), ..issuer.settings() };
    let served = served(settings).await;
    assert_eq!(shown(&served, &signer.sign(&issuer.claims())).await.status, 200);
    let strangers = (0..50).map(|number| Signer { id: format!("x{number}"), ..signer.clone() }.sign(&issuer.claims()));
    let tokens: Vec<String> = strangers.collect();

    let began = tokio::time::Instant::now();
    let refused = join_all(tokens.iter().map(|token| shown(&served, token))).await;
    let most = 2 + usize::try_from(began.elapsed().as_millis() / 400).unwrap();

    assert!(refused.iter().all(|answer| answer.status == 401), "{refused:?}");
    assert!(issuer.asked() <= most, "{} times", issuer.asked());
    let next = p256("next");
    issuer.publish(&[&signer, &next]);
    let found = async {
        while shown(&served, &next.sign(&issuer.claims())).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), found).await.expect("a new key is found");
}

#[tokio::test]
async fn known_keys_stay_in_use_while_the_issuer_is_down() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let fresh = Duration::from_millis(1);
    let served = served(OidcSettings { fresh, pause: fresh, ..issuer.settings() }).await;
    assert_eq!(shown(&served, &signer.sign(&issuer.claims())).await.status, 200);
    issuer.goes_down();
    let before = issuer.asked();
    for _ in 0..3 {
        tokio::time::sleep(2 * fresh).await;
        assert_eq!(shown(&served, &signer.sign(&issuer.claims())).await.status, 200);
    }
    assert!(issuer.asked() > before, "the keys were requested again");
}

#[tokio::test]
async fn a_known_key_does_not_wait_for_an_issuer_that_hangs() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let fresh = Duration::from_millis(1);
    let served = served(OidcSettings { fresh, pause: fresh, ..issuer.settings() }).await;
    assert_eq!(shown(&served, &signer.sign(&issuer.claims())).await.status, 200);
    issuer.hangs(true);
    tokio::time::sleep(2 * fresh).await;
    for _ in 0..3 {
        assert_eq!(shown(&served, &signer.sign(&issuer.claims())).await.status, 200);
    }
    assert_eq!(issuer.asked(), 2, "the request is still in progress");
}

#[tokio::test]
async fn a_client_that_disconnects_does_not_stop_a_key_fetch() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let door = OidcAuthenticator::new(issuer.settings()).unwrap();
    let shows = Request::builder().header("authorization", format!("Bearer {}", signer.sign(&issuer.claims())));
    let (shown, ()) = shows.body(()).unwrap().into_parts();
    issuer.hangs(true);
    tokio::select! {
        _ = door.authenticate(&shown) => panic!("the issuer hangs"),
        () = until(async || issuer.asked() == 1) => {}
    }
    issuer.hangs(false);

    let caller = door.authenticate(&shown).await.unwrap().expect("the authenticator accepts tokens");

    assert_eq!((&*caller.name, issuer.asked()), ("user:ann", 1));
}

#[tokio::test]
async fn without_keys_the_answer_is_unavailable_until_they_arrive() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    issuer.goes_down();
    let served = served(OidcSettings { pause: Duration::from_millis(20), ..issuer.settings() }).await;
    let token = signer.sign(&issuer.claims());
    let answer = shown(&served, &token).await;
    assert_eq!((answer.status.as_u16(), answer.problem()), (503, "unavailable"));
    assert_eq!(answer.body["retryable"], true);
    *issuer.kept.is_down.lock().unwrap() = false;
    let let_in = async {
        while shown(&served, &token).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), let_in).await.expect("the keys arrive");
}

#[tokio::test]
async fn an_issuer_with_another_name_is_not_trusted() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let settings = issuer.settings();
    "https://evil.example".clone_into(&mut issuer.kept.url.lock().unwrap());
    let served = served(settings).await;
    assert_eq!(shown(&served, &signer.sign(&issuer.claims())).await.problem(), "unavailable");
}

#[tokio::test]
async fn a_token_opens_the_tenant_it_names_and_no_other() {
    let signer = ed25519("ed");
    let issuer = Issuer::publishing(&[&signer]).await;
    let staff =
        BTreeMap::from([("staff".to_owned(), [Scope::RunsRead, Scope::RunsWrite].into_iter().collect::<Scopes>())]);
    let claims = Claims { scope: "groups".to_owned(), tenant: Some("org".to_owned()), scopes_of: Some(staff) };
    let served = served(OidcSettings { claims, ..issuer.settings() }).await;
    let of = |org: Value, groups: Value| {
        let mut claims = issuer.claims_with("org", org);
        claims["groups"] = groups;
        signer.sign(&claims)
    };
    let acme = of(json!("acme"), json!(["staff"]));
    let run = served.request(Method::POST, "/v1/runs").bearer_auth(&acme).json(&json!({"input": "Hello"}));
    let run = HttpAnswer::of(run.send().await.unwrap()).await.text("id").to_owned();
    let read = async |token: &str| {
        let request = served.request(Method::GET, &format!("/v1/runs/{run}")).bearer_auth(token);
        HttpAnswer::of(request.send().await.unwrap()).await
    };
    assert_eq!(read(&acme).await.status, 200);
    assert_eq!(read(&of(json!("bolt"), json!(["staff"]))).await.problem(), "not_found");
    assert_eq!(read(&of(json!("acme"), json!(["guests"]))).await.problem(), "forbidden");
    refuses(&served, &of(Value::Null, json!(["staff"])), "no tenant is guessed").await;
}
