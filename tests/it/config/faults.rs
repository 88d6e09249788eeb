//! Error messages of invalid configurations. The snapshot exists for their review.

use std::fmt::Write as _;

use toolgate::config;

use super::{folder, no_env, rendered};

/// Invalid configurations, each with the name of its case.
type Cases = [(&'static str, &'static str)];

const SYNTAX: &Cases = &[
    ("an unknown key with a near one", "agnets:\n  a: {}\n"),
    ("an unknown key deep inside", "servers:\n  git:\n    stdio: { command: uvx, arguments: [a] }\n"),
    ("an unknown kind of model", "models:\n  main:\n    openai: { model: x }\n"),
    ("the kind of a model as a value", "models:\n  main: { api: openai_chat, model: x }\n"),
    ("a kind of model without settings", "models:\n  main: openai_chat\nagents: {}\n"),
    ("a kind of store without settings", "store: memory\n"),
    ("text in place of settings", "agents:\n  a:\n    model: main\n    limits: none\n"),
    ("a missing key", "models:\n  main:\n    openai_chat: { stream: true }\n"),
    ("a wrong type", "models:\n  main:\n    openai_chat: { model: x, max_tokens: many }\n"),
    ("a list where a mapping is meant", "servers:\n  - git\n"),
    ("a duplicate key", "log: info\nagents: {}\nlog: warn\n"),
    ("broken YAML", "log: \"warn\nagents: {}\n"),
    ("a list where text is meant", "log: [warn]\n"),
    ("a tab", "agents:\n\ta: {}\n"),
    ("a colon in text", "agents:\n  a: { model: x }\n  b:\n    instructions: Answer: shortly\n"),
    ("a key that is indented too far", "agents:\n  a:\n    model: x\n      policy: plan\n"),
    ("a variable without quotes", "servers:\n  git: { stdio: { command: git, env: { TOKEN: ${TOKEN} } } }\n"),
    ("a variable without quotes in a list", "servers:\n  git: { stdio: { command: git, args: [${TOKEN}] } }\n"),
    ("an undefined variable", "models:\n  main:\n    openai_chat:\n      model: x\n      api_key: \"${SECRET_KEY}\"\n"),
    ("an invalid variable", "log: \"${input:level}\"\n"),
];

const SERVERS: &Cases = &[
    ("a server at the top level", "git: { command: uvx, args: [mcp-server-git] }\n"),
    ("the servers of an editor", "mcpServers:\n  git: { command: uvx }\n"),
    ("a server without its transport", "servers:\n  git: { command: uvx, args: [mcp-server-git] }\n"),
    ("an endpoint without its transport", "servers:\n  web: { url: https://web.example/mcp }\n"),
    ("a whole command line", "servers:\n  git: { stdio: { command: npx -y @acme/git-server } }\n"),
    (
        "bad durations",
        "servers:\n  git: { stdio: { command: git }, start_timeout_s: 60s, call_timeout_s: 0, total_timeout_s: -1 }\n",
    ),
    ("a server without transport", "servers:\n  git:\n    trusted: true\n"),
    ("a server with two transports", "servers:\n  git: { stdio: { command: a }, http: { url: https://b } }\n"),
    ("a concurrency of zero", "servers:\n  git: { stdio: { command: a }, max_concurrency: 0 }\n"),
    (
        "result limits below the minimum",
        "servers:\n  git: { stdio: { command: a }, max_result_bytes: 100 }\nagents:\n  a: { limits: { max_result_bytes: 2047 } }\n",
    ),
];

