//! Bytes of each flaw, written out: in the answer of a call as the proxy sends it, and in answers of other forms.

use serde_json::{Value, json};

use crate::message_flaws::Flaw;

macro_rules! parts {
    () => {
        concat!(
            r#"[{"type":"text","text":"hello"},{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlE"#,
            r#"QVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==","mimeType":"image/png"}]"#
        )
    };
}

macro_rules! answer {
    () => {
        concat!(r#"{"jsonrpc":"2.0","id":3,"result":{"content":"#, parts!(), "}}")
    };
}

/// The answer of the server to the call with the id 3, with this flaw.
pub(super) fn answer_with(flaw: Flaw) -> Vec<u8> {
    let lines = |text: &[u8]| {
        [br#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"#, text, b"}]}}"].concat()
    };
    let value = |value: &str| {
        let before =
            concat!(r#"{"jsonrpc":"2.0","id":3,"result":{"content":"#, parts!(), r#","structuredContent":{"value":"#);
        [before, value, "}}}"].concat().into_bytes()
    };
    let text: &str = match flaw {
        Flaw::LoneSurrogate => return lines(br#""cut \ud83d""#),
        Flaw::Latin1 => return lines(b"\"caf\xe9\""),
        Flaw::Nan => return value("NaN"),
        Flaw::LargeNumber => return value("1e400"),
        Flaw::DeepNesting => return value(&("[".repeat(5000) + &"]".repeat(5000))),
        Flaw::Utf16 => return answer!().bytes().flat_map(|byte| [byte, 0]).collect(),
        Flaw::ResultAndError => concat!(
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":"#,
            parts!(),
            r#"},"error":{"code":-32000,"message":"and yet it failed"}}"#
        ),
        Flaw::ByteOrderMark => concat!("\u{feff}", answer!()),
        Flaw::Indented => INDENTED,
        Flaw::Batch => concat!(
            r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"one of a batch"}},"#,
            answer!(),
            "]"
        ),
        Flaw::SecondMessage => concat!(
            answer!(),
            r#" {"jsonrpc":"2.0","method":"notifications/message","#,
            r#""params":{"level":"info","data":"on the same line"}}"#
        ),
        Flaw::Truncated => concat!(
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hello"},{"type":"#,
            r#""image","data":"iVBORw0KGgoA"#
        ),
        Flaw::TextId => concat!(r#"{"jsonrpc":"2.0","id":"3","result":{"content":"#, parts!(), "}}"),
        Flaw::NoVersion => concat!(r#"{"id":3,"result":{"content":"#, parts!(), "}}"),
        Flaw::DuplicateKeys => {
            concat!(r#"{"id":"another","jsonrpc":"2.0","id":3,"result":{"content":"#, parts!(), "}}")
        }
        Flaw::NoId => concat!(r#"{"jsonrpc":"2.0","result":{"content":"#, parts!(), "}}"),
        Flaw::IdOnly => r#"{"jsonrpc":"2.0","id":3,"#,
        Flaw::ErrorNull => r#"{"jsonrpc":"2.0","id":3,"error":null}"#,
        Flaw::UnknownResultType => {
            concat!(r#"{"jsonrpc":"2.0","id":3,"result":{"content":"#, parts!(), r#","resultType":"later"}}"#)
        }
        Flaw::BehindLogPrefix => concat!("[INFO] answered with ", answer!()),
        Flaw::NoLineFeed => answer!(),
    };
    text.into()
}

const INDENTED: &str = r#"{
  "jsonrpc": "2.0",
  "id": 3,
  "result": {
    "content": [
      {
        "type": "text",
        "text": "hello"
      },
      {
        "type": "image",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "mimeType": "image/png"
      }
    ]
  }
}"#;

fn spoilt(flaw: Flaw, answer: &Value) -> String {
    String::from_utf8(flaw.spoil(answer)).unwrap()
}

#[test]
fn each_flaw_has_its_bytes() {
    let answer: Value = serde_json::from_str(answer!()).unwrap();
    for flaw in Flaw::ALL {
        assert_eq!(flaw.spoil(&answer), answer_with(*flaw), "{}", flaw.name());
    }
}

#[test]
fn a_flaw_of_a_value_is_in_a_handshake_and_in_a_list() {
    let handshake = json!({"id": 1, "result": {"capabilities": {}}});
    let with_number = r#"{"id":1,"result":{"capabilities":{"experimental":{"x":{"y":NaN}}}}}"#;
    assert_eq!(spoilt(Flaw::Nan, &handshake), with_number);
    let with_text = r#"{"id":1,"result":{"capabilities":{},"instructions":"cut \ud83d"}}"#;
    assert_eq!(spoilt(Flaw::LoneSurrogate, &handshake), with_text);
    let list = json!({"id": 1, "result": {"tools": [{"name": "echo"}]}});
    let with_number = r#"{"id":1,"result":{"tools":[{"name":"echo","inputSchema":{"default":1e400}}]}}"#;
    assert_eq!(spoilt(Flaw::LargeNumber, &list), with_number);
    let with_text = r#"{"id":1,"result":{"tools":[{"name":"echo","description":"cut \ud83d"}]}}"#;
    assert_eq!(spoilt(Flaw::LoneSurrogate, &list), with_text);
}

#[test]
fn only_flaws_of_a_result_leave_an_error_as_it_is() {
    let error = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "\"complete\""}});
    let unchanged = Flaw::ALL.iter().filter(|flaw| flaw.spoil(&error) == error.to_string().as_bytes());
    let names: Vec<_> = unchanged.map(|flaw| flaw.name()).collect();
    let of_a_result =
        ["lone-surrogate", "latin-1", "nan", "large-number", "deep-nesting", "unknown-result-type", "no-line-feed"];
    assert_eq!(names, of_a_result);
}

#[test]
fn a_result_type_is_replaced_and_no_text_of_the_content() {
    let answer = json!({"id": 1, "result": {"content": "complete", "resultType": "complete"}});
    let expected = r#"{"id":1,"result":{"content":"complete","resultType":"later"}}"#;
    assert_eq!(spoilt(Flaw::UnknownResultType, &answer), expected);
}

#[test]
fn a_truncated_answer_may_end_within_a_character() {
    let answer = json!({"d": "\u{20ac}".repeat(4)});
    assert_eq!(Flaw::Truncated.spoil(&answer), b"{\"d\":\"\xe2\x82\xac\xe2");
}
