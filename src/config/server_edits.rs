//! Addition and removal of an MCP server in the text of a configuration. Pure. Only the lines of the server change, so that
//! comments and order stay; a text in another form than blocks of lines is left to its author.

use super::mcp_import::quoted;

/// The text with a further server, whose definition has the lines below `servers:`. `None` if the text has its servers in a
/// form that is not changed here, such as braces or JSON.
pub fn with_server(text: &str, definition: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let has_section = lines.iter().any(|line| line.starts_with("servers:"));
    if !has_section {
        let is_block = !text.trim_start().starts_with('{');
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return is_block.then(|| format!("{text}{gap}\nservers:\n{definition}"));
    }
    if let Some(at) = lines.iter().position(|line| line.trim_end() == "servers: {}") {
        let mut changed: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        *changed.get_mut(at)? = format!("servers:\n{}", definition.trim_end());
        return Some(changed.join("\n") + "\n");
    }
    let section = Block::find(&lines, 0, 0..lines.len(), "servers")?;
    let indent = section.indent(&lines).unwrap_or(2);
    let deeper = " ".repeat(indent.checked_sub(2)?);
    let added: Vec<String> = definition.lines().map(|line| format!("{deeper}{line}")).collect();
    Some(inserted(&lines, section.end(&lines), &added))
}

/// The text with a further server among those of an agent. `None` if the agent is in another form, or not there.
pub fn with_server_of_agent(text: &str, agent: &str, server: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let agents = Block::find(&lines, 0, 0..lines.len(), "agents")?;
    let indent = agents.indent(&lines)?;
    let agent = Block::find(&lines, indent, agents.content(&lines), agent)?;
    let indent = agent.indent(&lines)?;
    let key = format!("{}servers:", " ".repeat(indent));
    let Some(at) = agent.content(&lines).find(|at| lines.get(*at).is_some_and(|line| line.starts_with(&key))) else {
        return Some(inserted(&lines, agent.head + 1, &[format!("{key} [{}]", quoted(server))]));
    };
    let line = lines.get(at)?;
    let listed = line.get(key.len()..)?.trim_start();
    if listed.is_empty() {
        let is_item = |line: &str| line.trim_start().starts_with("- ");
        let items = lines.iter().skip(at + 1).take_while(|line| is_item(line)).count();
        let dash = lines.get(at + 1).filter(|line| is_item(line))?.find('-')?;
        return Some(inserted(&lines, at + 1 + items, &[format!("{}- {}", " ".repeat(dash), quoted(server))]));
    }
    let (inside, after) = listed.strip_prefix('[')?.split_once(']')?;
    let comma = if inside.trim().is_empty() { "" } else { ", " };
    let changed = format!("{key} [{}{comma}{}]{after}", inside.trim_end(), quoted(server));
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    *lines.get_mut(at)? = changed;
    Some(lines.join("\n") + "\n")
}

/// The text without a server, neither defined nor listed by an agent. `None` if it is in a form that is not changed here.
pub fn without_server(text: &str, server: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let section = Block::find(&lines, 0, 0..lines.len(), "servers")?;
    let indent = section.indent(&lines)?;
    let block = Block::find(&lines, indent, section.content(&lines), server)?;
    let removed = block.head..block.end(&lines);
    let is_key = |at: &usize| lines.get(*at).is_some_and(|line| indent_of(line) == indent && !is_remark(line));
    let is_last = !section.content(&lines).filter(|at| !removed.contains(at)).any(|at| is_key(&at));
    let agents = Block::find(&lines, 0, 0..lines.len(), "agents").map(|agents| agents.content(&lines));
    let is_of_agent = |at: usize| agents.as_ref().is_some_and(|agents| agents.contains(&at));
    let (mut kept, mut is_listing) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !removed.contains(at)) {
        let entry = line.trim_start();
        let item = entry.strip_prefix("- ").filter(|_| is_listing);
        // The items of a list follow its key; other lists may have the same name.
        is_listing =
            is_of_agent(at) && (entry.starts_with("servers:") || is_listing && (item.is_some() || is_remark(line)));
        match item {
            _ if at == section.head && is_last => kept.push("servers: {}".to_owned()),
            Some(item) if is_named(item, server) => {}
            None if is_listing => kept.push(unlisted(line, server)),
            Some(_) | None => kept.push((*line).to_owned()),
        }
    }
    Some(kept.join("\n") + "\n")
}

/// The list of an agent in brackets, without a server.
fn unlisted(line: &str, server: &str) -> String {
    let inside = line.split_once('[').and_then(|(key, rest)| Some((key, rest.split_once(']')?)));
    let Some((key, (inside, after))) = inside else { return line.to_owned() };
    let items: Vec<&str> = inside.split(',').map(str::trim).collect();
    if !items.iter().any(|item| is_named(item, server)) {
        return line.to_owned();
    }
    let left: Vec<&str> = items.into_iter().filter(|item| !is_named(item, server)).collect();
    format!("{key}[{}]{after}", left.join(", "))
}

fn is_named(item: &str, server: &str) -> bool {
    let name = item.split(" #").next().unwrap_or_default().trim();
    name.trim_matches(['"', '\'']) == server
}