const AUTHENTICATION: &Cases = &[
    (
        "invalid authentication",
        "servers:\n  a: { http: { url: \"https://a\", headers: { authorization: x }, auth: { bearer: y } } }\n  b: { http: { url: \"https://b\", auth: { oauth: { client_secret: plain-s3cret, redirect_port: 0 } } } }\n  c: { http: { url: \"https://c\", auth: { client_credentials: { client_id: c } } } }\n  d: { http: { url: \"https://d\", auth: { client_credentials: { client_id: c, private_key_file: none.pem } } } }\n  e: { http: { url: \"https://e\", auth: { bearer: \"${CRM_TOKEN}\" } } }\n",
    ),
    ("an unknown authentication method", "servers:\n  f: { http: { url: \"https://f\", auth: { bearre: x } } }\n"),
    ("a URL without a scheme", "servers:\n  web: { http: { url: example.com/mcp } }\n"),
    (
        "addresses with passwords",
        "servers:\n  a: { http: { url: \"htp://ann:hunter2@a/mcp?key=hunter3\" } }\n  b: { http: { url: \"http://ann:hunter2@b/mcp?key=hunter3\" } }\n",
    ),
];

const AGENTS: &Cases = &[
    (
        "unknown references",
        "models:\n  main: { openai_chat: { model: x } }\nservers:\n  git: { stdio: { command: git } }\nagents:\n  a: { model: mian, servers: [git, gti, web], policy: strikt }\n",
    ),
    (
        "an agent without a model",
        "models:\n  one: { openai_chat: { model: x } }\n  two: { openai_chat: { model: y } }\nagents:\n  a: {}\n",
    ),
    (
        "instructions with the name of a secret",
        "models:\n  main: { openai_chat: { model: x } }\nagents:\n  a:\n    instructions: |\n      Log in with ${CRM_TOKEN}.\n  b: { instructions: \"Use {{ secrets.crm }} in ${HOME}.\" }\n",
    ),
    (
        "instructions with a secret",
        "models:\n  main: { openai_chat: { model: x, api_key: plain-s3cret } }\nagents:\n  a: { instructions: \"Your key is plain-s3cret.\" }\n",
    ),
    ("bad names", "servers:\n  my server: { stdio: { command: a } }\nagents:\n  \"ä\": {}\n"),
    ("bad patterns", "agents:\n  a: { tools: { allow: [\"mcp_[git\"], deny: [\"{a\"] }, priorities: { \"x{\": 1 } }\n"),
    ("an unknown value", "agents:\n  a: { tiers: later }\n"),
    ("a second key beside the kind", "models:\n  m: { scripted: { file: x.yaml }, price: 1 }\n"),
    ("a limit of zero", "agents:\n  a: { limits: { max_iterations: 0 } }\n"),
    ("a missing agent file", "agents:\n  a: { file: agents/none.md }\n"),
    ("a missing policy file", "policies: { strict: none.yaml }\n"),
    ("a policy named like a preset", "policies: { plan: plan.yaml }\n"),
    ("keys beside a file", "agents:\n  a: { file: a.md, model: x }\n"),
    (
        "invalid external tools",
        "agents:\n  a:\n    external_tools:\n      - name: x\n        inputs: {}\n      - { name: y }\n      - { name: y }\n      - just_a_name\n",
    ),
    ("an invalid output schema", "agents:\n  a: { output_schema: [1] }\n"),
];

const FALLBACKS: &Cases = &[
    (
        "an environment model that falls back to itself",
        "models:\n  a: { environment: { otherwise: b } }\n  b: { environment: {} }\n",
    ),
    (
        "an unknown fallback of the environment",
        "models:\n  a: { environment: { otherwise: demmo } }\n  demo: { scripted: { file: x.yaml } }\nagents:\n  x: { model: a }\n",
    ),
    (
        "an invalid fallback",
        "models:\n  main: { openai_chat: { model: x } }\n  spare: { openai_chat: { model: y } }\nagents:\n  a:\n    model: main\n    fallback: [spaer, main, { model: spare, attempts: 0 }, { model: spare }, { model: unknown, attempts: 2 }]\n",
    ),
    ("a fallback without a model", "agents:\n  a: { fallback: [{ attempts: 2 }] }\n"),
    ("a fallback that is a number", "agents:\n  a: { fallback: [7] }\n"),
    ("a fallback that is not a list", "agents:\n  a: { fallback: main }\n"),
];

