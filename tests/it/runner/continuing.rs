//! Executions that continue the trace of their caller.

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::trace::Trace;
use toolgate::runner::{Fork, Report, Request};

use super::world::{World, given_an_agent, say};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The trace of a run's latest execution.
async fn trace_of(world: &World, report: &Report) -> Trace {
    world.runner.load(&report.run_id).await.unwrap().execution().1.clone()
}

#[tokio::test(start_paused = true)]
async fn executions_of_one_trace_share_its_context_but_no_span() {
    let world = given_an_agent().whose_model_says(json!([say("One."), say("Two.")])).ready().await;
    let mut remote = Trace::from_traceparent(PARENT).unwrap();
    assert!(remote.take_state("rojo=1"));
    remote.baggage = Some("user=ada".into());
    let request = || {
        let mut request = Request::new("clerk", "Hello");
        request.trace = Some(remote.clone());
        request
    };

    let first = world.runner.execute(request()).await.unwrap();
    let second = world.runner.execute(request()).await.unwrap();
    let (message, trace) = (Some(Message::user("And?")), Some(remote.clone()));
    let fork = world
        .runner
        .fork(&first.run_id, Fork { message, trace, ..Fork::default() })
        .await
        .unwrap()
        .until_idle()
        .await
        .unwrap();

    let mut roots = Vec::new();
    for report in [&first, &second, &fork] {
        let trace = trace_of(&world, report).await;
        roots.push(trace.span("the same"));
        assert_eq!(Trace { salt: None, ..trace }, remote);
    }
    assert!(roots[0] != roots[1] && roots[1] != roots[2] && roots[0] != roots[2], "{roots:?}");
}

#[tokio::test(start_paused = true)]
async fn baggage_alone_goes_along_with_a_trace_of_our_own() {
    let world = given_an_agent().whose_model_says(json!([say("One.")])).ready().await;
    let own = trace_of(&world, &world.run().await).await;
    let mut request = Request::new("clerk", "Hello");
    request.trace = Some(Trace { baggage: Some("user=ada".into()), ..Trace::new(own.id, false) });

    let report = world.runner.execute(request).await.unwrap();

    let carried = trace_of(&world, &report).await;
    assert_eq!((carried.parent, carried.baggage.as_deref(), carried.salt), (None, Some("user=ada"), None));
    assert_eq!(carried.sampled, own.sampled, "no other decision was made");
}
