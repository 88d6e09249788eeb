//! Subjects of the measurement.

use tempfile::TempDir;
use toolgate::app::App;
use toolgate::core::run::Status;
use toolgate::runner::Request;

use crate::peers::Peers;
use crate::raw::Raw;
use crate::workload::Workload;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Raw,
    Memory,
    ProcessCrash,
    PowerCut,
    /// SQLite safe from the end of the process, with spans of full content over OTLP.
    Traced,
}

impl Subject {
    pub const ALL: [Self; 5] = [Self::Raw, Self::Memory, Self::ProcessCrash, Self::PowerCut, Self::Traced];

    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Memory => "memory",
            Self::ProcessCrash => "SQLite, process crash",
            Self::PowerCut => "SQLite, power cut",
            Self::Traced => "SQLite, process crash + OTLP",
        }
    }
}

/// A subject, set up for one sample. Its store starts empty.
pub enum Ready {
    Raw(Box<Raw>),
    Toolgate(Box<App>, TempDir),
}

impl Ready {
    pub async fn set_up(subject: Subject, workload: &Workload, peers: &Peers) -> Self {
        if subject == Subject::Raw {
            return Self::Raw(Box::new(Raw::set_up(workload, peers).await));
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("toolgate.yaml");
        let sqlite = |durability| {
            format!("sqlite: {{ path: {}, durability: {durability} }}", directory.path().join("runs.db").display())
        };
        let store = match subject {
            Subject::Raw | Subject::Memory => "memory: {}".to_owned(),
            Subject::ProcessCrash | Subject::Traced => sqlite("process_crash"),
            Subject::PowerCut => sqlite("power_cut"),
        };
        let telemetry = match subject {
            Subject::Traced => format!("telemetry: {{ otlp_endpoint: {} }}", peers.collector),
            Subject::Raw | Subject::Memory | Subject::ProcessCrash | Subject::PowerCut => String::new(),
        };
        let (model, url, mcp) = (workload.model(), &peers.model, peers.mcp(workload.tools));
        let text = format!(
            "store: {{ {store} }}
models: {{ fake: {{ openai_chat: {{ base_url: {url}, model: {model}, stream: false }} }} }}
servers: {{ files: {{ http: {{ url: {mcp} }}, trusted: true }} }}
agents:
  reader:
    servers: [files]
    policy: bypass
    limits: {{ max_tool_interactions: 1000, max_iterations: 1000, max_mcp_calls: 10000 }}
{telemetry}
"
        );
        std::fs::write(&file, text).unwrap();
        Self::Toolgate(Box::new(App::from_file(&file).await.unwrap()), directory)
    }

    /// One run from start to end.
    pub async fn run(&self) {
        match self {
            Self::Raw(raw) => raw.run().await,
            Self::Toolgate(app, _) => {
                let report = app.runner.execute(Request::new("reader", "read everything")).await.unwrap();
                assert_eq!(report.status, Status::Completed, "{:?}", report.error);
            }
        }
    }

    /// Ends everything. Returns failures as sentences, such as lost spans.
    pub async fn tear_down(self) -> Vec<String> {
        match self {
            Self::Raw(raw) => {
                raw.tear_down().await;
                Vec::new()
            }
            Self::Toolgate(app, _directory) => app.close().await,
        }
    }
}