const GATEWAY: &Cases = &[
    (
        "rules of retention",
        "gateway:\n  retention:\n    - { days: 0, statuses: [running, faild] }\n    - { days: 90 }\n    - { days: 7 }\n",
    ),
    (
        "invalid quotas",
        "gateway:\n  quotas:\n    tenants: { '*': {}, acme: { cost_usd: -1 } }\n    keys: { ci: { runs: 5 }, local: { runs: 0 } }\n",
    ),
    ("a quota that is no number", "gateway: { quotas: { keys: { '*': { runs: many } } } }\n"),
    ("an unknown limit of a quota", "gateway: { quotas: { tenants: { acme: { requests: 5 } } } }\n"),
    ("a cost that is no amount", "gateway: { quotas: { tenants: { acme: { cost_usd: 5 USD } } } }\n"),
    ("anonymous access from a network", "gateway: { listen: '0.0.0.0:80', anonymous: true }\n"),
    (
        "an invalid gateway",
        "gateway:\n  listen: here\n  cors: { origins: [https://app.example.com/path, 'HTTPS://App.example.com'] }\n  oidc: { issuer: http://login.example.com, audience: x }\n  limits: { burst: 0, body_timeout_s: 0 }\n",
    ),
];

const ENVELOPES: &Cases = &[
    (
        "invalid envelope keys",
        "envelope:\n  sign_with: c\n  keys:\n    - { id: a, hmac: plain-s3cret, seal: other-s3cret }\n    - { id: a, ed25519: private-s3cret }\n    - { id: b b }\n    - { id: d, ed25519_file: none.pem, seal: \"${SEAL}\" }\n",
    ),
    ("several envelope keys without a signing key", "envelope: { keys: [{ id: a, hmac: x }, { id: b, hmac: y }] }\n"),
    ("envelopes without a key", "envelope: { keys: [] }\n"),
];

const BEGINNERS: &Cases = &[
    (
        "a list in place of headers",
        "servers:\n  web:\n    http:\n      url: https://web.example/mcp\n      headers: [a]\n",
    ),
    ("text in place of a list", "servers:\n  git:\n    stdio:\n      command: uvx\n      args: mcp-server-git\n"),
    ("a list in place of a command", "servers:\n  git:\n    stdio:\n      command: [uvx, mcp-server-git]\n"),
    ("a command with arguments in place of settings", "servers:\n  git:\n    stdio: uvx mcp-server-git\n"),
    ("an unknown key of a model", "models:\n  main:\n    openai_chat:\n      modle: gpt-5-mini\n      api_key: x\n"),
    (
        "an unknown key after others",
        "models:\n  main:\n    openai_chat:\n      model: m\n      api_kee: x\n      stream: true\n",
    ),
    ("settings beside the kind of a model", "models:\n  main:\n    openai_chat:\n    model: gpt-5-mini\n"),
    ("settings of a model without its kind", "models:\n  main:\n    model: gpt-5-mini\n    api_key: x\n"),
    ("a key without a colon", "models:\n  main:\n    openai_chat:\n      model gpt-5-mini\n      stream: true\n"),
    ("a colon without a space", "models:\n  main:\n    openai_chat:\n      model:gpt-5-mini\n"),
    ("too little indent", "servers:\n  git:\n  stdio:\n    command: uvx\n"),
    ("an uneven indent", "servers:\n  git:\n    stdio:\n      command: uvx\n     args: [a]\n"),
    ("a number with a unit", "agents:\n  a:\n    limits:\n      deadline_s: 5m\n      max_iterations: ten\n"),
    ("a truth value as a word", "servers:\n  git:\n    stdio: { command: git }\n    trusted: yes\n"),
    ("an item that is no text", "agents:\n  a:\n    servers: [{ git: {} }]\n"),
    ("an item that is no word of a list", "agents:\n  a:\n    setting_sources: [user]\n"),
    ("a pattern without quotes", "agents:\n  a:\n    tools:\n      allow: [*]\n"),
    ("a pattern without quotes in a list", "agents:\n  a:\n    tools:\n      allow:\n        - *_read\n"),
    (
        "a variable without quotes as a value",
        "models:\n  main:\n    openai_chat:\n      model: m\n      api_key: {KEY}\n",
    ),
    ("a percent or an at sign without quotes", "agents:\n  a:\n    instructions: @prompt.md\n"),
    ("a duplicate entry", "models:\n  main: { openai_chat: { model: a } }\n  main: { openai_chat: { model: b } }\n"),
    ("sections as lists", "models:\n  - name: main\n    openai_chat: { model: x }\nagents:\n  - name: a\n"),
    (
        "a policy with a misspelled verdict",
        "policies:\n  p:\n    default: ask\n    rules:\n      - id: r\n        match: { tool: \"*\" }\n        verdict: alow\n        reason: Yes.\n",
    ),
    (
        "a rule without its match",
        "policies:\n  p:\n    default: ask\n    rules:\n      - id: r\n        tool: \"*\"\n        verdict: allow\n        reason: Yes.\n",
    ),
    ("a misspelled policy", "agents:\n  a: { policy: bypas }\n"),
    ("an unknown provider", "models:\n  main:\n    mistral: { model: x }\n"),
    (
        "an unset variable",
        "servers:\n  web: { http: { url: https://web.example, headers: { Authorization: \"Bearer ${WEB_TOKEN}\" } } }\n",
    ),
    ("text in place of the whole file", "hello\n"),
    ("an open list", "agents:\n  a:\n    servers: [git, web\nlog: info\n"),
    ("an open quote", "agents:\n  a:\n    instructions: \"Be brief.\n    model: main\nlog: info\n"),
    ("an apostrophe", "agents:\n  a:\n    instructions: 'It's you.'\n"),
];

