//! Composition root: builds the adapters and the runner from settings. Only this module knows both.

mod access;
mod backends;
mod cost_limits;
mod envelopes;
mod error;
mod file_permissions;
mod gateway;
mod ineffective;
mod keys;
mod model_list;
mod models;
mod paths;
mod prices;
mod propagation;
mod quotas;
mod reload;
mod server_settings;
mod servers;
mod stay;
mod telemetry;
pub mod testing;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{join, join_all};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::approvals::CachedApprovals;
use crate::config::{self, AdapterSetting, Settings, StoreSettings};
use crate::core::id::{AgentName, ModelName, RunId, ServerId};
use crate::core::run::{Candidate, JournalEntry};
use crate::core::tool::{Origin, Undo};
use crate::driver::{Agent, ElicitationHold, Fallback, NamedModel, ServerResults, SessionRules};
pub use crate::gateway::{Gateway, ServeSettings, serve};
use crate::mcp::{self, Servers};
pub use crate::mcp::{ServerState, ServerStatus};
use crate::ports::{
    AccessKeys, ApprovalCache, ClaimedSpans, EventSink, Feedback, FileStore, IdempotencyStore, InputFindings,
    RuleCounters, RunStore, StreamTickets, UsageCounters, Webhooks,
};
use crate::runner::{self, AgentRunner, Capacity, DrainTimes};
use crate::service::WebhookWakeSignal;
pub use crate::service::{Service, Worker};
use crate::stores::{Durability, MemoryStore, SqliteStore};
use crate::telemetry::LogSink;
pub use crate::telemetry::export::FLUSH;
use crate::validation::SchemaValidator;
pub use access::{AccessError, Login, login, logout};
pub use cost_limits::{IdleCostLimit, idle_cost_limits};
pub use envelopes::check_envelope_keys;
pub use error::{AppError, GatewayError};
pub use gateway::check_gateway;
pub use ineffective::{configuration_warnings, why_missing};
pub use keys::{NewKey, ROTATION_OVERLAP, Scope as KeyScope, check_name};
pub use model_list::{LocalModelServer, ModelList, list_models, local_model_servers};
use models::Identities;
pub use models::{Models, identities, model_of_kind, open as open_models};
use paths::LocalPaths;
pub use prices::Pricing;
pub use propagation::propagation;
use server_settings::server_settings;
pub use servers::ToolServers;
use stay::Stay;
use telemetry::Telemetry;
pub use telemetry::{check_telemetry, redaction, span_receiver};

/// How long a grant is used without another query to the store.
const GRANT_TTL: Duration = Duration::from_secs(30);

/// How long a tool without a grant is not looked up again.
const NO_GRANT_TTL: Duration = Duration::from_secs(2);

/// How long a run may finish its current step when the process is asked to stop. A short call completes, so that its
/// outcome is known; a long call does not delay the exit.
const RELEASE: DrainTimes = DrainTimes { rest: Duration::ZERO, step: Duration::from_millis(500) };

/// How long a process that was asked to stop exports spans and log records. Supervisors kill it some seconds later.
const LAST_EXPORT: Duration = Duration::from_secs(5);

/// How long a server process keeps a call open while the user answers an elicitation.
const ELICITATION_HOLD: Duration = Duration::from_secs(300);

/// A runner with all its adapters, opened from settings.
pub struct App {
    pub runner: AgentRunner,
    /// The settings that it was opened from.
    pub settings: Settings,
    pub models: Models,
    servers: Arc<Servers>,
    /// MCP servers of earlier configurations, which active runs may still use.
    retired: Vec<Weak<Servers>>,
    identities: Identities,
    store: Arc<dyn Storage>,
    telemetry: Telemetry,
    /// Sends missing spans of earlier processes, if this is a server.
    catch_up: JoinSet<()>,
    /// Wakes the webhook worker when a run becomes idle or ends.
    wake: WebhookWakeSignal,
}

/// Store behind all storage ports, with `close`, which is not part of a port.
#[async_trait]
trait Storage:
    RunStore
    + AccessKeys
    + StreamTickets
    + FileStore
    + Webhooks
    + IdempotencyStore
    + ApprovalCache
    + RuleCounters
    + UsageCounters
{
    /// Writes queued changes and closes files.
    async fn close(&self) {}
}

impl Storage for MemoryStore {}

#[async_trait]
impl Storage for SqliteStore {
    async fn close(&self) {
        SqliteStore::close(self).await;
    }
}

