//! Valid configurations and their settings.

use toolgate::config;

use super::{env, example, no_env, without};

#[test]
fn the_full_example_becomes_these_settings() {
    let settings = config::load(Some(&example("full/toolgate.yaml")), &env).expect("good");
    let shown = without(&example("full"), &format!("{settings:#?}"));
    for secret in ["sk-very-secret", "git-very-secret", "web-very-secret"] {
        assert!(!shown.contains(secret), "{secret} is shown");
    }
    // Policies have their own tests, and their compiled patterns are internal to the library.
    let mut settings = settings;
    let policies: Vec<String> = settings.policies.keys().cloned().collect();
    assert_eq!(
        policies,
        ["accept-edits", "accept-reads", "bypass", "default", "delegate", "dont-ask", "plan", "strict"]
    );
    settings.policies.clear();
    for agent in settings.agents.values_mut() {
        let mut bare = (*agent.policy).clone();
        bare.rules.clear();
        agent.policy = bare.into();
    }
    insta::assert_snapshot!(without(&example("full"), &format!("{settings:#?}")));
}

#[test]
fn the_starter_configuration_works_without_any_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in config::Starter::default().files() {
        std::fs::write(folder.path().join(file.name), file.text).expect("written");
    }
    let settings = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect("good");
    let agent = &settings.agents[&"assistant".into()];
    assert_eq!(agent.servers, ["demo".into()]);
    assert_eq!(agent.policy.name, "default");
    let config::ModelSettings::Scripted { file, .. } = &settings.models[&agent.model] else { panic!("not scripted") };
    assert_eq!(file, &folder.path().join("conversation.yaml"));
    let script: serde_json::Value = config::read_file(file).expect("a script");
    assert_eq!(script["turns"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_value_from_the_environment_never_becomes_yaml() {
    let tricky = |_: &str| Some("x\nlog: debug # ${LOG}".to_owned());
    let folder = super::folder(&[("toolgate.yaml", "store: { memory: {} }\nlog: ${LOG}\n")]);
    let settings = config::load(Some(&folder.path().join("toolgate.yaml")), &tricky).expect("good");
    assert_eq!(settings.log.as_deref(), Some("x\nlog: debug # ${LOG}"));
}

#[test]
fn sections_may_be_empty() {
    let settings = super::load("models:\nservers:\nagents:\npolicies:\n").expect("good");
    assert_eq!(settings.agents.len(), 1);
}