/// Files with several mistakes, of which each is reported, and nothing that follows from one.
const SEVERAL: &Cases = &[
    (
        "a mistake in each section",
        "models:\n  main:\n    openai_chat:\n      model: gpt-5-mini\n      api_kee: x\nservers:\n  git:\n    stdio: { command: uvx }\n    trustd: true\nagents:\n  a:\n    model: main\n    servers: [git, gti]\n    limits: { max_iterations: many }\n    policy: bypas\nlog: [warn]\n",
    ),
    (
        "entries that cannot be used are known to agents",
        "models:\n  main: { openai: { model: x } }\n  spare: { openai_chat: { modle: y } }\nservers:\n  git: { command: uvx, args: [mcp-server-git] }\n  web: {}\nagents:\n  a: { model: main, fallback: [spare], servers: [git, web] }\nprices: { main: { input: 1, output: 2 } }\n",
    ),
    ("a section that cannot be used", "models: [main]\nservers: none\nagents:\n  a: { model: main, servers: [git] }\n"),
    (
        "a section that is written twice",
        "servers:\n  git: { stdio: { command: git } }\nservers:\n  web: { stdio: { command: web } }\nagents:\n  a: { servers: [git, web], modle: x }\n",
    ),
    (
        "rules of a policy",
        "policies:\n  p:\n    default: ask\n    rules:\n      - { id: a, match: { tol: x }, verdict: allow, reason: A. }\n      - { id: b, match: { tool: x }, verdict: alow, reason: B. }\n      - { id: c, match: { tool: \"[x\" }, verdict: allow, reason: C. }\nagents:\n  a: { policy: p }\n",
    ),
    (
        "mistakes before broken syntax",
        "log: [warn]\nagents:\n  a: { modle: x }\n  b: { instructions: Answer: shortly }\n",
    ),
];

#[test]
fn every_fault_is_told_with_its_place_and_a_remedy() {
    for (part, cases) in [
        ("syntax", SYNTAX),
        ("beginners", BEGINNERS),
        ("several", SEVERAL),
        ("servers", SERVERS),
        ("authentication", AUTHENTICATION),
        ("agents", AGENTS),
        ("fallbacks", FALLBACKS),
        ("gateway", GATEWAY),
        ("envelopes", ENVELOPES),
    ] {
        let mut text = String::new();
        for (name, written) in cases {
            let folder = folder(&[("toolgate.yaml", written), ("a.md", "Hello.")]);
            let error = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect_err(name);
            writeln!(text, "## {name}\n{}", rendered(&error, folder.path())).expect("written");
        }
        insta::assert_snapshot!(format!("faults_of_{part}"), text);
    }
}

