use super::*;
use serde_json::json;

fn reading(arguments: Value) -> Result<ReadRequest, String> {
    let mut arguments = arguments.as_object().unwrap().clone();
    arguments.entry("handle").or_insert(json!(BlobHandle::for_bytes(b"")));
    ReadRequest::parse(&arguments)
}

fn answer(text: &str, arguments: Value) -> Vec<String> {
    let output = read(text, &reading(arguments).unwrap(), 4096);
    let mut shown: Vec<String> = output.content.iter().filter_map(Part::as_text).map(str::to_owned).collect();
    shown.extend(output.is_error.then(|| "(error)".to_owned()));
    shown
}

#[test]
fn an_answer_states_its_range_and_the_next_offset() {
    let text: String = (1..=2000).map(|line| format!("line {line}\n")).collect();
    assert_eq!(
        answer(&text, json!({"line": 3, "lines": 2})),
        [
            "[toolgate] Bytes 14 to 28 of it, 18893 bytes in 2000 lines; lines 3 to 4. It continues at `offset` 28.",
            "line 3\nline 4\n"
        ]
    );
    assert_eq!(
        answer(&text, json!({"line": 2000})),
        [
            "[toolgate] Bytes 18883 to 18893 of it, 18893 bytes in 2000 lines; lines 2000 to 2000. This is the end.",
            "line 2000\n"
        ]
    );
    let from_the_start = answer(&text, json!({}));
    assert!(from_the_start[1].starts_with("line 1\n") && from_the_start[1].ends_with('\n'), "whole lines");
    assert!(from_the_start[1].len() > 3000, "as much as fits");
    assert_eq!(answer(&text, json!({"offset": 7, "length": 6}))[1], "line 2");
}

#[test]
fn an_excessive_line_count_reads_to_the_end() {
    for arguments in [json!({"line": 2, "lines": usize::MAX}), json!({"offset": 4, "length": usize::MAX})] {
        assert_eq!(answer("one\ntwo\n", arguments)[1], "two\n");
    }
    assert_eq!(
        answer("one", json!({"line": usize::MAX, "lines": usize::MAX})),
        [format!("Line {} is beyond the end: it has 3 bytes in 1 line.", usize::MAX), "(error)".into()]
    );
}

#[test]
fn a_range_beyond_the_end_is_answered_with_the_size() {
    assert_eq!(
        answer("one\ntwo\n", json!({"line": 3})),
        ["Line 3 is beyond the end: it has 8 bytes in 2 lines.", "(error)"]
    );
    assert_eq!(answer("one", json!({"offset": 9})), ["Byte 9 is beyond the end: it has 3 bytes in 1 line.", "(error)"]);
    assert_eq!(
        answer(r#"{"a": "one"}"#, json!({"pointer": "/a", "offset": 3})),
        ["Byte 3 is beyond the end: `/a` (a string) has 3 bytes in 1 line.", "(error)"]
    );
}

#[test]
fn a_pointer_reads_a_value_and_a_large_one_is_outlined() {
    let text = json!({"orders": vec![json!({"id": 7}); 900], "note": "two\nlines"}).to_string();
    assert_eq!(answer(&text, json!({"pointer": "/note"}))[1], "two\nlines");
    assert_eq!(answer(&text, json!({"pointer": "/orders/899/id"}))[1], "7");
    let outline = answer(&text, json!({"pointer": ""}));
    assert_eq!(outline[1], "/orders: an array of 900, 8101 bytes\n/note: a string, 12 bytes\n");
    assert!(outline[0].starts_with("[toolgate] the root (an object of 2) has "), "{outline:?}");
    assert_eq!(answer(&text, json!({"pointer": "/orders", "offset": 0, "length": 9}))[1], r#"[{"id":7}"#);
    assert_eq!(answer(&text, json!({"pointer": "/note", "search": "lines"}))[1], "line 2, byte 4: lines\n");
}

#[test]
fn a_pointer_into_plain_text_is_answered_with_alternatives() {
    let shown = answer("plain text", json!({"pointer": "/a"}));
    assert!(shown[0].starts_with("It is not JSON (expected"), "{shown:?}");
    assert!(shown[0].ends_with("): read it by `offset`, `line` or `search`."), "{shown:?}");
}

#[test]
fn a_search_that_finds_nothing_says_so() {
    assert_eq!(
        answer("hay", json!({"search": "needle"})),
        ["[toolgate] `needle` does not occur in it; 3 bytes in 1 line."]
    );
}

#[test]
fn a_contradictory_request_is_answered_with_a_valid_one() {
    for (arguments, complaint) in [
        (json!({"handle": "x"}), "`x` is no handle; one looks like media://sha256- and 64 hex digits"),
        (json!({"handle": null}), "`handle` is missing: name what to read, as the result named it"),
        (json!({"offset": 1, "line": 1}), "say `offset` and `length`, or `line` and `lines`, not both"),
        (json!({"search": "a", "line": 1}), "`search` goes with `offset` alone, from where it looks"),
        (json!({"search": ""}), "`search` is empty: say what to look for"),
        (json!({"line": 0}), "lines are counted from 1"),
        (json!({"offset": -1}), "`offset` has to be a whole number, 0 or more"),
        (json!({"pointer": 7}), "`pointer` has to be a string"),
    ] {
        assert_eq!(reading(arguments), Err(complaint.to_owned()));
    }
}
