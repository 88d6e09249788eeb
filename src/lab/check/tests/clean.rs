//! Servers without a mistake: the check is green, and its report has the facts.

use toolgate_settings::mcp::ProtocolVersionChoice::{Legacy, Modern};

use super::harness::{How, check_server, check_versions, lines, serious};
use crate::check::Revision;

#[tokio::test]
async fn a_clean_server_has_no_warning_over_stdio() {
    let report = check_server(&[], How::Stdio).await;
    assert!(serious(&report).is_empty() && report.failure.is_none(), "{}{:?}", lines(&report), report.failure);
    assert_eq!(report.revisions, Revision::ALL[..4]);
    assert_eq!(report.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["add", "echo", "slow"]);
    assert!(report.tokens > 100 && report.timings.first_byte_ms.is_some() && report.timings.memory_bytes.is_some());
    assert!(report.timings.shutdown.as_ref().is_some_and(|shutdown| shutdown.after_end_of_input_ms.is_some()));
}

#[tokio::test]
async fn a_clean_server_has_no_warning_when_its_tools_are_called() {
    let report = check_server(&[], How::Calls).await;
    assert!(serious(&report).is_empty(), "{}", lines(&report));
    let calls = report.calls.unwrap();
    assert!(calls.called.iter().all(|call| call.succeeded) && calls.called.len() == 3, "{calls:?}");
    assert_eq!(
        calls.load.iter().map(|row| (row.concurrency, row.errors)).collect::<Vec<_>>(),
        [(1, 0), (8, 0), (32, 0)]
    );
}

#[tokio::test]
async fn clean_servers_of_both_eras_have_no_warning() {
    for (flaws, revisions) in [(&["--modern"][..], 5), (&["--modern-only"], 1)] {
        for how in [How::Stdio, How::Http] {
            let report = check_server(flaws, how).await;
            assert!(serious(&report).is_empty(), "{flaws:?} {how:?}\n{}", lines(&report));
            assert_eq!(report.revisions.len(), revisions, "{flaws:?} {how:?} {:?}", report.negotiations);
        }
    }
}

#[tokio::test]
async fn a_clean_server_has_no_warning_over_http() {
    let report = check_server(&[], How::Http).await;
    assert!(serious(&report).is_empty(), "{}", lines(&report));
    assert_eq!(report.revisions, Revision::ALL[..4]);
}

#[tokio::test]
async fn only_the_selected_versions_are_probed() {
    for (versions, revisions) in [(Legacy, &Revision::ALL[..4]), (Modern, &Revision::ALL[4..])] {
        let report = check_versions(&["--modern"], versions).await;
        assert_eq!(report.revisions, revisions, "{}", lines(&report));
    }
    let report = check_versions(&[], Modern).await;
    assert!(report.failure.is_some_and(|failure| failure.contains("-32601")));
    let report = check_versions(&["discover-dies"], Legacy).await;
    assert!(serious(&report).is_empty(), "{}", lines(&report));
}
