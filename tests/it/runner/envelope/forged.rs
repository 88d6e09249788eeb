//! Rejected envelopes: each has its own error, and nothing is written.

use serde_json::json;
use toolgate::runner::Resume;
use toolgate::runner::envelope::{
    Envelope, EnvelopeError, EnvelopeKey, EnvelopeKeys, KeyError, MOST_ENVELOPE_BYTES, MOST_TOKEN_BYTES,
};

use super::super::world::{decisions, say, yes};
use super::nodes::{HOUR, Node, PRIVATE, PUBLIC, World, a_clerk, ed25519, keys, secret, with};

fn world() -> World {
    let deletion = json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]});
    World::of(a_clerk().whose_model_says(json!([deletion, say("Done.")])))
}

fn a_yes() -> Resume {
    decisions([("call_1_1", yes())])
}

/// The error of a node that has never stored the run, and has not stored it afterwards either.
async fn refused(world: &World, keys: EnvelopeKeys, envelope: &Envelope) -> EnvelopeError {
    let elsewhere = world.node(keys);
    let error = elsewhere.refusal(envelope, a_yes()).await;
    assert!(elsewhere.has_never_seen(envelope).await && world.servers.calls().is_empty());
    error
}

async fn handed_out() -> (World, Node, Envelope) {
    let world = world();
    let node = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&node).await;
    (world, node, envelope)
}