impl App {
    /// Opens everything that a configuration file names, for an application with a server of its own: `runner` starts and
    /// resumes runs, `gateway::router(app.runner.clone())` is the HTTP API. `${NAME}` in the file is replaced from the
    /// environment. Call [`close`](Self::close) before the program ends.
    ///
    /// # Errors
    /// `AppError::Config` with every fault of the file, its line and its remedy; other variants where a part of it cannot
    /// be opened.
    pub async fn from_file(path: impl AsRef<Path>) -> Result<Self, AppError> {
        let settings = config::load(Some(path.as_ref()), &|name| std::env::var(name).ok())?;
        Self::open_server(settings).await
    }

    /// Opens everything that the settings name. MCP servers connect on first use. `sinks` receive events in addition to
    /// the sinks of the settings.
    pub async fn open(settings: Settings, sinks: Vec<Arc<dyn EventSink>>) -> Result<Self, AppError> {
        Self::open_to(Stay::ForOneCommand, settings, Models::new(), sinks).await
    }

    /// The same with models that no configuration can name, such as the model of a recording. They replace configured
    /// models of the same name.
    pub async fn open_with_models(settings: Settings, models: Models) -> Result<Self, AppError> {
        Self::open_to(Stay::ForOneCommand, settings, models, Vec::new()).await
    }

    /// The same for a server: it respects the configured limits of active runs, and exports metrics where it exports
    /// spans.
    pub async fn open_server(settings: Settings) -> Result<Self, AppError> {
        Self::open_to(Stay::AsServer, settings, Models::new(), Vec::new()).await
    }

    async fn open_to(
        stay: Stay,
        settings: Settings,
        added: Models,
        sinks: Vec<Arc<dyn EventSink>>,
    ) -> Result<Self, AppError> {
        let mut models = models::open(&settings)?;
        models.extend(added);
        let store = open_store(&settings.store, stay).await?;
        // Of commands too: what they add to the runs of callers counts.
        store.set_quotas(quotas::quotas(&settings));
        let runs: Arc<dyn RunStore> = store.clone();
        let identities = Identities::new(&models);
        let telemetry = Telemetry::open(&settings, stay, &identities.look_up(), &runs)?;
        let propagation = propagation()?;
        let reached =
            |id: &ServerId, server| (id.clone(), server_settings(id, server, &settings.credentials, propagation));
        let servers = Servers::new(settings.servers.iter().map(|(id, server)| reached(id, server)));
        let servers = Arc::new(match telemetry.mcp_watcher() {
            Some(watcher) => servers.watched_by(&watcher),
            None => servers,
        });
        let validator = Arc::new(SchemaValidator::default());
        let approvals = CachedApprovals::new(store.clone(), GRANT_TTL, NO_GRANT_TTL);
        let mut builder = configured(&settings, &models, &servers)?
            .store(runs)
            .approvals(Arc::new(approvals))
            .rule_counters(store.clone())
            .inputs(validator.clone())
            .outputs(validator.clone())
            .sampler(telemetry.sampler())
            .exports_spans(telemetry.catch_up().is_some())
            .lease(settings.lease);
        let wake = WebhookWakeSignal::default();
        if stay == Stay::AsServer {
            configuration_warnings(&settings, &models).iter().for_each(|warning| tracing::warn!("{warning}"));
            let hold = elicitation_hold(&settings);
            let wake = Arc::new(wake.clone());
            builder = builder.capacity(capacity(&settings)).elicitation_hold(hold).sink(wake);
        }
        builder = builder.sink(Arc::new(LogSink::new()));
        for sink in telemetry.sinks().into_iter().chain(sinks) {
            builder = builder.sink(sink);
        }
        let (runner, retired) = (builder.build()?, Vec::new());
        let mut catch_up = JoinSet::new();
        if let (Stay::AsServer, Some(spans)) = (stay, telemetry.catch_up()) {
            catch_up.spawn(spans.run(runner.clone()));
        }
        Ok(Self { runner, settings, models, servers, retired, identities, store, telemetry, catch_up, wake })
    }

    /// A name of the store for users.
    pub fn store_name(&self) -> String {
        match &self.settings.store {
            StoreSettings::Memory => "memory".to_owned(),
            StoreSettings::Sqlite { path, .. } => path.display().to_string(),
        }
    }

    /// Starts the MCP servers with `start: eager`, and does not wait for them.
    pub fn start_servers(&self) {
        self.servers.start();
    }

    /// Lets runs continue without the MCP servers that are not ready yet.
    pub fn skip_starting_servers(&self) {
        self.servers.skip_waits();
    }

    /// The status of the MCP servers.
    pub fn server_status(&self) -> Vec<mcp::ServerStatus> {
        self.servers.status()
    }

    /// The metrics of this process in the Prometheus format; `None` if they are not enabled.
    pub fn prometheus(&self) -> Option<String> {
        self.telemetry.prometheus()
    }

