//! Aliases and variants of agents (row 1.29).

use toolgate::config::{AgentSettings, Settings};
use toolgate::core::run::OnDeny;

use super::{folder, no_env, rendered};

const AGENTS: &str = "
models: { a: { scripted: { file: a.yaml } }, b: { scripted: { file: b.yaml } } }
agents:
  desk:
    model: a
    fallback: [b]
    policy: bypass
    instructions: Be kind.
    aliases: [helper, clerk]
    limits: { max_iterations: 9, max_mcp_calls: 7 }
    variants:
      strict: { policy: plan, on_deny: fail, limits: { max_iterations: 2 } }
      other: { model: b, fallback: [], instructions: Be brief. }
  plain: { model: a }
";

fn loaded(text: &str) -> Result<Settings, String> {
    let folder = folder(&[("toolgate.yaml", text)]);
    let file = folder.path().join("toolgate.yaml");
    toolgate::config::load(Some(&file), &no_env).map_err(|error| rendered(&error, folder.path()))
}

fn desk(settings: &Settings) -> AgentSettings {
    settings.agents[&"desk".into()].clone()
}

#[test]
fn a_variant_replaces_the_settings_that_it_names() {
    let agent = desk(&loaded(AGENTS).expect("good"));
    let strict = agent.in_variant("strict").expect("a variant");
    assert_eq!((strict.policy.name.as_str(), strict.rules.on_deny), ("plan", OnDeny::Fail));
    assert_eq!((strict.limits.max_iterations, strict.limits.max_mcp_calls), (2, Some(7)));
    assert_eq!(
        (&strict.instructions, &strict.model, &strict.fallback),
        (&agent.instructions, &agent.model, &agent.fallback)
    );
    let other = strict.in_variant("other").expect("another variant");
    assert_eq!((other.model.as_str(), other.instructions.as_str()), ("b", "Be brief."));
    assert_eq!((other.fallback.len(), other.policy.name.as_str()), (0, "bypass"));
    assert_eq!(agent.aliases, ["helper".into(), "clerk".into()]);
}

#[test]
fn the_configured_variant_is_that_of_every_agent_that_has_it() {
    let settings = loaded(&format!("variant: strict{AGENTS}")).expect("good");
    assert_eq!(desk(&settings).policy.name, "plan");
    assert_eq!(settings.agents[&"plain".into()].policy.name, "default");
    let settings = loaded(&format!("variant: \"${{NONE:-}}\"{AGENTS}")).expect("an empty name chooses none");
    assert_eq!(desk(&settings).policy.name, "bypass");
}

#[test]
fn faults_of_aliases_and_variants_are_told() {
    let mut all = loaded(&format!("variant: strcit{AGENTS}")).expect_err("unknown variant");
    for agents in [
        "{ desk: { aliases: [plain] }, plain: {} }",
        "{ desk: { aliases: [it] }, plain: { aliases: [it] } }",
        "{ desk: { variants: { strict: { aliases: [x] } } } }",
        "{ desk: { model: a, fallback: [b], variants: { spare: { model: b } } } }",
        "{ desk: { variants: { strict: { polciy: plan } } } }",
    ] {
        let models = "models: { a: { scripted: { file: a.yaml } }, b: { scripted: { file: b.yaml } } }";
        let agents = agents.replace("desk: {", "desk: { model: a,").replace("model: a, model: a", "model: a");
        let agents = agents.replace("plain: {", "plain: { model: a,");
        all += &loaded(&format!("{models}\nagents: {agents}\n")).expect_err(&agents);
    }
    insta::assert_snapshot!(all);
}
