//! Strict authorization server: a code is valid once and only with its verifier, a refresh token is valid once, and
//! every request names its resource.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

/// Names and values of a query or a form.
pub(super) type Fields = BTreeMap<String, String>;

/// Deviations of the server from its correct behaviour.
#[derive(Clone, Debug, Default)]
pub(super) struct Manner {
    /// The issuer in the authorization response: `None` for the right one.
    pub(super) iss: Option<String>,
    /// Omits the issuer from the response although the metadata announces it.
    pub(super) omits_iss: bool,
    /// The state in that response: `None` for the right one.
    pub(super) state: Option<String>,
    /// Denies authorization requests.
    pub(super) denies: bool,
    /// Does not announce PKCE.
    pub(super) omits_pkce: bool,
    /// The token endpoint that the metadata names: `None` for the right one.
    pub(super) token_endpoint: Option<String>,
    /// The announced lifetime of tokens, in seconds.
    pub(super) expires_in: Option<u64>,
    /// Gives registered clients a secret.
    pub(super) gives_secrets: bool,
    /// An existing client, with its secret.
    pub(super) client: Option<(String, String)>,
    /// Changes the answers to token requests.
    pub(super) answers: Option<fn(&mut Value)>,
    /// Refuses a refresh that names its resource.
    pub(super) refuses_resource: bool,
    /// Issues no refresh tokens.
    pub(super) withholds_refresh: bool,
}

/// The requests and the issued credentials.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) manner: Manner,
    /// Every request, by endpoint.
    pub(super) asked: Vec<(&'static str, Fields)>,
    codes: BTreeMap<String, Fields>,
    /// Valid access tokens, with their scopes.
    pub(super) access: BTreeMap<String, String>,
    refresh: BTreeMap<String, String>,
    clients: BTreeMap<String, Option<String>>,
    /// How many secrets were made.
    made: usize,
}

/// The server.
#[derive(Clone)]
pub(super) struct Authority {
    pub(super) issuer: String,
    /// The resource that tokens are for.
    resource: String,
    books: Arc<Mutex<Books>>,
}

impl Authority {
    /// Starts the server, which issues tokens for that resource.
    pub(super) async fn serve(resource: &str, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let mut books = Books { manner, ..Books::default() };
        if let Some((id, secret)) = books.manner.client.clone() {
            books.clients.insert(id, Some(secret));
        }
        let authority = Self { issuer, resource: resource.into(), books: Arc::new(Mutex::new(books)) };
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(authority.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        authority
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic")
    }

    /// The requests to one endpoint.
    pub(super) fn asked(&self, endpoint: &str) -> Vec<Fields> {
        let books = self.books();
        books.asked.iter().filter(|(at, _)| *at == endpoint).map(|(_, fields)| fields.clone()).collect()
    }

    /// Invalidates every access token, as an expiry does.
    pub(super) fn expire_access(&self) {
        self.books().access.clear();
    }

    /// Revokes every refresh token.
    pub(super) fn revoke(&self) {
        self.books().refresh.clear();
    }
}

impl Books {
    fn secret(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}-s3cret-{}", self.made)
    }

    /// Issues tokens with that scope.
    fn grant(&mut self, scope: &str, with_refresh: bool) -> Value {
        let access = self.secret("access");
        self.access.insert(access.clone(), scope.into());
        let refresh = (with_refresh && !self.manner.withholds_refresh).then(|| self.secret("refresh"));
        if let Some(refresh) = &refresh {
            self.refresh.insert(refresh.clone(), scope.into());
        }
        let mut answer = json!({
            "access_token": access,
            "token_type": "Bearer",
            "scope": scope,
            "refresh_token": refresh,
            "expires_in": self.manner.expires_in,
            "id_token": "id-s3cret",
        });
        self.manner.answers.iter().for_each(|change| change(&mut answer));
        answer
    }
}

async fn metadata(State(authority): State<Authority>) -> Response {
    let Authority { issuer, .. } = &authority;
    let manner = authority.books().manner.clone();
    let mut metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": manner.token_endpoint.unwrap_or_else(|| format!("{issuer}/token")),
        "registration_endpoint": format!("{issuer}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "private_key_jwt"],
    });
    if manner.omits_pkce {
        metadata.as_object_mut().expect("an object").remove("code_challenge_methods_supported");
    }
    axum::Json(metadata).into_response()
}