#[tokio::test(start_paused = true)]
async fn one_whose_arguments_messages_or_time_were_changed() {
    let (world, node, envelope) = handed_out().await;
    let changes = [
        ("/pending/0/arguments/path", json!("b")),
        ("/pending/0/call_id", json!("call_9_9")),
        ("/pending/0/summary", json!("harmless")),
        ("/pending", json!([])),
        ("/messages/0/content/0/text", json!("Goodbye")),
        ("/messages", json!([])),
        ("/tool_interactions", json!(0)),
        ("/expires_at", json!("2030-01-01T00:00:00Z")),
    ];

    for (pointer, value) in changes {
        let changed = with(&envelope, pointer, value);
        assert_ne!(changed, envelope);
        assert_eq!(refused(&world, keys(&["k1"]), &changed).await, EnvelopeError::Altered, "{pointer}");
        assert_eq!(node.refusal(&changed, a_yes()).await, EnvelopeError::Altered, "where it is known: {pointer}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_shows_more_than_was_handed_out() {
    let (_world, _node, envelope) = handed_out().await;
    let mut json = serde_json::to_value(&envelope).unwrap();

    json["pending"][0]["note"] = json!("approved by the board");

    assert_eq!(Envelope::from_json(json.to_string().as_bytes()), Err(EnvelopeError::Altered));
    json["pending"] = json!(envelope.pending);
    json["note"] = json!("approved by the board");
    assert_eq!(Envelope::from_json(json.to_string().as_bytes()), Err(EnvelopeError::Malformed));
}

#[tokio::test(start_paused = true)]
async fn one_with_the_token_or_the_name_of_another_run() {
    let (world, node, one) = handed_out().await;
    let other = world.handed_out(&node).await;

    let with_its_token = with(&one, "/token", json!(other.token));
    let under_its_name = with(&one, "/run_id", json!(other.run_id));

    for swapped in [with_its_token, under_its_name] {
        assert_eq!(refused(&world, keys(&["k1"]), &swapped).await, EnvelopeError::AnotherRun);
        assert_eq!(node.refusal(&swapped, a_yes()).await, EnvelopeError::AnotherRun);
    }
}

#[tokio::test(start_paused = true)]
async fn one_with_a_token_of_the_same_run_from_another_time() {
    let two = json!([
        {"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]},
        {"calls": [{"name": "mcp_files_delete", "arguments": {"path": "b"}}]},
        say("Done."),
    ]);
    let world = World::of(a_clerk().whose_model_says(two));
    let node = world.node(keys(&["k1"]));
    let first = world.handed_out(&node).await;
    node.resume(&first, a_yes()).await;
    let second = node.runner.export(&first.run_id).await.unwrap();

    let mixed = with(&second, "/token", json!(first.token));

    assert_eq!(node.refusal(&mixed, a_yes()).await, EnvelopeError::Altered);
}

#[tokio::test(start_paused = true)]
async fn one_that_expired() {
    let (world, _node, envelope) = handed_out().await;
    tokio::time::advance(HOUR * 24).await;

    let refused = refused(&world, keys(&["k1"]), &envelope).await;

    assert_eq!(refused, EnvelopeError::Expired { at: envelope.expires_at });
}

#[tokio::test(start_paused = true)]
async fn one_that_was_to_last_only_so_long() {
    let world = world();
    let node = world.node(keys(&["k1"]).lasting(HOUR));
    let envelope = world.handed_out(&node).await;

    tokio::time::advance(HOUR).await;

    // The export determines the lifetime, not the node that reads the envelope.
    let refused = refused(&world, keys(&["k1"]).lasting(HOUR * 1000), &envelope).await;
    assert_eq!(refused, EnvelopeError::Expired { at: envelope.expires_at });
}

#[tokio::test(start_paused = true)]
async fn one_whose_key_was_taken_away_or_is_another_under_the_same_id() {
    let (world, _node, envelope) = handed_out().await;
    let another = EnvelopeKeys::new("k1", [("k1".to_owned(), secret("another"))]).unwrap();

    assert_eq!(refused(&world, keys(&["k2"]), &envelope).await, EnvelopeError::UnknownKey);
    assert_eq!(refused(&world, another, &envelope).await, EnvelopeError::Forged);
}

#[tokio::test(start_paused = true)]
async fn one_that_names_a_key_which_did_not_sign_it() {
    let (world, _node, envelope) = handed_out().await;

    let token = envelope.token.replacen(".k1.", ".k2.", 1);

    let refused = refused(&world, keys(&["k1", "k2"]), &with(&envelope, "/token", json!(token))).await;
    assert_eq!(refused, EnvelopeError::Forged);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_signed_in_another_way_than_its_key_signs() {
    let world = world();
    // A public key is public: its bytes must not work as a shared secret.
    let public_as_secret = EnvelopeKey::hmac(PUBLIC.as_bytes()).unwrap();
    let forger = EnvelopeKeys::new("ed", [("ed".to_owned(), public_as_secret)]).unwrap();
    let forged = world.handed_out(&world.node(forger)).await;
    let private = || EnvelopeKeys::new("ed", [("ed".to_owned(), ed25519(PRIVATE))]).unwrap();
    let signed = world.handed_out(&world.node(private())).await;
    let shared = EnvelopeKeys::new("ed", [("ed".to_owned(), secret("ed"))]).unwrap();

    assert_eq!(refused(&world, private(), &forged).await, EnvelopeError::WrongAlgorithm);
    assert_eq!(refused(&world, shared, &signed).await, EnvelopeError::WrongAlgorithm);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_signed_with_the_right_key_and_sealed_with_another() {
    let world = world();
    let sealed_with = |seal: &[u8]| {
        EnvelopeKeys::new("ed", [("ed".to_owned(), EnvelopeKey::ed25519(PRIVATE, seal).unwrap())]).unwrap()
    };
    let here = world.node(sealed_with(b"one secret of more than enough bytes"));
    let envelope = world.handed_out(&here).await;

    let refused = refused(&world, sealed_with(b"another secret of more than enough bytes"), &envelope).await;

    assert_eq!(refused, EnvelopeError::Unreadable);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_cut_off_or_is_of_another_form() {
    let (world, _node, envelope) = handed_out().await;
    let token = &envelope.token;
    let tokens = [
        String::new(),
        "....".to_owned(),
        token.replacen("tge1", "tge2", 1),
        token.replacen(".k1.", "..", 1),
        format!("{token}.AAAA"),
        format!("{token}="),
        token.rsplit_once('.').unwrap().0.to_owned(),
    ];

    for token in tokens {
        let cut = with(&envelope, "/token", json!(token));
        let error = refused(&world, keys(&["k1"]), &cut).await;
        assert_eq!(error, EnvelopeError::Malformed, "{}…", &token[..token.len().min(30)]);
    }
    for length in [1, token.len() / 2, token.len() - 1] {
        let cut = with(&envelope, "/token", json!(token[..length]));
        let error = refused(&world, keys(&["k1"]), &cut).await;
        assert!(matches!(error, EnvelopeError::Malformed | EnvelopeError::WrongAlgorithm), "{length}: {error:?}");
    }
    assert_eq!(Envelope::from_json(b"{}"), Err(EnvelopeError::Malformed));
    assert_eq!(Envelope::from_json(&vec![b'['; 100_000]), Err(EnvelopeError::Malformed));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_larger_than_any_that_was_handed_out() {
    let (world, _node, envelope) = handed_out().await;

    let huge = Envelope { token: "a".repeat(MOST_TOKEN_BYTES + 1), ..envelope };

    assert_eq!(refused(&world, keys(&["k1"]), &huge).await, EnvelopeError::Oversized { most: MOST_TOKEN_BYTES });
    let text = vec![b' '; MOST_ENVELOPE_BYTES + 1];
    assert_eq!(Envelope::from_json(&text), Err(EnvelopeError::Oversized { most: MOST_ENVELOPE_BYTES }));
}

#[tokio::test(start_paused = true)]
async fn one_whose_run_has_another_past_where_it_is_given_back() {
    let (world, here, envelope) = handed_out().await;
    let elsewhere = world.node(keys(&["k1"]));
    let mut other = toolgate::ports::RunStore::load(&*here.store, &envelope.run_id, 0).await.unwrap();
    other[0].at += HOUR;
    let row = here.runner.list(&Default::default()).await.unwrap().remove(0);
    let append = toolgate::ports::Append {
        run: envelope.run_id.clone(),
        at: 0,
        events: other.clone(),
        row,
        owner: None,
        lease: HOUR,
        session: None,
        spans_sent: None,
        is_import: false,
    };
    toolgate::ports::RunStore::append(&*elsewhere.store, append).await.unwrap();

    let refused = elsewhere.refusal(&envelope, a_yes()).await;

    assert_eq!(refused, EnvelopeError::Diverged { run: envelope.run_id.clone() });
    let after = toolgate::ports::RunStore::load(&*elsewhere.store, &envelope.run_id, 0).await.unwrap();
    assert_eq!(after, other);
}

#[tokio::test(start_paused = true)]
async fn one_in_which_a_member_stands_twice_even_if_the_last_one_is_genuine() {
    let (_world, _node, envelope) = handed_out().await;
    let text = serde_json::to_string(&envelope).unwrap();
    let before = [
        ("{\"run_id\"", "{\"run_id\":\"run_of_someone_else\",\"run_id\""),
        ("\"arguments\":{\"path\"", "\"arguments\":{\"path\":\"harmless\",\"path\""),
    ];
    for (member, twice) in before {
        let forged = text.replacen(member, twice, 1);
        assert_ne!(forged, text, "{member}");
        assert_eq!(Envelope::from_json(forged.as_bytes()).unwrap_err(), EnvelopeError::Malformed);
        assert!(serde_json::from_str::<Envelope>(&forged).is_err(), "however it is read");
    }
}

#[tokio::test(start_paused = true)]
async fn any_at_a_runner_without_keys() {
    let (_world, node, envelope) = handed_out().await;
    let store = node.store.clone();

    let without = toolgate::runner::AgentRunner::builder().store(store).build().unwrap();

    let refused = without.resume_from(&envelope, a_yes()).await.unwrap_err();
    assert_eq!(refused, EnvelopeError::NotConfigured.into());
    assert_eq!(without.export(&envelope.run_id).await.unwrap_err(), EnvelopeError::NotConfigured.into());
}

#[test]
fn keys_that_cannot_be_used_are_told_by_what_is_wrong_with_them_and_never_shown() {
    let long = b"a secret of more than enough bytes to be one";
    assert_eq!(EnvelopeKey::hmac(b"guess me").unwrap_err(), KeyError::Short);
    assert_eq!(EnvelopeKey::ed25519(PRIVATE, b"guess me").unwrap_err(), KeyError::Short);
    assert_eq!(EnvelopeKey::ed25519("", long).unwrap_err(), KeyError::NotEd25519);
    assert_eq!(EnvelopeKey::ed25519("bm90IGEga2V5", long).unwrap_err(), KeyError::NotEd25519);
    // Only the raw key, once the private one and once the public one.
    for bare in ["0iEXyvJ3ud5vvnEyN7UCWe7BUyOdywWTRQxwJ1IeKp4=", "FdXpkNon6S3+9VyyTiNmt7SSU+VDRNzOX0XoEm2urHc="] {
        let refused = EnvelopeKey::ed25519(bare, long).unwrap_err();
        assert_eq!(refused, KeyError::Ambiguous);
        assert!(refused.to_string().contains("openssl genpkey -algorithm ed25519"), "{refused}");
    }
    let key = |id: &str| (id.to_owned(), secret("k"));
    assert_eq!(EnvelopeKeys::new("k", [key("k"), key("k")]).unwrap_err(), KeyError::Twice("k".into()));
    assert_eq!(EnvelopeKeys::new("k", [key("k.k")]).unwrap_err(), KeyError::Id("k.k".into()));
    assert_eq!(EnvelopeKeys::new("k2", [key("k")]).unwrap_err(), KeyError::Missing("k2".into()));
    let shown = format!("{:?} {:?}", keys(&["k1"]), ed25519(PRIVATE));
    assert!(shown.contains("Hmac(…)") && !shown.contains("secret"), "{shown}");
}
