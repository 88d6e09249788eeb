//! The egress policy: one rule for the addresses of models, servers, webhooks and media.

use super::load;

const SECTIONS: &str = "
models:
  near: { openai_chat: { base_url: 'http://127.0.0.1:11434/v1', model: x } }
  inner: { openai_chat: { base_url: 'http://user:passw0rd@10.0.0.7/v1', model: x } }
  far: { openai_chat: { base_url: 'https://api.example.com/v1', model: x } }
servers:
  here: { http: { url: 'http://localhost:1/mcp' } }
agents: { a: { model: far } }
gateway: { media_hosts: { private: true } }
";

#[test]
fn row_3_48_one_policy_covers_models_servers_webhooks_and_media() {
    let faults = |egress: &str| load(&format!("{SECTIONS}{egress}")).map(|_| ()).map_err(|error| error.plain());

    assert_eq!(faults(""), Ok(()), "without a policy the operator's addresses may be anywhere");
    assert_eq!(faults("egress: { private: true, loopback: true }"), Ok(()));
    let strict = faults("egress: {}").unwrap_err();
    for told in ["model `near`", "model `inner`", "MCP server `here`", "`gateway.media_hosts.private: true`"] {
        assert!(strict.contains("`egress` does not allow") && strict.contains(told), "{told}: {strict}");
    }
    assert!(!strict.contains("`far`") && !strict.contains("passw0rd"), "{strict}");
    let named = faults("egress: { private: true, hosts: [127.0.0.1, LocalHost] }");
    assert_eq!(named, Ok(()));
}
