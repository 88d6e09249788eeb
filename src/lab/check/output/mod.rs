//! Reports in the formats of continuous integration, and the baseline file.

mod baseline;
mod junit;
mod markdown;
mod sarif;

pub use baseline::Baseline;
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
