//! Agents in Markdown files, and the runner's agents.

use toolgate::config;
use toolgate::core::run::{Backoff, Candidate, Compaction, OnDeny, OnToolError, OnUnknownOutcome, Restart};

use super::{env, example, folder, no_env, rendered};

fn load_markdown(markdown: &str) -> Result<config::AgentSettings, String> {
    let folder = folder(&[
        ("toolgate.yaml", "servers: { git: { stdio: { command: git } } }\nagents: { writer: { file: w.md } }\n"),
        ("w.md", markdown),
    ]);
    config::load(Some(&folder.path().join("toolgate.yaml")), &no_env)
        .map(|settings| settings.agents[&"writer".into()].clone())
        .map_err(|error| rendered(&error, folder.path()))
}

#[test]
fn front_matter_is_the_agent_and_the_text_its_instructions() {
    let agent = load_markdown(
        "---\nservers: [git]\non_deny: fail\non_tool_error: fail\n---\n\n# Writer\n\n---\nUse ${HOME}.\n",
    )
    .expect("good");
    assert_eq!(agent.servers, ["git".into()]);
    assert_eq!((agent.rules.on_deny, agent.rules.on_tool_error), (OnDeny::Fail, OnToolError::Fail));
    assert_eq!(agent.instructions, "# Writer\n\n---\nUse ${HOME}.");
}

#[test]
fn row_3_22_instructions_with_a_secret_or_its_name_are_refused() {
    let refused =
        load_markdown("---\nservers: [git]\n---\nUse ${HOME}.\nPush with ${GIT_TOKEN}.\n").expect_err("a secret");
    assert!(refused.contains("the instructions of agent `writer` contain `${GIT_TOKEN}`"), "{refused}");

    let model = "models:\n  main: { openai_chat: { model: x, api_key: plain-s3cret } }\n";
    let agent = |text: &str| format!("{model}agents: {{ a: {{ variants: {{ v: {{ instructions: {text} }} }} }} }}\n");
    let refused = super::load(&agent("The key is plain-s3cret")).expect_err("a secret").plain();
    assert!(refused.contains("the instructions of agent `a` contain a secret of this configuration"), "{refused}");
    assert!(!refused.contains("plain-s3cret"), "{refused}");
    assert!(super::load(&agent("The key is plain")).is_ok());
}

#[test]
fn a_file_without_front_matter_is_all_instructions() {
    assert_eq!(load_markdown("Just write.\n").expect("good").instructions, "Just write.");
}

#[test]
fn windows_line_endings_are_accepted() {
    let agent = load_markdown("---\r\nservers: [git]\r\n---\r\nWrite.\r\n").expect("good");
    assert_eq!((agent.servers.len(), agent.instructions.as_str()), (1, "Write."));
}

