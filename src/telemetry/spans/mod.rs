//! Journal in, spans out: a pure projection, so that the same journal gives the same spans wherever and whenever it is
//! read (law 10).
//!
//! One trace per execution: an AGENT root, below it one LLM span per model call (attempts inside), one TOOL span per
//! call that was run, and a GUARDRAIL span per check of the answer and per decision. A resumed execution is a new trace
//! whose root links back. Every span carries the OpenInference names and, beside them, the OpenTelemetry GenAI and MCP
//! names that say who, which and how much; GenAI content only on request, for it repeats what OpenInference says.
//!
//! The attributes of each kind of span are built in the file named for the kind; names are in `names`.

mod agent;
mod attributes;
mod content;
mod conversation;
mod execution;
mod guardrail;
mod listing;
mod llm;
mod mask;
mod messages;
pub(crate) mod names;
mod offered;
mod projector;
mod redact;
mod span;
mod thought;
mod tool;

pub use attributes::{Attribute, Value};
pub use content::SpanContent;
pub use mask::Mask;
pub use projector::{IdentityOf, Projector, project};
pub use redact::{Redaction, USUAL_KEYS};
pub use span::{Kind, Link, Parent, Span, SpanEvent, Status};
