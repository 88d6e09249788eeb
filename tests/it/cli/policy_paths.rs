//! Conditions on paths: `within` by text and by links, in a run and in `policy check`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::desk::Desk;

/// A desk whose agent notes `text`, and whose policy allows notes that are paths within the folder `data`.
fn noting(text: &str, function: &str, server: &str) -> Desk {
    let desk = Desk::playing(&format!(
        "turns:\n  - {{ calls: [{{ name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {text:?} }} }}] }}\n  - {{ say: Done. }}\n"
    ));
    let root = fs::canonicalize(desk.path()).unwrap();
    desk.write(
        "toolgate.yaml",
        &format!(
            "lease_s: 1
models: {{ played: {{ scripted: {{ file: conversation.yaml }} }} }}
servers: {{ shop: {{ stdio: {server} }} }}
agents: {{ desk: {{ servers: [shop], policy: notes.yaml }} }}
"
        ),
    );
    desk.write(
        "notes.yaml",
        &format!(
            "name: notes
default: ask
rules:
  - id: in-data
    match: {{ server: shop, tool_name: add_note }}
    when: args.text.{function}('{root}/data')
    verdict: allow
    reason: It stays in the folder.
    examples:
      match: [{{ server: shop, tool: add_note, arguments: {{ text: {root}/data/x }} }}]
      no_match: [{{ server: shop, tool: add_note, arguments: {{ text: {root}/data/../x }} }}]
",
            root = root.display()
        ),
    );
    fs::create_dir(root.join("data")).unwrap();
    fs::create_dir(root.join("secret")).unwrap();
    symlink(root.join("secret"), root.join("data/link")).unwrap();
    symlink(root.join("data"), root.join("alias")).unwrap();
    let conversation = fs::read_to_string(root.join("conversation.yaml")).unwrap();
    desk.write("conversation.yaml", &conversation.replace("ROOT", &root.display().to_string()));
    desk
}

const SHOP: &str = "{ command: toolgate, args: [demo-server] }";

#[test]
fn a_call_runs_unasked_only_where_the_links_of_its_path_lead_into_the_folder() {
    for (text, code, why) in [
        ("ROOT/data/new.txt", 0, ""),
        ("ROOT/data/../data/./new.txt", 0, ""),
        ("ROOT/data/link/new.txt", 10, "a link on the path leads elsewhere than its text says"),
        ("ROOT/data/link/../x", 10, "a link on the path leads elsewhere than its text says"),
        ("ROOT/data/../secret", 10, "no rule of policy"),
        ("ROOT/alias/new.txt", 10, "a link on the path leads elsewhere than its text says"),
        ("data/new.txt", 10, "a path is not absolute"),
        ("ROOT/data/%2e%2e/x", 10, "an escape such as `%2e`"),
    ] {
        let ended = noting(text, "within", SHOP).toolgate(&["run", "note it"]).expect(code);
        assert!(ended.err.contains(why), "{text}: {}", ended.err);
    }
}

#[test]
fn links_of_a_server_elsewhere_are_unknown_and_its_paths_are_asked_about() {
    let elsewhere = "{ command: sh, args: [-c, \"exec toolgate demo-server # ssh\"] }";
    let asked = noting("ROOT/data/x", "within", elsewhere).toolgate(&["run", "note it"]).expect(10);
    assert!(asked.err.contains("the files of server `shop` are not those of toolgate"), "{}", asked.err);
    noting("ROOT/data/x", "lexicallyWithin", elsewhere).toolgate(&["run", "note it"]).expect(0);
    noting("ROOT/data/link/x", "lexicallyWithin", elsewhere).toolgate(&["run", "note it"]).expect(0);
    noting("ROOT/data/../x", "lexicallyWithin", elsewhere).toolgate(&["run", "note it"]).expect(10);
}

/// Changes the target of a link.
fn relink(desk: &Desk, link: &str, to: impl AsRef<Path>) {
    fs::remove_file(desk.path().join(link)).unwrap();
    symlink(to, desk.path().join(link)).unwrap();
}

fn was_sent(desk: &Desk) -> bool {
    desk.journal("last").iter().any(|fact| fact["type"] == "tool.started")
}

#[test]
fn a_link_that_changes_after_a_yes_is_asked_about_again() {
    // One link is the folder of a file, the other is in the middle of the path.
    for text in ["ROOT/data/link/x", "ROOT/data/link/deep/er/x"] {
        let desk = noting(text, "within", SHOP);
        let asked = desk.toolgate(&["run", "note it"]).expect(10).err;
        let secret = fs::canonicalize(desk.path().join("secret")).unwrap();
        assert!(asked.contains(&format!("leads to `{}/", secret.display())), "{asked}");
        relink(&desk, "data/link", "/etc");

        let approved = desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(8).err;

        assert!(approved.contains("changed since it was cleared: policy") && !was_sent(&desk), "{approved}");
        let again = desk.toolgate(&["approvals", "list"]).expect(0).out;
        assert!(again.contains("leads to `/etc/"), "{again}");
        desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
        assert!(was_sent(&desk));
    }
}

#[test]
fn a_link_that_stays_as_it_was_is_asked_about_once() {
    let desk = noting("ROOT/data/link/x", "within", SHOP);
    desk.toolgate(&["run", "note it"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    assert!(was_sent(&desk));
}

#[test]
fn a_condition_names_an_absolute_folder() {
    let desk = Desk::empty();
    for (when, expected) in [
        ("args.path.within('srv')", "needs an absolute folder"),
        ("args.path.within('/srv/..')", "without `.` and `..`"),
        ("args.path.within(args.root)", "has to be written out"),
        ("args.path.within()", "compares one path"),
        ("args.path.within('/a', '*.pem', 'x')", "compares one path"),
        ("args.path.within('/a', '[ab]')", "a pattern of files has"),
        ("path.within('/srv')", "there is no `path`"),
    ] {
        let rule =
            format!("{{ id: r, match: {{ server: disk }}, when: \"{when}\", verdict: allow, reason: Because. }}");
        desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules: [{rule}]\n"));
        let told = desk.toolgate(&["policy", "check", "p.yaml"]).expect(2).err;
        assert!(told.contains(expected), "{when}: {told}");
    }
    let rule = "{ id: r, match: { server: disk }, when: \"args.paths.all(path, path.within('/srv'))\", verdict: allow, reason: Because. }";
    desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules: [{rule}]\n"));
    let checked = desk.toolgate(&["policy", "check", "--strict", "p.yaml"]).expect(0);
    assert!(!checked.err.contains("warning"), "{}", checked.err);
    let explain = |arguments: &str| {
        let explain = ["policy", "explain", "read", arguments, "--server", "disk", "--file", "p.yaml"];
        desk.toolgate(&explain).expect(0).out
    };
    assert!(explain(r#"{"paths": ["/srv/a", "/srv/b/../c"]}"#).contains("allow, by rule r"));
    assert!(explain(r#"{"paths": ["/srv/a", "/srv/../etc/passwd"]}"#).contains("ask, by no rule"));
    assert!(explain(r#"{"paths": ["~/a"]}"#).contains("a path is not absolute"));
}