async fn register(State(authority): State<Authority>, axum::Json(asked): axum::Json<Value>) -> Response {
    let mut books = authority.books();
    let redirect = asked["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
    books.asked.push(("register", Fields::from([("redirect_uri".into(), redirect)])));
    let number = books.clients.len();
    let id = format!("client-{number}");
    let secret = books.manner.gives_secrets.then(|| format!("client-s3cret-{number}"));
    books.clients.insert(id.clone(), secret.clone());
    let uris = asked["redirect_uris"].clone();
    (StatusCode::CREATED, axum::Json(json!({"client_id": id, "client_secret": secret, "redirect_uris": uris})))
        .into_response()
}

async fn authorize(State(authority): State<Authority>, RawQuery(query): RawQuery) -> Response {
    let asked = fields(&query.unwrap_or_default());
    let mut books = authority.books();
    books.asked.push(("authorize", asked.clone()));
    let of = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let sound = books.clients.contains_key(&of("client_id"))
        && of("response_type") == "code"
        && of("code_challenge_method") == "S256"
        && of("resource") == authority.resource;
    if !sound {
        return (StatusCode::BAD_REQUEST, format!("refused: {asked:?}")).into_response();
    }
    let manner = books.manner.clone();
    let mut back = reqwest::Url::parse(&of("redirect_uri")).expect("a redirect URI");
    back.query_pairs_mut().append_pair("state", &manner.state.unwrap_or_else(|| of("state")));
    if !manner.omits_iss {
        back.query_pairs_mut().append_pair("iss", &manner.iss.unwrap_or_else(|| authority.issuer.clone()));
    }
    if manner.denies {
        back.query_pairs_mut().append_pair("error", "access_denied").append_pair("error_description", "ask your boss");
    } else {
        let code = books.secret("code");
        books.codes.insert(code.clone(), asked);
        back.query_pairs_mut().append_pair("code", &code);
    }
    (StatusCode::FOUND, [("location", back.to_string())]).into_response()
}

async fn token(State(authority): State<Authority>, headers: HeaderMap, body: String) -> Response {
    let asked = fields(&body);
    let mut books = authority.books();
    books.asked.push(("token", asked.clone()));
    let of = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    if of("grant_type") == "refresh_token" && books.manner.refuses_resource {
        if asked.contains_key("resource") {
            return refused("invalid_request");
        }
    } else if of("resource") != authority.resource {
        return refused("invalid_target");
    }
    let (id, secret) = client(&headers, &asked);
    let is_known = books.clients.get(&id).is_some_and(|expected| *expected == secret);
    match of("grant_type") {
        "authorization_code" if is_known => {
            let Some(page) = books.codes.remove(of("code")) else { return refused("invalid_grant") };
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(of("code_verifier")));
            let same = |name: &str| page.get(name).map(String::as_str) == Some(of(name));
            if page["code_challenge"] != challenge || !same("redirect_uri") || page["client_id"] != id {
                return refused("invalid_grant");
            }
            let scope = page.get("scope").cloned().unwrap_or_default();
            axum::Json(books.grant(&scope, true)).into_response()
        }
        "refresh_token" if is_known => match books.refresh.remove(of("refresh_token")) {
            Some(scope) => axum::Json(books.grant(&scope, true)).into_response(),
            None => refused("invalid_grant"),
        },
        "client_credentials" if is_known || of("client_assertion_type").ends_with("jwt-bearer") => {
            axum::Json(books.grant(of("scope"), false)).into_response()
        }
        _ => refused("invalid_client"),
    }
}

fn refused(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, axum::Json(json!({"error": error, "error_description": "no"}))).into_response()
}

/// The client of a request, by HTTP Basic or by its id only.
fn client(headers: &HeaderMap, asked: &Fields) -> (String, Option<String>) {
    let basic = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let basic = basic.map(|basic| String::from_utf8(STANDARD.decode(basic).expect("base64")).expect("text"));
    match basic.as_deref().and_then(|basic| basic.split_once(':')) {
        Some((id, secret)) => (id.into(), Some(secret.into())),
        None => (asked.get("client_id").cloned().unwrap_or_default(), asked.get("client_secret").cloned()),
    }
}

fn fields(encoded: &str) -> Fields {
    let mut url = reqwest::Url::parse("http://form.test/").expect("a URL");
    url.set_query(Some(encoded));
    url.query_pairs().into_owned().collect()
}
