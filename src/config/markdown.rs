//! Agents as Markdown: YAML front matter between two lines of `---`, then the instructions.

use super::error::{ConfigError, Fault, Source};
use super::spanned::Location;
use super::written::Agent;
use super::yaml;

/// The front matter and the instructions below it. A file without front matter is all instructions.
pub(super) fn agent(source: &Source) -> Result<(Agent, String), ConfigError> {
    let text = source.text();
    let mut lines = text.split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok((Agent::default(), text.trim().to_owned()));
    };
    let matter: usize = lines.by_ref().take_while(|line| line.trim_end() != "---").map(str::len).sum();
    let body: String = lines.collect();
    let closed = text.get(opening.len() + matter..).is_some_and(|rest| rest.starts_with("---"));
    if !closed {
        let place = Location { line: 1, column: 1, length: 3 };
        let fault = Fault::new("the front matter is not closed").with_remedy("end it with a line of `---`");
        return Err(fault.at(source, Some(place)).into());
    }
    let matter = text.get(opening.len()..opening.len() + matter).unwrap_or_default();
    // The empty line replaces the opening `---`, so that errors have the line numbers of the file.
    let agent = yaml::parse_part(source, &format!("\n{matter}"))?;
    Ok((agent, body.trim().to_owned()))
}
