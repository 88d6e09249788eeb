//! Test desk: a folder with a configuration, and the program to run in it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");

/// The configuration of most tests: the bundled shop, with reads allowed, writes on approval, and one external tool.
const CONFIG: &str = "
lease_s: 1
models: { played: { scripted: { file: conversation.yaml } } }
servers: { shop: { stdio: { command: toolgate, args: [demo-server] }, trusted: true } }
agents:
  desk:
    servers: [shop]
    policy: accept-edits
    external_tools:
      - name: issue_refund
        description: Pay a customer back.
        input_schema: { type: object, properties: { order_id: { type: string } }, required: [order_id] }
        result_schema: { type: object, required: [status], properties: { status: { enum: [refunded, refused] } } }
";

/// A temporary folder.
pub(crate) struct Desk {
    folder: TempDir,
}

/// The result of a command.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Desk {
    /// A desk with the usual configuration and a model that replies with this script.
    pub(crate) fn playing(turns: &str) -> Self {
        let desk = Self::empty();
        desk.write("toolgate.yaml", CONFIG);
        desk.write("conversation.yaml", turns);
        desk
    }

    pub(crate) fn empty() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// Adds the model `other`, beside the one that is played first.
    pub(crate) fn add_another_model(&self) {
        self.write("other.yaml", "turns: [{ say: Here I am. }]");
        let config = std::fs::read_to_string(self.path().join("toolgate.yaml")).unwrap();
        let models = "models: { other: { scripted: { file: other.yaml } }, played:";
        let config = config.replace("models: { played:", models).replace("  desk:", "  desk:\n    model: played");
        self.write("toolgate.yaml", &config);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program in this folder, with a clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        self.settle(&mut command);
        command
    }

    /// Another program in this folder, with the same environment.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.settle(&mut command);
        command
    }

    fn settle(&self, command: &mut Command) {
        let programs = Path::new(PROGRAM).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        command.current_dir(self.path()).env_clear().env("PATH", path).env("USER", "kim").env("COLUMNS", "100");
        command.stdin(Stdio::null());
    }

    /// Runs the program to its end.
    pub(crate) fn toolgate(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().unwrap())
    }

    /// Runs a line as if a person pasted it into a shell.
    pub(crate) fn paste(&self, line: &str) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.settle(&mut command);
        Ended::from(command.output().unwrap())
    }

    /// The effect of an MCP call on the shop is not visible from outside, but the journal shows how often a tool was
    /// started.
    pub(crate) fn journal(&self, run: &str) -> Vec<Value> {
        self.toolgate(&["runs", "export", run]).json_lines()
    }
}

impl Ended {
    /// Every line of standard output, parsed as JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// The last line of `--json`.
    pub(crate) fn result(&self) -> Value {
        let result = self.json_lines().pop().unwrap_or_else(|| panic!("no output; stderr: {}", self.err));
        assert_eq!(result["type"], "result", "{result}");
        result
    }

    /// Fails the test unless the command ended with this exit code.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// The command that the program prints for copying.
    pub(crate) fn offered_command(&self) -> String {
        let mut lines = self.err.lines().skip_while(|line| *line != "answer with:").skip(1);
        lines.next().unwrap_or_else(|| panic!("no command offered: {}", self.err)).trim().to_owned()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The name under which the user of this machine decides.
pub(crate) fn person() -> String {
    let account = Command::new("id").arg("-un").output().unwrap();
    format!("OS account {}", String::from_utf8(account.stdout).unwrap().trim())
}

/// The text with stable placeholders for ids, accounts, times, policy versions and milliseconds.
pub(crate) fn steady(text: &str) -> String {
    let mut steady = String::new();
    let text = text.replace(&person(), "PERSON");
    let mut rest = text.as_str();
    while let Some(start) = rest.find("run_") {
        let (before, id) = rest.split_at(start);
        steady.push_str(before);
        steady.push_str("RUN");
        rest = id[4..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    steady.push_str(rest);
    let words = steady.split_inclusive([' ', '\n', ',']).collect::<Vec<_>>();
    let mut told = String::new();
    for (index, word) in words.iter().enumerate() {
        let unit = words.get(index + 1).map(|next| next.trim_end_matches(|c: char| !c.is_alphanumeric()));
        let bare = word.trim_end().trim_start_matches('(');
        let is_time = matches!(unit, Some("ms" | "s" | "min")) && bare.parse::<f64>().is_ok();
        let is_clock = word.len() > 4 && word.trim_end().chars().all(|c| c.is_ascii_digit() || "-:".contains(c));
        told.push_str(if is_time && word.starts_with('(') {
            "(N "
        } else if is_time {
            "N "
        } else if is_clock {
            "T "
        } else {
            word
        });
    }
    without_digests(&without_versions(&told.replace("N s", "N ms").replace("N min", "N ms")))
}

/// The text with placeholders for the digests after `--digest`, which depend on the run.
fn without_digests(text: &str) -> String {
    let is_digest = |word: &str| word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = text.split_inclusive([' ', '\n', '=', ')']).map(|word| {
        let bare = word.trim_end_matches([' ', '\n', '=', ')']);
        if is_digest(bare) { word.replace(bare, "DIGEST") } else { word.to_owned() }
    });
    words.collect()
}

/// The text with placeholders for policy versions, which change with every edit of their files.
fn without_versions(text: &str) -> String {
    let mut parts = text.split('@');
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_version = part.get(..8).is_some_and(|eight| eight.chars().all(|c| c.is_ascii_hexdigit()));
        told.push_str(if is_version { "@VERSION" } else { "@" });
        told.push_str(if is_version { &part[8..] } else { part });
    }
    told
}