    /// Exports all spans of a run from its journal and the feedback on it, and returns their number. `None` if spans are not
    /// exported. The export finishes at the latest when the app is closed.
    pub fn send_spans_again(&self, run: &RunId, journal: &[JournalEntry], feedback: &[Feedback]) -> Option<usize> {
        self.telemetry.send_again(run, journal, feedback)
    }

    /// Claims the export of the spans that a collector lacks of a run. Waits for a process that died some seconds ago.
    /// `None` if spans are not exported.
    pub async fn claim_spans(&self, run: &RunId, journal: &[JournalEntry]) -> Result<Option<ClaimedSpans>, AppError> {
        match self.telemetry.catch_up() {
            Some(catch_up) => Ok(Some(catch_up.claim_patiently(run, journal).await?)),
            None => Ok(None),
        }
    }

    /// Exports the spans of a run after this position, whose export was claimed, and returns their number. The export
    /// finishes at the latest when the app is closed. Then its mark is the end of the journal.
    pub fn send_spans_from(&self, run: &RunId, journal: &[JournalEntry], from: u64) -> Option<usize> {
        self.telemetry.catch_up().map(|catch_up| catch_up.sink.send_from(run, journal, from))
    }

    /// A sentence for each setting of an agent that has no effect, except those that the listed tools show.
    pub fn warnings_of(&self, agent: &AgentName) -> Vec<String> {
        let limits = cost_limits::idle_cost_limits(&self.settings, &self.models);
        let limits = limits.iter().filter(|limit| limit.agent == *agent).map(ToString::to_string);
        let hints = self.settings.agents.get(agent).map(|agent| ineffective::ineffective_hints(&self.settings, agent));
        limits.chain(hints.unwrap_or_default()).collect()
    }

    /// Releases active runs, so that another process resumes them without waiting for their leases, stops the servers, and
    /// exports the spans of what was executed, for at most five seconds. Failures are logged: the process ends by a signal.
    pub async fn abandon(mut self) {
        self.runner.drain(RELEASE).await;
        self.close_servers().await;
        self.catch_up.shutdown().await;
        let lost = vec!["it took too long".to_owned()];
        let exported = timeout(LAST_EXPORT + Duration::from_secs(1), self.telemetry.close(LAST_EXPORT)).await;
        for reason in exported.unwrap_or(lost) {
            tracing::error!(reason, "failed to export telemetry before the process ended");
        }
    }

    async fn close_servers(&self) {
        let retired: Vec<Arc<Servers>> = self.retired.iter().filter_map(Weak::upgrade).collect();
        join(self.servers.close(), join_all(retired.iter().map(|servers| servers.close()))).await;
    }

    /// Waits for active runs, stops the servers, exports the last spans and closes the store. Returns failures as
    /// sentences.
    pub async fn close(mut self) -> Vec<String> {
        self.runner.close().await;
        self.close_servers().await;
        self.catch_up.shutdown().await;
        if let Some(catch_up) = self.telemetry.catch_up() {
            catch_up.send_left(&self.runner).await;
        }
        let complaints = self.telemetry.close(FLUSH).await;
        self.store.close().await;
        complaints
    }
}

async fn open_store(settings: &StoreSettings, stay: Stay) -> Result<Arc<dyn Storage>, AppError> {
    Ok(match settings {
        StoreSettings::Memory => Arc::new(MemoryStore::new()),
        StoreSettings::Sqlite { path, durability } => {
            let durability = match durability {
                config::Durability::PowerCut => Durability::PowerCut,
                config::Durability::ProcessCrash => Durability::ProcessCrash,
            };
            Arc::new(match stay {
                Stay::AsServer => SqliteStore::open_with_durability(path, durability).await?,
                // A command that only reads does so on a full disk too.
                Stay::ForOneCommand => SqliteStore::open_even_if_full(path, durability).await?,
            })
        }
    })
}

/// The parts of a runner that a reload can change.
fn configured(settings: &Settings, models: &Models, servers: &Arc<Servers>) -> Result<runner::Builder, AppError> {
    check_output_schemas(settings)?;
    let mut builder = AgentRunner::builder()
        .servers(servers.clone())
        .paths(Arc::new(LocalPaths::new(settings)))
        .secrets(settings.secrets());
    if let Some(envelope) = &settings.envelope {
        builder = builder.envelope_keys(envelopes::keys(envelope)?);
    }
    for (id, server) in &settings.servers {
        let results = ServerResults {
            max_bytes: server.max_result_bytes,
            check: server.check_results,
            validation: server.validation,
        };
        builder = builder.server_results(id.clone(), results);
    }
    for agent in settings.agents.values() {
        let is_required = |id: &&ServerId| settings.servers.get(*id).is_some_and(|server| server.required);
        let required = agent.servers.iter().filter(is_required).cloned().collect();
        let is_other = |id: &&ServerId| !agent.servers.contains(id);
        let undos = undos(settings, agent);
        let other_servers = settings.servers.keys().filter(is_other).cloned().collect();
        builder = builder.agent(Agent { required, undos, other_servers, ..made(agent, models)? });
    }
    Ok(builder)
}

