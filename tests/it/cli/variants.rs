//! Aliases and variants of agents on the command line (row 1.29).

use super::desk::Desk;

const CONFIG: &str = "
models: { played: { scripted: { file: conversation.yaml } } }
servers: { shop: { stdio: { command: toolgate, args: [demo-server] }, trusted: true } }
agents:
  desk: { servers: [shop], policy: bypass, aliases: [helper], variants: { strict: { policy: default } } }
  other: {}
";

const SAID: &str = "
turns:
  - calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: x } }]
  - { say: Done. }
";

#[test]
fn an_alias_and_a_variant_are_chosen_by_flag() {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", CONFIG);
    desk.write("conversation.yaml", SAID);

    desk.toolgate(&["run", "--agent", "helper", "Note it"]).expect(0);
    let journal = desk.journal("last");
    assert_eq!(journal[0]["spec"]["agent"], "desk", "{}", journal[0]);

    let strict = desk.toolgate(&["run", "--agent", "helper", "--variant", "strict", "Note it"]).expect(10);
    assert!(strict.err.contains("--variant strict"), "the commands shown repeat the flag: {}", strict.err);
    let unknown = desk.toolgate(&["run", "--agent", "other", "--variant", "strict", "Note it"]);
    assert!(unknown.code != 0 && unknown.err.contains("there is no variant `strict`"), "{}", unknown.err);
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    assert!((checked.out + &checked.err).contains("aliases helper; variants strict"));

    desk.write("toolgate.yaml", &format!("variant: strict{CONFIG}"));
    desk.toolgate(&["run", "--agent", "desk", "Note it"]).expect(10);
}
