use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;

fn values<const N: usize>(values: [&str; N]) -> Secrets {
    SecretsBuilder::of_values(values).build(Style::MESSAGE)
}

fn credential(text: &str) -> Secrets {
    let mut secrets = SecretsBuilder::default();
    secrets.credential(text);
    secrets.build(Style::MESSAGE)
}

fn named(name: &str, value: &str) -> Secrets {
    let mut secrets = SecretsBuilder::default();
    secrets.named(name, value);
    secrets.build(Style::MESSAGE)
}

fn address(address: &str) -> Secrets {
    let mut secrets = SecretsBuilder::default();
    secrets.address(address);
    secrets.build(Style::MESSAGE)
}

#[test]
fn each_line_of_a_value_is_a_secret() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\r\nkqhkiG9w0BAQEF==\n-----END KEY-----\n";
    let printed_at_once = key.replace('\n', "\\n");
    for secrets in [values([key]), values([&printed_at_once])] {
        for line in ["MIIEvQIBADANBg", "kqhkiG9w0BAQEF=="] {
            assert_eq!(secrets.redacted(&format!("key: {line}.")), "key: [redacted].");
        }
        assert!(!secrets.redacted(&printed_at_once).contains("MIIEvQ"));
    }
    assert_eq!(values(["short 1\nshort 2"]).redacted("short 1, short 1\nshort 2"), "short 1, [redacted]");
}

#[test]
fn a_secret_that_begins_with_another_or_overlaps_it_is_taken_out_whole() {
    let secrets = values(["sk-01234", "sk-0123456789", "6789-and-on"]);
    for (line, expected) in [
        ("a sk-0123456789 b", "a [redacted] b"),
        ("a sk-01234 b", "a [redacted] b"),
        ("a sk-0123456789-and-on b", "a [redacted] b"),
        ("sk-01234sk-01234", "[redacted][redacted]"),
    ] {
        assert_eq!(secrets.redacted(line), expected);
    }
}

#[test]
fn the_beginning_of_a_secret_in_an_unfinished_line_is_redacted() {
    let secrets = values(["sk-0123456789"]);
    assert_eq!(secrets.redacted_so_far("KEY=sk-01234"), "KEY=[redacted]");
    assert_eq!(secrets.redacted_so_far("a mask-"), "a mask-", "too little to tell");
    assert_eq!(secrets.redacted_so_far("sk-0123456789 sk-0123"), "[redacted] [redacted]");
}

#[test]
fn parts_of_a_secret_beside_an_omission_are_redacted() {
    let secrets = values(["sk-0123456789"]);
    for (text, expected) in [
        ("it is no JSON: `{key: sk-01234...`", "it is no JSON: `{key: [redacted]...`"),
        ("`{...456789}, {...`", "`{...[redacted]}, {...`"),
        ("`sk-...789`", "`sk-...789`"),
        ("sk-01.....6789", "[redacted].....[redacted]"),
        ("sk-01…6789", "[redacted]…[redacted]"),
    ] {
        assert_eq!(secrets.redacted(text), expected);
    }
    let secrets = credential("sk-proj-abcdefghijklwxyz");
    assert_eq!(secrets.redacted("sk-proj-abcd********wxyz"), "[redacted]********[redacted]");
}

#[test]
fn no_cut_goes_through_a_secret() {
    let secrets = values(["sk-0123456789"]);
    let text = b"1234567 sk-0123456789 890";
    let cuts: Vec<usize> = [8, 9, 20, 21, 22].into_iter().map(|at| secrets.cut(text, at)).collect();
    assert_eq!(cuts, [8, 21, 21, 21, 22]);
}

