use super::*;
use serde_json::json;

const KEPT: OverflowStorage<'static> = OverflowStorage::UpTo(1 << 20);

fn texts(output: &ToolOutput) -> Vec<&str> {
    output.content.iter().filter_map(Part::as_text).collect()
}

#[test]
fn only_long_texts_are_cut() {
    let long: String = (0..3000).map(|line| format!("line {line}\n")).collect();
    let content = vec![Part::text("a summary"), Part::text(long.clone()), Part::text("the end")];
    let (fit, wholes) = bounded(ToolOutput { content, ..ToolOutput::default() }, 4096, KEPT);
    let shown = texts(&fit);
    assert_eq!((shown[0], shown[2], shown.len()), ("a summary", "the end", 3));
    assert!(shown[1].starts_with("line 0\nline 1\n") && shown[1].ends_with("line 2999\n"));
    assert_eq!((wholes.len(), wholes[0].bytes()), (1, long.as_bytes()));
}

#[test]
fn thousands_of_small_parts_become_one_text() {
    let content = (0..5000).map(|part| Part::text(format!("part {part}"))).collect();
    let (fit, wholes) = bounded(ToolOutput { content, ..ToolOutput::default() }, 4096, KEPT);
    assert_eq!((fit.content.len(), wholes.len()), (1, 1));
    assert!(texts(&fit)[0].starts_with("part 0\npart 1\n") && texts(&fit)[0].ends_with("part 4999"));
    assert!(wholes[0].bytes().starts_with(b"part 0\npart 1\npart 2\n"));
}

#[test]
fn images_are_stored_and_invalid_ones_are_reported() {
    let picture = Part::Image(Media::inline("image/png", b"a picture"));
    let broken = Part::Image(Media { media_type: "image/png".into(), data: Some("<html>".into()), url: None });
    let large = Part::Audio(Media::inline("audio/wav", &vec![0; (1 << 20) + 1]));
    let output = ToolOutput { content: vec![picture.clone(), broken, large], ..ToolOutput::default() };
    let (fit, wholes) = bounded(output.clone(), 4096, KEPT);
    let (picture_at, broken_at) = (BlobHandle::for_bytes(b"a picture"), BlobHandle::for_bytes(b"<html>"));
    assert_eq!(fit.content[0], Part::Image(Media::at("image/png", picture_at.to_string())));
    assert_eq!(
        texts(&fit),
        [
            &format!("[toolgate] The data of image/png is not base64; the original is kept as {broken_at}."),
            "[toolgate] audio/wav of 1048577 bytes is not kept: the limit is 1 MiB.",
        ]
    );
    assert_eq!(wholes.iter().map(Blob::handle).collect::<Vec<_>>(), [picture_at, broken_at]);
    let nowhere = bounded(output.clone(), 4096, OverflowStorage::Nowhere("why not"));
    assert_eq!(nowhere, (output, Vec::new()), "without a store they stay in place");
}

#[test]
fn media_are_dropped_and_reported_if_the_store_failed() {
    let picture = Part::Image(Media::inline("image/png", b"a picture"));
    let broken = Part::Image(Media { media_type: "image/png".into(), data: Some("<html>".into()), url: None });
    let output = ToolOutput { content: vec![picture, broken], ..ToolOutput::default() };
    let (fit, wholes) = bounded(output, 4096, OverflowStorage::Failed("the store is away"));
    assert_eq!(
        texts(&fit),
        [
            "[toolgate] image/png of 9 bytes is not kept: the store is away.",
            "[toolgate] The data of image/png is not base64; the original is not kept: the store is away.",
        ]
    );
    assert_eq!((wholes, fit.kept, fit.content.len()), (Vec::new(), Vec::new(), 2));
}

#[test]
fn a_structured_form_nested_too_deep_is_stored() {
    let deep = |levels: usize| (0..levels).fold(json!(7), |inner, _| json!([inner]));
    let bound = |levels| {
        let output = ToolOutput { structured: Some(deep(levels)), ..ToolOutput::text("deep") };
        bounded(output, 4096, KEPT)
    };
    let (fit, wholes) = bound(json::MAX_DEPTH);
    assert_eq!((fit.structured, wholes), (Some(deep(json::MAX_DEPTH)), Vec::new()));
    let (fit, wholes) = bound(json::MAX_DEPTH + 1);
    assert_eq!((&fit.structured, wholes.len(), fit.kept[0].form), (&None, 1, StoredForm::Structured));
}

#[test]
fn a_large_structured_form_beside_a_short_text_is_named_in_the_text() {
    let structured = json!({"rows": vec!["row"; 2000]});
    let output = ToolOutput { structured: Some(structured.clone()), ..ToolOutput::text("2000 rows") };
    let (fit, wholes) = bounded(output, 4096, KEPT);
    let json = structured.to_string();
    let expected = format!(
        "[toolgate] The structured form of this result, {} bytes of JSON, is kept as {}; `result_read` reads any part of it.",
        json.len(),
        BlobHandle::for_bytes(json.as_bytes())
    );
    assert_eq!((texts(&fit), &fit.structured), (vec!["2000 rows", &expected], &None));
    assert_eq!((wholes[0].bytes(), &*wholes[0].media_type), (json.as_bytes(), "application/json"));
}

#[test]
fn without_a_store_the_result_says_so_and_names_no_handle() {
    let output = ToolOutput { structured: Some(json!("x".repeat(9000))), ..ToolOutput::text("y".repeat(9000)) };
    let (fit, wholes) = bounded(output, 4096, OverflowStorage::Nowhere("there is no place"));
    let shown = texts(&fit).concat();
    assert!(shown.contains("are left out here, and are not kept: there is no place."), "{shown}");
    assert!(shown.ends_with("9002 bytes of JSON, is not kept: there is no place."), "{shown}");
    assert_eq!((wholes, fit.kept, shown.contains("media://")), (Vec::new(), Vec::new(), false));
}

#[test]
fn content_above_the_limit_of_the_store_is_cut() {
    let (fit, wholes) = bounded(ToolOutput::text("y".repeat((1 << 20) + 1)), 4096, KEPT);
    assert!(texts(&fit)[0].contains("are not kept: it is more than a store keeps, which is 64 MiB."));
    assert_eq!((wholes, fit.kept), (Vec::new(), Vec::new()));
}
