//! Command reference: `docs/cli.md` has the help of every command.

use std::path::Path;

use super::desk::Desk;

const FILE: &str = "docs/cli.md";

const HEAD: &str = "\
# Command line

Command reference: the help of each command of toolgate. `toolgate help COMMAND` prints it in a terminal, and
`toolgate completions SHELL` completes commands and flags.

<!-- Written by `TOOLGATE_BLESS=1 cargo test --test it cli::reference` -->
";

#[test]
fn the_command_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let fresh = HEAD.to_owned() + &sections(&Desk::empty(), &[]);
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == fresh,
        "{FILE} is stale: run `TOOLGATE_BLESS=1 cargo test --test it cli::reference`, review it and commit it"
    );
}

/// The help of a command, and then that of its subcommands.
fn sections(desk: &Desk, command: &[&str]) -> String {
    let help = desk.toolgate(&[command, &["--help"]].concat()).expect(0).out;
    let mark = "#".repeat(2 + command.len().saturating_sub(1));
    let name = [&["toolgate"][..], command].concat().join(" ");
    let section = format!("\n{mark} `{name}`\n\n```text\n{}\n```\n", help.trim_end());
    let below = subcommands(&help).into_iter().map(|subcommand| sections(desk, &[command, &[subcommand]].concat()));
    section + &below.collect::<String>()
}

/// The names in the first column of the section `Commands:`.
fn subcommands(help: &str) -> Vec<&str> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).collect()
}
