//! Standing approvals.

use std::sync::Arc;

use toolgate::core::tool::ToolName;
use toolgate::ports::{ApprovalKey, Grant};

use super::Store;

fn key(session: &str, tool: &str, hash: &str) -> ApprovalKey {
    ApprovalKey { session: session.into(), tool: ToolName::parse(tool).unwrap(), hash: hash.to_owned() }
}

fn grant(key: ApprovalKey) -> Grant {
    Grant { key, by: "ada".to_owned() }
}

pub(crate) async fn a_grant_covers_exactly_its_key<S: Store>(store: Arc<S>) {
    store.grant(&grant(key("s", "mcp_disk_delete", "h"))).await.unwrap();
    let asked = [
        key("s", "mcp_disk_delete", "h"),
        key("other", "mcp_disk_delete", "h"),
        key("s", "mcp_disk_move", "h"),
        key("s", "mcp_disk_delete", "changed"),
    ];
    assert_eq!(store.granted(&asked).await.unwrap(), [true, false, false, false]);
}

pub(crate) async fn granting_twice_is_granting_once<S: Store>(store: Arc<S>) {
    let given = grant(key("s", "t", "h"));
    store.grant(&given).await.unwrap();
    store.grant(&given).await.unwrap();
    store.grant(&Grant { by: "bob".to_owned(), ..given.clone() }).await.unwrap();
    assert_eq!(store.granted(&[given.key]).await.unwrap(), [true]);
}

pub(crate) async fn a_batch_of_keys_is_answered_in_order<S: Store>(store: Arc<S>) {
    assert!(store.granted(&[]).await.unwrap().is_empty());
    let keys: Vec<_> = (0..300).map(|number| key("s '\"🦀", &format!("t{number}"), "[\"h\"]")).collect();
    for key in keys.iter().step_by(3) {
        store.grant(&grant(key.clone())).await.unwrap();
    }
    let mut asked = keys.clone();
    asked.extend(keys.into_iter().rev());
    let expected: Vec<_> = (0..300).chain((0..300).rev()).map(|number| number % 3 == 0).collect();
    assert_eq!(store.granted(&asked).await.unwrap(), expected);
}
