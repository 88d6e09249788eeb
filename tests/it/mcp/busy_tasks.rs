//! Tasks of servers that are busy for a moment: a transient error does not end a task.

use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::tool::{CallReply, FailureKind, TaskHandle};
use toolgate::mcp::Servers;
use toolgate::ports::{McpServers as _, McpTask, TaskAction};

use super::elicitation::{answered, asked, ended, name, send};
use super::support::*;

fn task(reply: CallReply) -> TaskHandle {
    match reply {
        CallReply::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

async fn news(servers: &Servers, task: &TaskHandle) -> Result<CallReply, String> {
    let (run, call, server) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("clerk"));
    let (trace, action) = (trace(), TaskAction::Poll);
    let told = servers
        .task(McpTask { run: &run, call: &call, server: &server, tool: "act", task, trace: &trace, action })
        .await;
    told.map(|replied| replied.reply)
}

#[tokio::test]
async fn an_error_that_is_not_about_the_task_does_not_end_it() {
    for (code, is_gone) in [(-32000, false), (-32603, false), (-32001, false), (-32602, true), (-32601, true)] {
        let servers = servers([("clerk", python("clerk.py", &[&format!("tasks/get={code}")]))]);
        let started = task(send(&servers, "clerk", "act", None).await);
        let said = news(&servers, &started).await;
        if is_gone {
            assert_eq!(failed(ended(said.expect("it is known"))).0, FailureKind::Unavailable, "{code}");
        } else {
            let why = said.expect_err("the state is unknown");
            assert!(why.contains("busy, try again"), "{why}");
            task(news(&servers, &started).await.expect("it answers again"));
        }
        servers.close().await;
    }
}

#[tokio::test]
async fn a_task_whose_answers_could_not_be_sent_asks_again() {
    for code in [-32603, -32602] {
        let servers = servers([("clerk", python("clerk.py", &["asks", &format!("tasks/update={code}")]))]);
        let started = task(send(&servers, "clerk", "act", None).await);
        let needed = asked(news(&servers, &started).await.expect("news"));
        let answers = answered(needed.clone(), &name("Ada"));
        let untold = task(send(&servers, "clerk", "act", Some(&answers)).await);
        let why = untold.message.clone().expect("a reason");
        assert!(untold.id == started.id && why.contains("the answers could not be sent"), "{why}");
        assert_eq!(asked(news(&servers, &untold).await.expect("news")).questions, needed.questions);
        task(send(&servers, "clerk", "act", Some(&answers)).await);
        assert_eq!(text(ended(news(&servers, &untold).await.expect("news"))), "done");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_task_survives_a_server_that_is_unreachable_for_its_answers() {
    let before = servers([("clerk", python("clerk.py", &["asks"]))]);
    let started = task(send(&before, "clerk", "act", None).await);
    let answers = answered(asked(news(&before, &started).await.expect("news")), &name("Ada"));
    before.close().await;
    let away = servers([("clerk", python("dies.py", &[]))]);
    let untold = task(send(&away, "clerk", "act", Some(&answers)).await);
    assert_eq!(untold.id, started.id);
    away.close().await;
}
