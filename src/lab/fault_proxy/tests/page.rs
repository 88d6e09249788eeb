//! The page of the faults, whose table is written from the rows, and the names that the fault server has too.

use std::fs;
use std::path::Path;

use crate::fault_proxy::{FaultTransport, kinds};

/// Faults that only the proxy has.
const OWN: [&str; 5] = ["malformed", "out-of-order", "rpc-error", "http-401", "http-429"];
const HEAD: &str = "| fault | transport | what happens | what a correct client does |\n|---|---|---|---|\n";

fn page(name: &str) -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn the_page_has_every_row() {
    let rows = kinds().map(|kind| {
        let transport = match kind.transport {
            FaultTransport::Both => "both",
            FaultTransport::Stdio => "stdio",
            FaultTransport::Http => "HTTP",
        };
        format!("| `{}` | {transport} | {} | {} |\n", kind.usage(), kind.effect, kind.client)
    });
    let table = HEAD.to_owned() + &rows.collect::<String>();
    let (path, text) = page("mcp-faults.md");
    let (before, rest) = text.split_once(HEAD).expect("the head of the table");
    let after: String = rest.split_inclusive('\n').skip_while(|line| line.starts_with('|')).collect();
    let expected = format!("{before}{table}{after}");
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(path, expected).unwrap();
    } else {
        assert_eq!(text, expected, "bless it with TOOLGATE_BLESS=1");
    }
}

#[test]
fn a_fault_of_the_fault_server_has_its_name_without_the_moment() {
    let (_, text) = page("fault-server.md");
    for kind in kinds().filter(|kind| !OWN.contains(&kind.name)) {
        let names = ["", "-at-call", "-call", "-in-call"].map(|moment| format!("| `{}{moment}", kind.name));
        let is_known = |name: &String| ["`", "["].iter().any(|end| text.contains(&format!("{name}{end}")));
        assert!(
            names.iter().any(is_known),
            "docs/fault-server.md has no `{}`; is it a fault of the proxy alone?",
            kind.name
        );
    }
}
