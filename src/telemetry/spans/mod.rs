//! Span projection: folds a journal into spans. It is pure: the same journal gives the same spans, independent of the
//! process and the time (law 10).
//!
//! Each execution is one trace: an AGENT root and, below it, one LLM span per model call (including its attempts), one
//! TOOL span per call that was run, and one GUARDRAIL span per validation of the answer and per decision. A resumed
//! execution is a new trace whose root links back. Every span carries the OpenInference names and the OpenTelemetry
//! GenAI and MCP names of identities and amounts. GenAI content is opt-in, because it repeats the content under
//! OpenInference names.
//!
//! The file of each kind of span builds its attributes; their names are in `names`.

mod agent;
mod attributes;
mod content;
mod conversation;
mod execution;
mod feedback;
mod guardrail;
mod listing;
mod llm;
mod mask;
mod messages;
mod model_input;
pub mod names;
mod projector;
mod reasoning;
mod redact;
mod shared_text;
mod span;
mod tool;
mod toolset;

pub use attributes::{Attribute, Value};
pub use content::SpanContent;
pub use mask::Mask;
pub use projector::{IdentityOf, Projector, project};
pub use redact::Redaction;
pub use shared_text::SharedText;
pub use span::{Kind, Link, Parent, Span, SpanEvent, Status};
pub use toolgate_core::redact::USUAL_NAMES;