#[test]
fn faults_in_front_matter_are_told_with_the_lines_of_the_markdown_file() {
    let mut all = String::new();
    for markdown in
        ["---\nservers:\n  - gti\n---\nText", "---\nmodle: x\n---\n", "---\nmodel: x\n", "---\nfile: x.md\n---\n"]
    {
        all += &load_markdown(markdown).expect_err(markdown);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_fallback_is_a_name_or_a_name_with_its_attempts() {
    let settings = config::load(Some(&example("full/toolgate.yaml")), &env).expect("good");
    let agent = &settings.agents[&"assistant".into()];
    let demo = Candidate { model: "demo".into(), attempts: None };
    let auto = Candidate { model: "auto".into(), attempts: Some(2) };
    assert_eq!((agent.fallback.as_slice(), agent.cooldown_s), (&[demo, auto][..], 30));
    let writer = &settings.agents[&"writer".into()];
    assert_eq!((writer.fallback.as_slice(), writer.cooldown_s), (&[][..], 60));
}

#[test]
fn front_matter_may_name_a_fallback() {
    let folder = super::folder(&[
        (
            "toolgate.yaml",
            "models: { a: { scripted: { file: x } }, b: { scripted: { file: y } } }\nagents: { w: { file: w.md } }\n",
        ),
        ("w.md", "---\nmodel: a\nfallback: [{ model: b, attempts: 1 }]\n---\nWrite.\n"),
    ]);
    let settings = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect("good");
    let b = Candidate { model: "b".into(), attempts: Some(1) };
    assert_eq!(settings.agents[&"w".into()].fallback, [b]);
}

#[test]
fn an_agent_has_what_the_file_says() {
    let settings = config::load(Some(&example("full/toolgate.yaml")), &env).expect("good");
    let agent = &settings.agents[&"assistant".into()];
    assert_eq!((agent.name.as_str(), agent.model.as_str()), ("assistant", "main"));
    assert_eq!(
        (agent.rules.on_deny, agent.rules.on_unknown_outcome, agent.rules.output_schema.is_some()),
        (OnDeny::Fail, OnUnknownOutcome::Ask, true)
    );
    assert_eq!(agent.instructions, "Help with the repository. Shell text such as ${HOME} stays as it is.");
    assert_eq!(agent.external_tools.len(), 2);
}

#[test]
fn a_compaction_keeps_less_than_it_waits_for() {
    let models = "models:\n  main: { openai_chat: { model: x } }\n  small: { openai_chat: { model: y } }\n";
    let agent = |text: &str| format!("{models}agents: {{ a: {{ model: main, compaction: {text} }} }}\n");
    let read = |text: &str| super::load(&agent(text)).map(|settings| settings.agents[&"a".into()].clone());
    let compaction = read("{ at_tokens: 8000, model: small }").expect("good");
    let expected = Compaction { at_tokens: Some(8000), keep_tokens: 2000, model: Some("small".into()) };
    assert_eq!(compaction.rules.compaction, Some(expected));
    assert_eq!(compaction.models().map(|name| name.as_str()).collect::<Vec<_>>(), ["main", "small"]);
    assert_eq!(read("{}").expect("good").rules.compaction, Some(Compaction::default()));
    let refused = |text: &str| read(text).expect_err("wrong").plain();
    let wide = refused("{ at_tokens: 8000, keep_tokens: 8000 }");
    assert!(wide.contains("`keep_tokens` of a compaction is less than its `at_tokens`"), "{wide}");
    assert!(refused("{ at_tokens: 0 }").contains("at least 1"));
    assert!(refused("{ model: none }").contains("none"));
}

#[test]
fn row_3_13_models_to_choose_and_delays_are_settings_of_an_agent() {
    let model = |name: &str| format!("  {name}: {{ openai_chat: {{ model: x, api_key: k }} }}\n");
    let models = format!("models:\n{}{}{}", model("a"), model("b"), model("c"));
    let agent = |rest: &str| super::load(&format!("{models}agents: {{ x: {{ model: a, fallback: [b], {rest} }} }}\n"));
    let x = |rest: &str| agent(rest).unwrap_or_else(|error| panic!("{}", error.plain())).agents[&"x".into()].clone();

    assert_eq!(x("models: [a, b, c, c]").selectable_models, ["c".into()], "the others may be chosen anyway");
    assert_eq!(x("models: [c]").models().count(), 3);
    let ms = std::time::Duration::from_millis;
    let grown = Backoff::Exponential { first: ms(100), cap: ms(8000), factor: 3 };
    assert_eq!(x("backoff: { first_ms: 100, factor: 3 }").backoff, grown);
    assert_eq!(x("backoff: { every_ms: 100 }").backoff, Backoff::Constant(ms(100)));
    for (rest, told) in [
        ("models: [d]", "there is no model `d`"),
        ("backoff: { every_ms: 1, cap_ms: 2 }", "`every_ms` is a constant delay"),
        ("backoff: { first_ms: 9000, cap_ms: 2 }", "less than its `first_ms`"),
        ("backoff: { factor: 0 }", "at least 1"),
    ] {
        let error = agent(rest).unwrap_err().plain();
        assert!(error.contains(told), "{rest}: {error}");
    }
}

#[test]
fn rows_0_42_to_0_44_an_agent_has_a_preset_a_folder_and_its_instruction_files() {
    let project = [
        ("shop/AGENTS.md", "Use tabs.\n"),
        ("shop/CLAUDE.md", "Be brief.\n"),
        ("shop/deep/x.txt", ""),
        ("copy/AGENTS.md", "Use tabs.\n"),
        ("copy/CLAUDE.md", "Use tabs.\n"),
    ];
    let model = "models: { m: { openai_chat: { model: x, api_key: k } } }\n";
    let system = |agent: &str| {
        let text = format!("{model}agents: {{ a: {{ {agent} }} }}\n");
        let folder = folder(&[&project[..], &[("toolgate.yaml", &text)]].concat());
        let settings = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env);
        let root = folder.path().canonicalize().unwrap().display().to_string();
        let agent = settings.map(|settings| settings.agents[&"a".into()].clone());
        agent.map(|agent| agent.system().replace(&root, "")).map_err(|error| error.plain())
    };
    let tabs = "# Instructions of the project (AGENTS.md)\n\nUse tabs.";

    assert_eq!(system("instructions: Hi"), Ok("Hi".to_owned()), "no file is read unless a folder is named");
    let whole = format!(
        "Hi\n\nThe working directory is `/shop`.\n\n{tabs}\n\n# Instructions of the project (CLAUDE.md)\n\nBe brief."
    );
    assert_eq!(system("instructions: Hi, working_directory: shop"), Ok(whole));
    let folder_alone = Ok("The working directory is `/shop`.".to_owned());
    assert_eq!(system("working_directory: shop, setting_sources: []"), folder_alone);
    assert_eq!(system("working_directory: shop/deep"), Ok("The working directory is `/shop/deep`.".to_owned()));
    assert_eq!(system("working_directory: copy"), Ok(format!("The working directory is `/copy`.\n\n{tabs}")));
    assert!(system("instructions_preset: coding").unwrap().starts_with("You work on the files"));
    assert_eq!(system("instructions_preset: coding, instructions: Hi"), Ok("Hi".to_owned()));
    for (agent, told) in [
        ("instructions_preset: codign", "there are no instructions `codign`"),
        ("setting_sources: [project]", "needs a `working_directory`"),
        ("setting_sources: [user]", "unknown value `user`"),
        ("working_directory: shop/AGENTS.md", "is not a folder"),
        ("working_directory: nowhere", "is not a folder"),
    ] {
        let error = system(agent).unwrap_err();
        assert!(error.contains(told), "{agent}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn instruction_files_outside_the_folder_or_too_large_are_refused() {
    let text = "models: { m: { openai_chat: { model: x, api_key: k } } }\nagents: { a: { working_directory: shop } }\n";
    let refused = |prepare: &dyn Fn(&std::path::Path)| {
        let folder = folder(&[("toolgate.yaml", text), ("secret.md", "s"), ("shop/x", "")]);
        prepare(folder.path());
        config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).unwrap_err().plain()
    };
    let linked =
        refused(&|root| std::os::unix::fs::symlink(root.join("secret.md"), root.join("shop/AGENTS.md")).unwrap());
    assert!(linked.contains("leads to a file outside its folder"), "{linked}");
    let large = refused(&|root| std::fs::write(root.join("shop/AGENTS.md"), "x".repeat(65 * 1024)).unwrap());
    assert!(large.contains("more than 64 KiB"), "{large}");
}

#[test]
fn rows_0_07_and_0_08_an_agent_names_its_modes_and_when_its_sessions_begin_afresh() {
    let agent = |keys: &str| super::load(&format!("agents: {{ a: {{ {keys} }} }}\n"));
    let settings = agent("modes: [plan, dont-ask], sessions: { expire_after_s: 3600, restart_on: [model, policy] }");
    let agents = settings.expect("good").agents;
    let a = &agents[&"a".into()];
    assert_eq!(a.modes.iter().map(|mode| mode.name.as_str()).collect::<Vec<_>>(), ["plan", "dont-ask"]);
    assert_eq!((a.expire_after_s, &a.restart_on), (Some(3600), &[Restart::Model, Restart::Policy].into()));
    let refused = agent("sessions: { restart_on: [expired] }").expect_err("no change").plain();
    assert!(refused.contains("`expired` is no change of the configuration"), "{refused}");
    let refused = agent("modes: [paln]").expect_err("unknown").plain();
    assert!(refused.contains("`paln`") && refused.contains("`plan`"), "{refused}");
}
