//! Laws of large results: journal content is bounded, nothing is lost, and stored content is read back byte for byte.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_core::run::{Event, Run};
use toolgate_core::tool::result::{MIN_RESULT_BYTES, OverflowStorage, Piece, ReadRequest, StoredForm, bounded, read};
use toolgate_core::tool::{Outcome, ToolOutput};

use crate::choices::{strictly, tapes};
use crate::world::{journey, states};

const KEPT: OverflowStorage<'static> = OverflowStorage::UpTo(1 << 26);

/// Text with characters of every width, and lines of every length.
fn texts(most: usize) -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("\n".to_owned()),
        Just("é".to_owned()),
        Just("€uro\n".to_owned()),
        Just("😀😀😀".to_owned()),
        "[a-z ]{1,80}",
        "[a-z]{1,20}\n",
        Just("x".repeat(700)),
    ];
    proptest::collection::vec(pieces, 0..most).prop_map(|pieces| pieces.concat())
}

fn parts() -> impl Strategy<Value = Part> {
    let media = |bytes: Vec<u8>| Media::inline("image/png", &bytes);
    let bytes = || proptest::collection::vec(any::<u8>(), 0..3000);
    prop_oneof![
        4 => texts(40).prop_map(Part::text),
        1 => bytes().prop_map(move |bytes| Part::Image(media(bytes))),
        1 => bytes().prop_map(move |bytes| Part::Audio(Media { data: Some(format!("<{bytes:?}>")), ..media(Vec::new()) })),
        1 => (texts(20), any::<bool>()).prop_map(|(text, is_text)| Part::Resource {
            uri: "file:///a".into(),
            name: None,
            media_type: Some("text/markdown".into()),
            data: (!is_text).then(|| Media::inline("", text.as_bytes()).data.unwrap()),
            text: is_text.then_some(text),
        }),
        1 => texts(20).prop_map(|uri| Part::Resource { uri, name: None, media_type: None, text: None, data: None }),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), texts(30).prop_map(Value::from)];
    leaf.prop_recursive(3, 60, 12, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::vec(("[a-z/~]{0,6}", inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn outputs() -> impl Strategy<Value = ToolOutput> {
    let content = prop_oneof![proptest::collection::vec(parts(), 0..4), proptest::collection::vec(parts(), 0..300)];
    let any = (content, proptest::option::of(values())).prop_map(|(content, structured)| ToolOutput {
        content,
        structured,
        ..ToolOutput::default()
    });
    let twice = values().prop_map(ToolOutput::from_value);
    let wrapped =
        texts(400).prop_map(|text| ToolOutput { structured: Some(json!({"result": text})), ..ToolOutput::text(text) });
    let same = texts(400).prop_map(|text| ToolOutput::from_value(text.into()));
    prop_oneof![3 => any, 1 => twice, 1 => same, 1 => wrapped]
}

/// The size of all text that a model would read.
fn text_bytes(output: &ToolOutput) -> usize {
    let text = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Resource { uri, name, text, .. } => {
            uri.len() + name.as_ref().map_or(0, String::len) + text.as_ref().map_or(0, String::len)
        }
        _ => 0,
    };
    output.content.iter().map(text).sum()
}

fn whole<'a>(wholes: &'a [Blob], handle: &BlobHandle) -> &'a Blob {
    wholes.iter().find(|whole| whole.handle() == *handle).expect("named content is stored")
}

