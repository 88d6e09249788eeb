//! Compensation over HTTP (row 3.49): a cancelled run shows what it undoes.

use reqwest::Method;
use serde_json::json;
use toolgate::core::tool::{Origin, Undo};

use super::served::Served;
use crate::runner::world::{Kept, given_an_agent};

#[tokio::test]
async fn row_3_49_a_cancelled_run_shows_what_it_undoes_and_ends() {
    let turns = json!([{"calls": [{"name": "mcp_shop_book"}]}, {"calls": [{"name": "ext_lookup"}]}]);
    let book = Origin::Mcp { server: "shop".into(), tool: "book".into() };
    let undo = Undo { tool: "unbook".into(), arguments: [("of".to_owned(), "/result".to_owned())].into() };
    let given = given_an_agent().with_tools("shop", &["book", "unbook"]).whose_model_says(turns).that(|agent| {
        agent.rules.compensate = true;
        agent.undos = [(book, undo)].into();
    });
    let served = Served::to_all(given.kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{run}");

    let cancelled = served.post(&format!("{path}/cancel"), json!({"reason": "enough"})).await;
    served.world.runner.resume_or_follow(&run.as_str().into()).await.unwrap().until_idle().await.unwrap();
    let over = served.get(&path).await;

    assert_eq!(cancelled.status.as_u16(), 200);
    assert_eq!(cancelled.body["compensation"]["undone"][0]["undoes"], "call_1_1");
    let undone = json!([{
        "undoes": "call_1_1", "call_id": "undo_call_1_1", "tool_name": "mcp_shop_unbook", "state": "undone",
        "reason": null
    }]);
    assert_eq!((over.text("status"), &over.body["compensation"]["undone"]), ("cancelled", &undone));
    let events = served.request(Method::GET, &format!("{path}/events?until=idle")).send().await.unwrap();
    let events = events.text().await.unwrap();
    assert!(events.contains("event: compensation.started"), "{events}");
}
