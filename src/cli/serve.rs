//! `toolgate serve`: the HTTP gateway.

mod signals;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::setup::{self, ConfigFlag};
use crate::app::{App, FLUSH, Gateway, ServeSettings, Worker, serve};
use crate::core::error::ErrorCode;
use crate::runner::DrainTimes;
use crate::telemetry::logging::Format;
use signals::{Signal, Signals};

/// The time limit of a step in progress after the drain time: usually a model's answer.
const STEP: Duration = Duration::from_secs(20);

/// The time limit for closing everything else.
const CLOSING: Duration = Duration::from_secs(15);

/// The same, with the last export of spans and log records.
const CLOSING_WITH_EXPORT: Duration = Duration::from_secs(CLOSING.as_secs() + FLUSH.as_secs());

/// Serve runs over HTTP
#[derive(Args, Debug)]
#[command(after_help = "\
SIGTERM and Ctrl-C drain: no new run is accepted, active runs continue for gateway.drain_s and are then released, so
that another process claims them. A second signal ends at once. SIGHUP reads the configuration again.")]
pub(super) struct Serve {
    #[command(flatten)]
    config: ConfigFlag,

    /// Where to listen [default: gateway.listen of the configuration, or else 127.0.0.1:8484]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The format of the log on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// A line for people
    Text,
    /// A JSON object per line
    Json,
}

/// The reason why serving ended.
enum ShutdownReason {
    Drained,
    AtOnce,
}

impl Serve {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        // The process listens for signals before it opens anything, because a signal may arrive at once.
        let mut signals = Signals::listen();
        let settings = setup::settings(&self.config)?;
        let address = self.listen.unwrap_or(settings.gateway.listen);
        setup::log_of_server(&settings, self.log_format.into())?;
        let mut app = App::open_server(settings).await?;
        let served = self.serve(&mut app, address, &mut signals, out).await;
        let closed = async {
            match served {
                Ok(ShutdownReason::AtOnce) => app.abandon().await,
                Ok(ShutdownReason::Drained) | Err(_) => setup::close(app, out).await,
            }
        };
        if timeout(CLOSING_WITH_EXPORT, closed).await.is_err() {
            tracing::warn!("failed to close in time; exiting");
        }
        served.map(|ended| match ended {
            ShutdownReason::Drained => Exit::Done,
            ShutdownReason::AtOnce => Exit::Cancelled,
        })
    }

    async fn serve(
        &self,
        app: &mut App,
        address: SocketAddr,
        signals: &mut Signals,
        out: &mut Output,
    ) -> Result<ShutdownReason, CliError> {
        let refused = |error: std::io::Error| {
            let refused = CliError::new(ErrorCode::Configuration, format!("cannot listen at {address}: {error}"));
            if error.kind() != std::io::ErrorKind::AddrInUse {
                return refused;
            }
            refused.with_remedy(
                "another program listens there, perhaps another `toolgate serve`: end it, or choose another port with \
                 `--listen` or `gateway.listen`",
            )
        };
        // A server that cannot bind its address must not change the store.
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let gateway = app.gateway(address).await?;
        let closing = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, gateway.router(), ServeSettings::default(), closing.clone()));
        let rest = Worker::begin(gateway.service()).map_err(|why| CliError::new(ErrorCode::Internal, why))?;
        app.start_servers();
        let (pid, store) = (std::process::id(), app.store_name());
        out.note(format!("listening at http://{address}"));
        tracing::info!(%address, pid, store, "serving");
        while signals.next().await == Signal::Reload {
            self.reload(app, &gateway).await;
        }
        let drained = drain(app, &gateway, rest, signals).await;
        closing.cancel();
        if matches!(drained, ShutdownReason::Drained) {
            serving.join_all().await;
            if timeout(CLOSING, gateway.close()).await.is_err() {
                tracing::warn!("server closed with requests in progress; their outcome is unknown");
            }
        }
        Ok(drained)
    }

    /// Reloads the configuration. An invalid configuration changes nothing.
    async fn reload(&self, app: &mut App, gateway: &Gateway) {
        let taken = match setup::settings(&self.config) {
            Ok(settings) => app.reload(settings, gateway).await.map_err(CliError::from),
            Err(error) => Err(error),
        };
        match taken {
            Ok(not_taken) if not_taken.is_empty() => tracing::info!("configuration reloaded"),
            Ok(not_taken) => {
                tracing::warn!(not_taken = not_taken.join(", "), "configuration reloaded; some changes need a restart")
            }
            Err(error) => tracing::error!(%error, "failed to reload configuration; the old one stays in use"),
        }
    }
}

/// Waits until active runs are idle, or releases them.
async fn drain(app: &App, gateway: &Gateway, rest: Worker, signals: &mut Signals) -> ShutdownReason {
    let times = DrainTimes { rest: app.settings.gateway.drain, step: STEP };
    tracing::info!(drain_s = times.rest.as_secs(), runs = gateway.activity().driven, "stopping; no new runs start");
    gateway.stop();
    let drained = async { tokio::join!(rest.end(), app.runner.drain(times)).1 };
    let stopped = async { while signals.next().await != Signal::Stop {} };
    tokio::select! {
        cut = drained => {
            if cut > 0 {
                tracing::warn!(runs = cut, "runs released in the middle of a step");
            }
            tracing::info!("stopped");
            ShutdownReason::Drained
        }
        () = stopped => {
            tracing::warn!("stopped at once; active runs are recovered after their leases expire");
            ShutdownReason::AtOnce
        }
    }
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}