#[test]
fn a_key_without_a_value_is_an_error() {
    for (text, key) in [
        ("agents:\n  a:\n    tools:\n      # deny: [\"*\"]\n", "tools"),
        ("agents:\n  a:\n    policy: # strict\n", "policy"),
        ("agents:\n  a:\n    servers:\n", "servers"),
        ("agents:\n  a:\n    limits: { max_cost_usd: }\n", "max_cost_usd"),
        ("agents:\n  a:\n    ask_human: { deadline_s: null }\n", "deadline_s"),
        ("agents:\n  a:\n    policy:\n      default: allow\n      answer_timeout_s: ~\n", "answer_timeout_s"),
        ("servers:\n  s: { stdio: { command: a, env: } }\n", "env"),
        ("servers:\n  s:\n    stdio: { command: a }\n    trusted:\n", "trusted"),
        ("models: { m: { openai_chat: { model: x, api_key: } } }\n", "api_key"),
        ("telemetry:\n  content: # none\n", "content"),
    ] {
        let error = super::load(text).expect_err(text).plain();
        assert!(error.contains(&format!("`{key}` is empty (write a value, or remove the key)")), "{text}{error}");
    }
    for text in ["agents:\n  a:\n    tools: { deny: }\n", "agents:\n  a:\n    tools: { deny: [\"x\", ] , allow: ~ }\n"]
    {
        super::load(text).expect_err(text);
    }
    let matter = folder(&[("toolgate.yaml", "agents: { a: { file: a.md } }\n"), ("a.md", "---\ntools:\n---\nHello.")]);
    let error = config::load(Some(&matter.path().join("toolgate.yaml")), &no_env).expect_err("no tools").plain();
    assert!(error.contains("a.md:2:") && error.contains("`tools` is empty"), "{error}");
}

#[test]
fn the_limit_of_span_attributes_has_a_minimum() {
    let error = super::load("telemetry: { value_bytes: 1000 }\n").expect_err("too small").plain();
    assert!(error.contains("`value_bytes` has to be at least 1024"), "{error}");
}

#[test]
fn a_missing_file_is_reported_by_name() {
    let error = config::load(Some(std::path::Path::new("nowhere/toolgate.yaml")), &no_env).expect_err("missing");
    assert!(
        error.plain().starts_with("there is no file `nowhere/toolgate.yaml` (check the path)"),
        "{}",
        error.plain()
    );
}

#[test]
fn one_pass_finds_all_errors_with_their_lines() {
    let text = "log: ${A}\nservers:\n  x: { http: { url: nope } }\nagents:\n  a: { policy: none }\n";
    let error = super::load(text).expect_err("faulty");
    let lines: Vec<_> = error.faults().filter_map(|fault| fault.line_and_column()).map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 3, 5]);
}

#[test]
fn an_error_never_shows_the_value_of_a_variable() {
    let secret = |_: &str| Some("top secret".to_owned());
    let folder = folder(&[("toolgate.yaml", "servers:\n  x: { http: { url: \"${SECRET_URL}\" } }\n")]);
    let error = config::load(Some(&folder.path().join("toolgate.yaml")), &secret).expect_err("faulty");
    assert!(!rendered(&error, folder.path()).contains("top secret"));
    assert!(!error.plain().contains("top secret"));
}

#[test]
fn an_excerpt_masks_a_key_next_to_the_error() {
    let error = super::load("models: { m: { anthropic: { api_key: sk-canary-1, modle: x } } }").expect_err("a typo");
    let shown = rendered(&error, std::path::Path::new("/nowhere"));
    assert!(shown.contains("modle: x") && !shown.contains("canary"), "{shown}");
}
