use toolgate::core::blob::BlobHandle;

use super::desk::{Desk, Ended};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const PAINTS: &str = "turns: [{ media: [{ media_type: image/png, data: iVBORw0KGgo= }] }]";

fn handle() -> String {
    BlobHandle::for_bytes(PNG).to_string()
}

fn painted() -> (Desk, Ended) {
    let desk = Desk::playing(PAINTS);
    let ended = desk.toolgate(&["run", "A cat"]).expect(0);
    (desk, ended)
}

#[test]
fn an_answer_of_a_picture_is_its_type_size_and_handle_with_the_command_that_saves_it() {
    let (desk, ended) = painted();
    assert_eq!(ended.out, format!("image/png, 8 bytes: {}\n", handle()));
    let command = ended.err.lines().skip_while(|line| *line != "save it with:").nth(1).unwrap().trim().to_owned();
    assert_eq!(command, format!("toolgate blobs save {}", handle()));
    let saved = desk.paste(&command).expect(0);
    let file = saved.err.trim_end().rsplit_once(' ').unwrap().1;
    assert!(saved.err.starts_with("saved image/png, 8 bytes, as ") && file.ends_with(".png"), "{}", saved.err);
    assert_eq!(std::fs::read(desk.path().join(file)).unwrap(), PNG);
}

#[test]
fn the_printed_command_finds_the_same_store_with_any_flags() {
    let desk = Desk::playing(PAINTS);
    std::fs::rename(desk.path().join("toolgate.yaml"), desk.path().join("my desk.yaml")).unwrap();
    let ended = desk.toolgate(&["run", "--config", "my desk.yaml", "--policy", "bypass", "A cat"]).expect(0);
    let command = ended.err.lines().last().unwrap().trim().to_owned();
    assert_eq!(command, format!("toolgate blobs save {} --config 'my desk.yaml'", handle()));
    desk.paste(&command).expect(0);
}

#[test]
fn an_existing_file_is_overwritten_only_with_force() {
    let (desk, _) = painted();
    desk.write("cat.png", "precious");
    let arguments = ["blobs", "save", &handle(), "--output", "cat.png"];
    let refused = desk.toolgate(&arguments).expect(2);
    assert!(refused.err.contains("cannot write `cat.png`") && refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(std::fs::read(desk.path().join("cat.png")).unwrap(), b"precious");
    desk.toolgate(&[&arguments[..], &["--force"]].concat()).expect(0);
    assert_eq!(std::fs::read(desk.path().join("cat.png")).unwrap(), PNG);
}

#[test]
fn a_dash_is_standard_output_and_nothing_is_added_to_the_bytes() {
    let (desk, _) = painted();
    let bare = handle().replace("media://", "");
    let output = desk.command(&["blobs", "save", &bare, "-o", "-"]).output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (PNG, &b""[..]));
}

#[test]
fn unknown_and_invalid_handles_have_different_errors() {
    let (desk, _) = painted();
    let nowhere = BlobHandle::for_bytes(b"something else").to_string();
    let missing = desk.toolgate(&["blobs", "save", &nowhere]).expect(2);
    assert!(missing.err.contains(&format!("there is no {nowhere} in the store")), "{}", missing.err);
    let wrong = desk.toolgate(&["blobs", "save", "../../etc/passwd"]).expect(2);
    assert!(wrong.err.contains("is no handle; one looks like media://sha256-"), "{}", wrong.err);
}

#[test]
fn programs_read_media_in_the_result_and_in_the_last_event() {
    let ended = Desk::playing(PAINTS).toolgate(&["run", "--json", "A cat"]).expect(0);
    let output = serde_json::json!({ "text": "", "value": null, "media": [{ "media_type": "image/png", "data": null, "url": handle() }] });
    let lines = ended.json_lines();
    let completed = lines.iter().find(|line| line["type"] == "execution.completed").unwrap();
    assert_eq!((&ended.result()["output"], &completed["output"]), (&output, &output));
    assert!(!ended.out.contains("iVBORw0KGgo"), "{}", ended.out);
}

#[test]
fn show_and_export_name_what_a_turn_produced_and_what_came_with_the_message() {
    let desk = Desk::playing(PAINTS);
    desk.write("notes.md", "Like this one.");
    desk.toolgate(&["run", "--attach", "notes.md", "A cat"]).expect(0);
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0);
    assert!(shown.out.contains(&format!("  image/png: {}", handle())), "{}", shown.out);
    assert!(shown.out.contains("> A cat\n> attached: notes.md\n"), "{}", shown.out);
    let told = desk.toolgate(&["runs", "export", "last", "--format", "text"]).expect(0);
    assert!(told.out.contains(&format!("(image/png: {})", handle())), "{}", told.out);
}

#[test]
fn attached_files_are_part_of_the_message() {
    let desk = Desk::playing("turns: [{ expect: { contains: 'Two weeks.' }, say: Fine. }]");
    desk.write("terms.txt", "Two weeks.");
    std::fs::write(desk.path().join("receipt"), PNG).unwrap();
    desk.toolgate(&["run", "--attach", "receipt", "--attach", "terms.txt", "Is it covered?"]).expect(0);
    let started = desk.journal("last").remove(0);
    let content = &started["input"]["content"];
    assert_eq!(content[0]["text"], "Is it covered?");
    assert_eq!(content[1], serde_json::json!({ "type": "image", "media_type": "image/png", "data": "iVBORw0KGgo=" }));
    assert_eq!((&content[2]["name"], &content[2]["media_type"]), (&"terms.txt".into(), &"text/plain".into()));
}

#[test]
fn a_file_that_cannot_be_attached_is_named_before_anything_runs() {
    let desk = Desk::playing(PAINTS);
    std::fs::write(desk.path().join("a.bin"), [0, 1, 2]).unwrap();
    desk.write("empty.txt", "");
    let large = std::fs::File::create(desk.path().join("large.txt")).unwrap();
    large.set_len(20 * 1024 * 1024 + 1).unwrap();
    for (file, why) in [
        ("a.bin", "none of these: an image"),
        ("empty.txt", "it is empty"),
        ("large.txt", "larger than 20 MiB"),
        ("missing.png", "cannot attach `missing.png`"),
    ] {
        let refused = desk.toolgate(&["run", "--attach", file, "x"]).expect(2);
        assert!(refused.err.contains(why) && refused.err.contains(file), "{file}: {}", refused.err);
    }
    assert_eq!(desk.toolgate(&["runs", "list"]).out, "");
}