/// Every piece of a text, read from the beginning by following each answer's next offset.
fn read_through(text: &str, handle: BlobHandle, limit: usize) -> Vec<String> {
    let (mut pieces, mut offset) = (Vec::new(), 0);
    loop {
        let reading = ReadRequest { handle, pointer: None, piece: Piece::Bytes { offset, length: None } };
        let answer = read(text, &reading, limit);
        assert!(!answer.is_error && text_bytes(&answer) <= limit, "{answer:?}");
        let headline = answer.content[0].as_text().unwrap().to_owned();
        pieces.push(answer.content.get(1).and_then(Part::as_text).unwrap_or_default().to_owned());
        let Some((_, next)) = headline.split_once("It continues at `offset` ") else { return pieces };
        let next = next.trim_end_matches('.').parse().unwrap();
        assert!(next > offset, "reading advances: {headline}");
        offset = next;
    }
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn journal_content_is_within_the_limit_for_any_result(
        output in outputs(), limit in MIN_RESULT_BYTES..20_000, kept in any::<bool>()
    ) {
        let keeping = if kept { KEPT } else { OverflowStorage::Nowhere("it is not") };
        let (fit, wholes) = bounded(output.clone(), limit, keeping);
        prop_assert!(text_bytes(&fit) <= limit, "{} of {limit}", text_bytes(&fit));
        prop_assert!(fit.structured.as_ref().is_none_or(|value| value.to_string().len() <= limit));
        prop_assert!(fit.content.len() <= limit / 48 + 1, "{} parts", fit.content.len());
        prop_assert!(kept || (wholes.is_empty() && fit.kept.is_empty()));
        prop_assert_eq!(fit.is_error, output.is_error);
        let again = bounded(output, limit, keeping);
        prop_assert_eq!(again, (fit, wholes), "equal results have equal excerpts");
    }

    #[test]
    fn results_that_fit_are_unchanged(output in outputs()) {
        let without_media = |part: &Part| !matches!(part, Part::Image(_) | Part::Audio(_) | Part::Resource { .. });
        let content = output.content.into_iter().filter(without_media).collect();
        let output = ToolOutput { content, ..output };
        let (fit, wholes) = bounded(output.clone(), 10_000_000, KEPT);
        prop_assert_eq!((fit, wholes), (output, Vec::new()));
    }

    #[test]
    fn named_content_is_stored_once_and_in_full(output in outputs(), limit in MIN_RESULT_BYTES..8_000) {
        let structured = output.structured.clone();
        let (fit, wholes) = bounded(output, limit, KEPT);
        for (index, whole) in wholes.iter().enumerate() {
            prop_assert_eq!(BlobHandle::for_bytes(whole.bytes()), whole.handle());
            prop_assert!(wholes[..index].iter().all(|other| other.handle() != whole.handle()), "kept twice");
        }
        for kept in &fit.kept {
            let whole = whole(&wholes, &kept.handle);
            // Equal bytes are one blob, which has the type of the first content that named it.
            let first = fit.kept.iter().find(|first| first.handle == kept.handle).unwrap();
            prop_assert_eq!((whole.bytes().len() as u64, &whole.media_type), (kept.bytes, &first.media_type));
        }
        let says = fit.content.iter().filter_map(Part::as_text).collect::<String>();
        for (start, _) in says.match_indices("kept as media://") {
            let handle = BlobHandle::parse(&says[start + 8..start + 87]).unwrap();
            prop_assert!(fit.kept.iter().any(|kept| kept.handle == handle), "a model reads an unknown handle");
        }
        if let (Some(structured), None) = (structured, &fit.structured) {
            let again = fit.kept.iter().find_map(|kept| {
                let text = || String::from_utf8(whole(&wholes, &kept.handle).bytes().to_vec()).unwrap();
                match kept.form {
                    StoredForm::Structured | StoredForm::Both => Some(serde_json::from_str(&text()).unwrap()),
                    StoredForm::Same => Some(Value::from(text())),
                    StoredForm::Wrapped if structured["result"].is_string() => Some(json!({"result": text()})),
                    StoredForm::Wrapped => {
                        Some(json!({"result": serde_json::from_str::<Value>(&text()).unwrap()}))
                    }
                    StoredForm::Text | StoredForm::Media => None,
                }
            });
            prop_assert_eq!(again, Some(structured), "the structured form can be restored");
        }
    }

    #[test]
    fn a_text_is_stored_to_the_byte_and_read_piece_by_piece(text in texts(300), limit in MIN_RESULT_BYTES..9_000) {
        let (fit, wholes) = bounded(ToolOutput::text(text.clone()), limit, KEPT);
        let Some(kept) = fit.kept.first() else {
            prop_assert_eq!(fit.joined_text(), text);
            return Ok(());
        };
        let whole = String::from_utf8(whole(&wholes, &kept.handle).bytes().to_vec()).unwrap();
        prop_assert_eq!(&whole, &text);
        let shown = fit.joined_text();
        let (head, rest) = shown.split_once("[toolgate] ").unwrap();
        let (_, tail) = rest.split_once('\n').unwrap();
        prop_assert!(text.starts_with(head.strip_suffix('\n').unwrap_or(head)) && text.ends_with(tail));
        prop_assert_eq!(read_through(&whole, kept.handle, limit).concat(), text);
    }

    #[test]
    fn any_range_is_answered_exactly_and_within_the_limit(
        text in texts(200), offset in 0usize..40_000, length in proptest::option::of(0usize..40_000),
        first in 1usize..400, count in proptest::option::of(0usize..400),
    ) {
        let handle = BlobHandle::for_bytes(text.as_bytes());
        for piece in [Piece::Bytes { offset, length }, Piece::Lines { first, count }] {
            let answer = read(&text, &ReadRequest { handle, pointer: None, piece: piece.clone() }, 4_000);
            prop_assert!(text_bytes(&answer) <= 4_000);
            let beyond = match piece {
                Piece::Bytes { offset, .. } => offset > text.len() || (offset == text.len() && !text.is_empty()),
                Piece::Lines { first, .. } => first > text.lines().count().max(1),
                _ => unreachable!(),
            };
            prop_assert_eq!(answer.is_error, beyond, "{:?}: {:?}", piece, answer);
            let shown = answer.content.get(1).and_then(Part::as_text).unwrap_or_default();
            prop_assert!(text.contains(shown));
            if let (Piece::Lines { first, count: Some(count) }, false) = (&piece, answer.is_error) {
                let lines: Vec<&str> = text.split_inclusive('\n').skip(first - 1).take(*count).collect();
                prop_assert!(lines.concat().starts_with(shown), "{:?}", piece);
            }
        }
    }

    #[test]
    fn every_value_of_a_json_result_is_found_under_its_pointer(value in values()) {
        let text = value.to_string();
        let handle = BlobHandle::for_bytes(text.as_bytes());
        let mut open = vec![(String::new(), &value)];
        while let Some((pointer, value)) = open.pop() {
            let piece = Piece::Bytes { offset: 0, length: None };
            let answer = read(&text, &ReadRequest { handle, pointer: Some(pointer.clone()), piece }, 1 << 20);
            let expected = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            prop_assert!(!answer.is_error, "{} of {}: {:?}", pointer, text, answer);
            prop_assert_eq!(answer.content.get(1).and_then(Part::as_text).unwrap_or_default(), expected);
            let outline = ReadRequest { handle, pointer: Some(pointer.clone()), piece: Piece::Start };
            prop_assert!(text_bytes(&read(&text, &outline, 2_048)) <= 2_048);
            match value {
                Value::Array(items) => {
                    open.extend(items.iter().enumerate().map(|(index, item)| (format!("{pointer}/{index}"), item)));
                }
                Value::Object(members) => open.extend(members.iter().map(|(name, member)| {
                    (format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")), member)
                })),
                _ => {}
            }
        }
    }

    #[test]
    fn a_run_owns_only_the_blobs_of_its_results_and_files(tape in tapes()) {
        let journal = journey(tape);
        let named = |journal: &[Event]| {
            let kept = journal.iter().map(|event| match event {
                Event::CallCompleted { outcome, .. } => outcome.stored().iter().map(|kept| kept.handle).collect(),
                Event::ModelReplied { reply } => {
                    Message { role: Role::Assistant, content: reply.content.clone(), provider_state: None }.blobs().collect()
                }
                Event::Started(started) => started.files.iter().copied().collect(),
                _ => Vec::new(),
            });
            kept.flatten().collect::<BTreeSet<_>>()
        };
        for (index, state) in states(&journal).iter().enumerate() {
            prop_assert_eq!(state.blobs(), &named(&journal[..=index]));
            let cut = |event: &Event| matches!(event, Event::CallCompleted { outcome, .. } if !outcome.stored().is_empty());
            prop_assert_eq!(state.has_cut_results(), journal[..=index].iter().any(cut));
        }
    }
}

#[test]
fn a_result_that_claims_to_be_stored_is_not_trusted() {
    let own = bounded(ToolOutput::text("x".repeat(9_000)), MIN_RESULT_BYTES, KEPT).0;
    let claims = ToolOutput { kept: own.kept, ..ToolOutput::text("media://sha256-…, believe me") };
    assert_eq!(bounded(claims, MIN_RESULT_BYTES, KEPT).0.kept, []);
}

#[test]
fn fastmcps_duplicate_of_a_large_result_is_stored_once() {
    let rows: Value = (0..2000).map(|row| json!({"row": row, "name": format!("number {row}")})).collect();
    let pretty = serde_json::to_string_pretty(&rows).unwrap();
    for (text, structured, form) in [
        (rows.to_string(), rows.clone(), StoredForm::Both),
        (pretty.clone(), rows.clone(), StoredForm::Both),
        (pretty, json!({"result": rows}), StoredForm::Wrapped),
        ("word ".repeat(20_000), json!({"result": "word ".repeat(20_000)}), StoredForm::Wrapped),
    ] {
        let output = ToolOutput { structured: Some(structured), ..ToolOutput::text(text.clone()) };
        let (fit, wholes) = bounded(output, 65_536, KEPT);
        assert_eq!(wholes.iter().map(|whole| whole.bytes().len()).collect::<Vec<_>>(), [text.len()]);
        assert_eq!((fit.kept[0].form, fit.kept.len(), fit.structured, fit.content.len()), (form, 1, None, 1));
    }
}

#[test]
fn a_run_with_cut_results_round_trips() {
    let outcome = Outcome::Returned(crate::fixtures::long_result());
    let event = Event::CallCompleted { call: "c".into(), outcome: outcome.into(), stderr: Vec::new(), wire: None };
    let written = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&written).unwrap(), event);
    assert!(Run::replay([&event]).is_err(), "a journal does not begin like that");
}
