//! Findings about the receiver of traces and the port of the gateway.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::finding::{Finding, Section, Verdict};
use crate::app;
use crate::cli::models::host;
use crate::config::Settings;

/// How long a receiver may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(3);

pub(super) async fn findings(settings: &Settings) -> Vec<Finding> {
    vec![telemetry(settings).await, port(settings).await]
}

async fn telemetry(settings: &Settings) -> Finding {
    let section = Section::Telemetry;
    // Faults of the settings are among the findings of the configuration.
    let Ok(receiver) = app::span_receiver(settings) else {
        return section.finding(Verdict::Unknown, "traces", "not checked: the settings cannot be used");
    };
    let Some(url) = receiver else {
        return section.finding(Verdict::Note, "traces", "are not sent");
    };
    let host = host(&url);
    let port = if url.starts_with("https") { 443 } else { 80 };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { host.clone() } else { format!("{host}:{port}") };
    let why = match timeout(CONNECTING, TcpStream::connect(&address)).await {
        Ok(Ok(_)) => {
            let message = format!("{host} accepts connections; whether it accepts spans is not known");
            return section.finding(Verdict::Ok, "traces", message);
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no connection within {CONNECTING:?}"),
    };
    // Losing spans never harms a run.
    section
        .finding(Verdict::Warning, "traces", format!("{host} cannot be reached directly: {why}; spans would be lost"))
        .with_remedy("start the receiver, or change `telemetry.otlp_endpoint` or OTEL_EXPORTER_OTLP_ENDPOINT")
}

async fn port(settings: &Settings) -> Finding {
    let (section, address) = (Section::Gateway, settings.gateway.listen);
    match TcpListener::bind(address).await {
        Ok(_) => section.finding(Verdict::Ok, "address", format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => section
            .finding(
                Verdict::Unknown,
                "address",
                format!("{address} is in use; whether by `toolgate serve` is not known"),
            )
            .with_remedy("if it is another program, choose another port with `--listen` or `gateway.listen`"),
        Err(error) => section
            .finding(Verdict::Warning, "address", format!("cannot listen at {address}: {error}"))
            .with_remedy("choose another address with `--listen` or `gateway.listen`"),
    }
}
