//! Receivers behind TLS, with the certificates of `tests/fixtures/tls`, and the export of spans to them.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::export::{PROTOCOLS, sink, tell};
use super::journals;
use super::receiver::Receiver;

/// A listener that accepts after a TLS handshake.
pub(crate) struct Locked {
    door: TcpListener,
    acceptor: TlsAcceptor,
}

impl Locked {
    /// For all clients.
    fn for_all(door: TcpListener) -> Self {
        let provider = Arc::new(default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Self::with(door, config.with_no_client_auth().with_single_cert(vec![receiver()], key("receiver.key")).unwrap())
    }

    /// For clients with a certificate of the authority.
    fn for_known_clients(door: TcpListener) -> Self {
        let provider = Arc::new(default_provider());
        let mut known = RootCertStore::empty();
        known.add(CertificateDer::from_pem_file(file("authority.pem")).unwrap()).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(known), provider.clone()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_client_cert_verifier(clients);
        Self::with(door, config.with_single_cert(vec![receiver()], key("receiver.key")).unwrap())
    }

    fn with(door: TcpListener, mut config: ServerConfig) -> Self {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { door, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

impl axum::serve::Listener for Locked {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.door.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.door.local_addr()
    }
}

fn receiver() -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file("receiver.pem")).unwrap()
}

fn key(name: &str) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_file(file(name)).unwrap()
}

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/tls", name].iter().collect()
}

/// Exports the spans of a run with these files; an error if they did not arrive.
fn send(receiver: &Receiver, protocol: &str, files: &[(&str, &str)]) -> Result<(), String> {
    let named = |(what, name): &(&str, &str)| (format!("OTEL_EXPORTER_OTLP_{what}"), file(name).display().to_string());
    let files: Vec<(String, String)> = files.iter().map(named).collect();
    let mut environment = vec![("OTEL_EXPORTER_OTLP_PROTOCOL", protocol), ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")];
    environment.extend(files.iter().map(|(name, path)| (name.as_str(), path.as_str())));
    let sink = sink(&receiver.url(), &environment);
    tell(&sink, &journals::plain_answer(Timestamp::UNIX_EPOCH));
    sink.shutdown().map_err(|error| error.to_string())
}

const AUTHORITY: (&str, &str) = ("CERTIFICATE", "authority.pem");

#[test]
fn a_tls_receiver_gets_spans_only_with_a_trusted_certificate() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::behind(Locked::for_all);
        assert_eq!(send(&receiver, protocol, &[AUTHORITY]), Ok(()), "{protocol}");
        assert!(receiver.spans() > 0, "{protocol}");

        let receiver = Receiver::behind(Locked::for_all);
        for trusted in [&[("CERTIFICATE", "stranger.pem")][..], &[]] {
            assert!(send(&receiver, protocol, trusted).is_err(), "{protocol}, trusting {trusted:?}");
        }
        assert_eq!(receiver.spans(), 0, "{protocol}");
    }
}

#[test]
fn a_receiver_with_client_authentication_gets_the_certificate() {
    let client = [AUTHORITY, ("CLIENT_CERTIFICATE", "client.pem"), ("CLIENT_KEY", "client.key")];
    for protocol in PROTOCOLS {
        let receiver = Receiver::behind(Locked::for_known_clients);
        assert!(send(&receiver, protocol, &[AUTHORITY]).is_err(), "{protocol}: no client certificate");
        assert_eq!(receiver.spans(), 0, "{protocol}");
        assert_eq!(send(&receiver, protocol, &client), Ok(()), "{protocol}");
        assert!(receiver.spans() > 0, "{protocol}");
    }
}