fn is_remark(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// A key at the beginning of a line, with the more indented lines below it.
struct Block {
    /// The line of the key.
    head: usize,
    /// The columns before the key.
    column: usize,
}

impl Block {
    /// The block of a key at this column. `None` if its value is on the same line.
    fn find(lines: &[&str], column: usize, mut within: std::ops::Range<usize>, key: &str) -> Option<Self> {
        let is_key = |line: &str| {
            let rest = line.get(column..).filter(|_| indent_of(line) == column)?;
            let rest = rest.strip_prefix(key).or_else(|| rest.strip_prefix(&format!("\"{key}\"")))?;
            let value = rest.strip_prefix(':')?.trim_start();
            (value.is_empty() || value.starts_with('#')).then_some(())
        };
        let head = within.find(|at| lines.get(*at).is_some_and(|line| is_key(line).is_some()))?;
        Some(Self { head, column })
    }

    /// The lines below the key.
    fn content(&self, lines: &[&str]) -> std::ops::Range<usize> {
        self.head + 1..self.end(lines)
    }

    /// The line after the last one of the block.
    fn end(&self, lines: &[&str]) -> usize {
        let below = lines.iter().enumerate().skip(self.head + 1);
        let inside = below.take_while(|(_, line)| line.trim().is_empty() || indent_of(line) > self.column);
        inside.filter(|(_, line)| !line.trim().is_empty()).last().map_or(self.head + 1, |(at, _)| at + 1)
    }

    /// The columns before the keys of the block; `None` without any.
    fn indent(&self, lines: &[&str]) -> Option<usize> {
        lines.get(self.content(lines))?.iter().find(|line| !is_remark(line)).map(|line| indent_of(line))
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn inserted(lines: &[&str], at: usize, added: &[String]) -> String {
    let (before, after) = lines.split_at_checked(at).unwrap_or((lines, &[]));
    let all = before.iter().copied().chain(added.iter().map(String::as_str)).chain(after.iter().copied());
    all.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIT: &str = "  git:\n    stdio:\n      command: uvx\n";

    #[test]
    fn a_server_follows_the_others_and_comments_stay() {
        let text =
            "# Mine.\nservers:\n  # The shop.\n  shop:\n    stdio: { command: shop } # fast\n\n# Agents.\nagents: {}\n";
        let expected = "# Mine.\nservers:\n  # The shop.\n  shop:\n    stdio: { command: shop } # fast\n  git:\n    stdio:\n      \
                        command: uvx\n\n# Agents.\nagents: {}\n";
        assert_eq!(with_server(text, GIT).as_deref(), Some(expected));
        let deeper = with_server("servers:\n    shop:\n        http: {}\n", GIT).unwrap();
        assert!(deeper.ends_with("    git:\n      stdio:\n        command: uvx\n"), "{deeper}");
        assert_eq!(with_server("log: warn", GIT), Some(format!("log: warn\n\nservers:\n{GIT}")));
        for other in ["servers: { shop: {} }\n", "{\"servers\": {}}", "servers:\n shop:\n  http: {}\n"] {
            assert_eq!(with_server(other, GIT), None, "{other}");
        }
    }

    #[test]
    fn a_server_is_removed_from_its_section_and_from_the_agents() {
        let text = "servers:\n  # The shop.\n  shop:\n    stdio: { command: shop }\n  git:\n    stdio:\n      command: uvx\n\n\
                    agents:\n  desk:\n    servers: [shop, git] # all\n  night:\n    servers:\n      - git\n      - shop\n    modes:\n      - git\n\
                    \x20 day:\n    servers: [ shop ]\n";
        let without = "servers:\n  # The shop.\n  shop:\n    stdio: { command: shop }\n\n\
                       agents:\n  desk:\n    servers: [shop] # all\n  night:\n    servers:\n      - shop\n    modes:\n      - git\n\
                       \x20 day:\n    servers: [ shop ]\n";
        assert_eq!(without_server(text, "git").as_deref(), Some(without));
        let last = without_server("servers:\n  git:\n    http: { url: x }\n# end\n", "git");
        assert_eq!(last.as_deref(), Some("servers: {}\n# end\n"));
        assert_eq!(with_server(&last.unwrap(), GIT), Some(format!("servers:\n{GIT}# end\n")));
        for other in ["servers: { git: {} }\n", "servers:\n  shop:\n    stdio: {}\n", "log: warn\n"] {
            assert_eq!(without_server(other, "git"), None, "{other}");
        }
    }

    #[test]
    fn an_agent_gets_the_server_in_the_form_of_its_list() {
        let with =
            |list: &str| with_server_of_agent(&format!("agents:\n  desk:\n{list}    policy: plan\n"), "desk", "git");
        for (list, expected) in [
            ("    servers: [shop] # all\n", "    servers: [shop, git] # all\n"),
            ("    servers: []\n", "    servers: [git]\n"),
            ("    servers:\n      - shop\n", "    servers:\n      - shop\n      - git\n"),
            ("", "    servers: [git]\n"),
        ] {
            assert_eq!(with(list), Some(format!("agents:\n  desk:\n{expected}    policy: plan\n")), "{list}");
        }
        assert_eq!(with("    servers: *all\n"), None);
        assert_eq!(with_server_of_agent("agents: { desk: {} }\n", "desk", "git"), None);
        assert_eq!(with_server_of_agent("agents:\n  other:\n    policy: plan\n", "desk", "git"), None);
    }
}