/// How long a process keeps calls open while users answer elicitations.
fn elicitation_hold(settings: &Settings) -> ElicitationHold {
    let own = |(id, server): (&ServerId, &config::ServerSettings)| Some((id.clone(), server.elicitation_hold?));
    ElicitationHold { usual: ELICITATION_HOLD, servers: settings.servers.iter().filter_map(own).collect() }
}

fn capacity(settings: &Settings) -> Capacity {
    let runs = settings.gateway.runs;
    Capacity { driven: runs.max_active, driven_per_tenant: runs.max_active_per_tenant, waiting: runs.max_queued }
}

/// The undos of the tools of an agent's servers.
fn undos(settings: &Settings, agent: &config::AgentSettings) -> BTreeMap<Origin, Undo> {
    let servers = agent.servers.iter().filter_map(|id| Some((id, settings.servers.get(id)?)));
    let undos = servers.flat_map(|(id, server)| server.undos.iter().map(move |(tool, undo)| (id, tool, undo)));
    undos.map(|(id, tool, undo)| (Origin::Mcp { server: id.clone(), tool: tool.clone() }, undo.clone())).collect()
}

fn made(settings: &config::AgentSettings, models: &Models) -> Result<Agent, AppError> {
    let model = |name: &ModelName| {
        let missing = || AppError::NoModel { agent: settings.name.clone(), model: name.clone() };
        models.get(name).cloned().ok_or_else(missing)
    };
    let stand_in = |candidate: &Candidate| {
        let (model_name, attempts) = (candidate.model.clone(), candidate.attempts);
        Ok(Fallback { model: model(&model_name)?, model_name, attempts })
    };
    let fallback = settings.fallback.iter().map(stand_in).collect::<Result<_, AppError>>()?;
    let summarizes = settings.rules.compaction.as_ref().and_then(|compaction| compaction.model.as_ref());
    let named = |name: &ModelName| Ok::<_, AppError>(NamedModel { name: name.clone(), model: model(name)? });
    let compaction_model = summarizes.map(named).transpose()?;
    let selectable_models = settings.selectable_models.iter().map(named).collect::<Result<_, _>>()?;
    Ok(Agent {
        aliases: settings.aliases.clone(),
        model_name: settings.model.clone(),
        fallback,
        selectable_models,
        cooldown_s: settings.cooldown_s,
        backoff: settings.backoff,
        instructions: settings.system(),
        working_directory: settings.working_directory.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        servers: settings.servers.clone(),
        external_tools: settings.external_tools.clone(),
        tools: settings.tools.clone(),
        priorities: settings.priorities.clone(),
        policy: settings.policy.clone(),
        modes: settings.modes.clone(),
        sessions: SessionRules { expire_after_s: settings.expire_after_s, restart_on: settings.restart_on.clone() },
        rules: settings.rules.clone(),
        hide_unapproved: settings.hide_unapproved,
        run_instructions: settings.run_instructions,
        compaction_model,
        limits: settings.limits.clone(),
        ..Agent::new(settings.name.clone(), model(&settings.model)?)
    })
}

/// Whether the output schemas of all agents are valid. Opens nothing.
pub fn check_output_schemas(settings: &Settings) -> Result<(), AppError> {
    let agents = settings.agents.values();
    let invalid = agents.filter_map(|agent| {
        let reason = check_output_schema(agent.rules.output_schema.as_ref()?).err()?;
        let reason = format!("the output_schema of agent `{}` is not a JSON Schema: it {reason}", agent.name);
        Some((AdapterSetting::OutputSchema(agent.name.clone()), reason))
    });
    Ok(settings.places.check(invalid)?)
}

/// Checks the value of a field of a server's form against its schema, as the whole form is checked.
pub fn check_field(schema: &serde_json::Value, value: &serde_json::Value) -> InputFindings {
    SchemaValidator::default().check_value(schema, value)
}

/// Whether a schema of answers is valid; the error is the reason.
pub fn check_output_schema(schema: &serde_json::Value) -> Result<(), String> {
    SchemaValidator::default().accepts_schema(schema).map_err(|error| error.to_string())
}