#[test]
fn a_secret_is_found_with_and_without_its_scheme_and_escapes() {
    let value = named("x-team", "Team north-branch");
    assert_eq!(value.redacted("Team north-branch, or north-branch"), "[redacted], or [redacted]");
    let bearer = named("authorization", "Bearer sk-very-secret");
    assert_eq!(bearer.redacted("no Bearer scheme, but sk-very-secret"), "no Bearer scheme, but [redacted]");
    let secret = r#"a"b\c/d+e f"#;
    let json = Json::from(secret).to_string();
    for form in [secret, json.trim_matches('"'), &json.trim_matches('"').replace('/', "\\/"), "a%22b%5Cc%2Fd%2Be%20f"] {
        assert_eq!(values([secret]).redacted(&format!("<{form}>")), "<[redacted]>");
    }
    assert_eq!(values([r#""ab"cdefgh"ij""#]).redacted(r#""ab"cdefgh"ij""#), "[redacted]");
}

#[test]
fn names_tell_what_is_a_credential() {
    for name in
        ["X-Auth", "ocp-apim-subscription-key", "x-token", "client-secret", "Cookie", "DB_PASSWORD", "MYSQL_PWD"]
    {
        assert!(is_telling(name), "{name}");
        assert_eq!(named(name, "abcdef-canary-012").redacted("bad: -canary-***"), "bad: [redacted]***", "{name}");
    }
    for name in ["PWD", "OLDPWD", "LOG_LEVEL", "x-team", "Accept"] {
        assert!(!is_telling(name), "{name}");
        assert_eq!(named(name, "abcdef-canary-012").redacted("-canary-, abcdef-canary-012"), "-canary-, [redacted]");
    }
    for name in ["GIT_AUTHOR_NAME", "COMPASS_MODE", "KEYBOARD_LAYOUT"] {
        assert!(!is_telling(name), "{name}");
    }
    let socket = named("SSH_AUTH_SOCK", "/run/user/1000/keyring");
    assert_eq!(socket.redacted("/run/user/1000/bus /run/user/1000/keyring"), "/run/user/1000/bus [redacted]");
}

#[test]
fn a_credential_may_contain_an_address_or_begin_with_a_slash() {
    let cookie = named("Cookie", "back=https://x/; sid=abcdef0123456789");
    assert_eq!(cookie.redacted("abcdef01|sid=abcdef0123456789"), "[redacted]|[redacted]");
    let key = named("AWS_SECRET_ACCESS_KEY", "/wJalrXUtn/K7MDENG/bPxRfi");
    assert_eq!(key.redacted("/wJalrXU***"), "[redacted]***");
    let file = named("CREDENTIALS", "/home/ann/key.json");
    assert_eq!(file.redacted("/home/ann/work, /home/ann/key.json"), "/home/ann/work, [redacted]");
}

#[test]
fn only_an_authorization_scheme_is_no_part_of_a_credential() {
    let password = credential("correcthorse battery-staple");
    assert_eq!(password.redacted("correcthorse,battery-staple"), "[redacted],[redacted]");
    let bearer = credential("Bearer abc");
    assert_eq!(bearer.redacted("Bearer authentication, Bearer abc"), "Bearer authentication, [redacted]");
    let basic = credential("basic YW5uOmh1bnRlcjIyMjI=");
    assert_eq!(
        basic.redacted("password hunter2222 of ann, or hunter22***"),
        "password [redacted] of ann, or [redacted]***"
    );
}

#[test]
fn escapes_of_common_libraries_are_recognized() {
    let secret = r#"p&ss<w>'é/ "+(x)"#;
    let forms = [
        r#"p\u0026ss\u003cw\u003e'é/ \"+(x)"#,
        r#"p&ss<w>'\u00e9/ \"+(x)"#,
        r#"p&ss<w>'\u00e9\/ \"+(x)"#,
        r#"p\u0026ss\u003Cw\u003E\u0027\u00E9/ \u0022\u002B(x)"#,
        r#"p&ss<w>'é/ \\\"+(x)"#,
        r#"p&ss<w>'\\u00e9/ \\\"+(x)"#,
        "p%26ss%3cw%3e%27%c3%a9%2f%20%22%2b%28x%29",
        "p%26ss%3Cw%3E'%C3%A9%2F%20%22%2B(x)",
        "p%26ss%3Cw%3E%27%C3%A9%2F+%22%2B%28x%29",
        "p&amp;ss&lt;w&gt;&#39;é/ &quot;+(x)",
        "p&amp;ss&lt;w&gt;&#x27;é/ &quot;+(x)",
        "p&amp;ss&lt;w&gt;&#39;é/ &#34;+(x)",
    ];
    for form in forms {
        assert_eq!(values([secret]).redacted(&format!("<{form}.")), "<[redacted].", "{form}");
    }
    assert_eq!(forms::all(secret).len(), 21);
    assert_eq!(forms::all("sk-0123456789").len(), 1);
}

#[test]
fn the_last_omissions_of_a_text_are_examined() {
    let secrets = values(["sk-0123456789"]);
    let text = format!("{}sk-01234...", "x... ".repeat(3 * MAX_OMISSIONS));
    assert!(secrets.redacted(&text).ends_with("x... [redacted]..."));
}

#[test]
fn a_secret_that_the_replacement_contains_is_left() {
    let secrets = values(["redacted", "sk-0123456789"]);
    let once = secrets.redacted("sk-0123456789");
    assert_eq!(secrets.redacted(&once), "[redacted]");
}

#[test]
fn user_and_parameters_of_an_address_are_secret_its_host_is_not() {
    let user_info = "account-1:pa%24s-canary@";
    let basic = "YWNjb3VudC0xOnBhJHMtY2FuYXJ5";
    let said = format!("gateway.example: account-1, pa%24s-canary, pa$s-canary, Basic {basic}==");
    let shown = "gateway.example: [redacted], [redacted], [redacted], Basic [redacted]==";
    for scheme in ["https://", ""] {
        let secrets =
            address(&format!("{scheme}{user_info}gateway.example:8443/v1?key=query%20canary&api-version=2024-10-21"));
        assert_eq!(secrets.redacted(&said), shown);
        assert_eq!(secrets.redacted("query%20canary, query canary"), "[redacted], [redacted]");
        let help = "2024-10-21: see https://docs.example/errors and https://gateway.example";
        assert_eq!(secrets.redacted(help), help);
    }
    assert_eq!(address("postgres://postgres:hunter2222@db").redacted("postgres: hunter222!"), "postgres: [redacted]!");
    assert_eq!(address("https://ghp-0123456789@git").redacted("ghp-012345"), "[redacted]");
    assert!(address("postgres://db.example/shop?to&application_name=production").is_empty());
    assert_eq!(address("postgres://u:p/ssword1@h/x?a").redacted("p/ssword1@h"), "[redacted]@h");
    assert_eq!(address("https://h/mcp?0123456789abcdef").redacted("0123456789abcdef"), "[redacted]");
    assert!(address("https://h:8443/@scope/package").is_empty());
    assert_eq!(address("http://u:a%2Fb%zz%+6%4%@h").redacted("a/b%zz%+6%4%"), "[redacted]", "no escape stays as it is");
}

#[test]
fn spans_keep_pieces_of_credentials() {
    let mut secrets = SecretsBuilder::default();
    secrets.credential("development-password");
    assert_eq!(format!("{secrets:?}"), "1 secrets");
    let secrets = secrets.build(Style { hidden: "<>", omissions: &["… ["], pieces: false });
    assert_eq!(secrets.redacted("development of development-password"), "development of <>");
    assert_eq!(secrets.redacted("devel... devel… [9 bytes cut]"), "devel... <>… [9 bytes cut]");
    assert_eq!(format!("{secrets:?}"), "1 secrets");
}

/// A secret, in an alphabet that is disjoint from that of the texts around it and from the marks.
const SECRET: &str = "[A-Z0-9+/=%\"\\\\é\t-]{8,40}";
const FILLER: &str = "[a-z :,{}]{0,12}";

/// The text without the values, searched for one after the other.
fn redacted_naively(text: &str, values: &[&str]) -> String {
    let places = |value: &&str| {
        let found = (0..text.len()).filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(*value)));
        found.map(|at| at..at + value.len()).collect::<Vec<_>>()
    };
    let places: Vec<Range<usize>> = values.iter().flat_map(places).collect();
    let hides = |at: usize| places.iter().any(|place| place.contains(&at));
    let joins = |at: usize| places.iter().any(|place| place.start < at && place.contains(&at));
    let shown = text.char_indices().map(|(at, letter)| match hides(at) {
        true if joins(at) => String::new(),
        true => Style::MESSAGE.hidden.to_owned(),
        false => letter.to_string(),
    });
    shown.collect()
}

proptest! {
    #[test]
    fn no_piece_of_a_credential_is_left(
        secret in SECRET, from in any::<prop::sample::Index>(), length in 8usize..40, form in any::<prop::sample::Index>(), before in FILLER, after in FILLER,
    ) {
        let secret = secret.trim();
        prop_assume!(secret.len() >= SHORTEST && !secret.contains("\\n"));
        let forms: Vec<String> = forms::all(secret).into_iter().collect();
        let echoed = form.get(&forms);
        let letters: Vec<char> = echoed.chars().collect();
        let from = from.index(letters.len());
        let piece: String = letters[from..].iter().take(length).collect();
        prop_assume!(piece.chars().count() >= SHORTEST);
        let text = format!("{before}{piece}{after}");
        let shown = credential(secret).redacted(&text).into_owned();
        let pieces = letters.windows(SHORTEST).map(|window| window.iter().collect::<String>());
        for piece in pieces {
            prop_assert!(!shown.contains(&piece), "{text:?} is shown as {shown:?}");
        }
    }

    #[test]
    fn values_are_taken_out_and_nothing_else_is(
        text in "[A-D]{8,40}", cuts in prop::collection::vec((0usize..32, 8usize..14), 1..5), before in FILLER, after in "[A-Da-z]{0,20}",
    ) {
        let values: Vec<&str> = cuts.iter().filter_map(|(from, length)| text.get(*from..from + length)).collect();
        let said = format!("{before}{text}{after}{text}");
        let secrets = SecretsBuilder::of_values(values.iter().copied()).build(Style::MESSAGE);
        prop_assert_eq!(secrets.redacted(&said), redacted_naively(&said, &values));
    }

    #[test]
    fn a_text_cut_anywhere_shows_no_beginning_or_end(secret in "[A-Z0-9]{12,40}", before in FILLER, at in 0usize..40) {
        let secrets = values([&secret]);
        let (begun, ended) = secret.split_at(at.min(secret.len()));
        let shown = secrets.redacted_so_far(&format!("{before}{begun}")).into_owned()
            + &secrets.redacted(&format!("{before}{begun}...")) + &secrets.redacted(&format!("{before}...{ended}"));
        for part in [secret.get(..begun.len().min(TELLING_PART)), secret.get(secret.len() - ended.len().min(TELLING_PART)..)] {
            let part = part.unwrap();
            prop_assert!(part.len() < TELLING_PART || !shown.contains(part), "{shown:?}");
        }
    }

    #[test]
    fn redacting_twice_changes_nothing(secrets in prop::collection::vec("[A-C]{8,12}", 1..4), text in "([A-C]{1,12}|\\.\\.\\.|x){0,9}") {
        let secrets = SecretsBuilder::of_values(secrets.iter().map(String::as_str)).build(Style::MESSAGE);
        let once = secrets.redacted(&text);
        prop_assert_eq!(secrets.redacted(&once), &*once);
        prop_assert_eq!(once == text, matches!(once, Cow::Borrowed(_)));
    }

    #[test]
    fn a_cut_is_never_inside_a_secret(secrets in prop::collection::vec("[AB]{8,10}", 1..4), text in "[AB]{0,40}", at in 0usize..40) {
        let secrets = SecretsBuilder::of_values(secrets.iter().map(String::as_str)).build(Style::MESSAGE);
        let at = at.min(text.len());
        let cut = secrets.cut(text.as_bytes(), at);
        prop_assert!(at <= cut && cut <= text.len());
        prop_assert!(!secrets.places(text.as_bytes()).iter().any(|place| place.start < cut && cut < place.end));
    }
}
