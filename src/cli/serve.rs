//! `toolgate serve`: the HTTP gateway.

use std::net::SocketAddr;

use clap::Args;
use tokio::net::TcpListener;

use super::error::CliError;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::output::Output;
use super::setup::{self, ConfigFlag};
use crate::core::error::ErrorCode;

/// Serve runs over HTTP
#[derive(Args, Debug)]
pub(super) struct Serve {
    #[command(flatten)]
    config: ConfigFlag,

    /// Where to listen [default: gateway.listen of the configuration, or else 127.0.0.1:8484]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

impl Serve {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let settings = setup::settings(&self.config)?;
        let address = self.listen.unwrap_or(settings.gateway.listen);
        let app = setup::open(settings).await?;
        let served = async {
            let router = app.gateway(address).await?.router();
            let refused =
                |error| CliError::told(ErrorCode::Configuration, format!("{address} cannot be listened at: {error}"));
            let listener = TcpListener::bind(address).await.map_err(refused)?;
            let address = listener.local_addr().map_err(refused)?;
            out.note(format!("listening at http://{address}"));
            let mut interrupts = Interrupts::listen();
            let stopped = async move {
                let _ = interrupts.next().await;
            };
            axum::serve(listener, router).with_graceful_shutdown(stopped).await.map_err(refused)
        };
        let served = served.await;
        super::close(app, out).await;
        served.map(|()| Exit::Done)
    }
}
