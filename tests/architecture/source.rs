//! A minimal parser of Rust source that finds the paths it names. It uses the compiler's own token trees, so comments
//! and strings are never mistaken for code, and code inside macros is visible.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A word, a delimiter, a punctuation mark (`::` is one) or a literal (all alike), with its line.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A path from the root of a crate, with the line it starts on. `crate::core::{id, json}` is two of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CodePath {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
}

/// The tokens of a source file, without comments.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let stream: TokenStream = source.parse().expect("source that the compiler accepts");
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    let mut colon_is_open = false;
    for tree in stream {
        let line = tree.span().start().line;
        let mut push = |text: String| out.push(Token { text, line });
        let was_open = std::mem::take(&mut colon_is_open);
        match tree {
            TokenTree::Punct(mark) if mark.as_char() == ':' && was_open => {
                out.last_mut().expect("the first colon").text.push(':');
            }
            TokenTree::Punct(mark) => {
                colon_is_open = mark.as_char() == ':' && mark.spacing() == Spacing::Joint;
                push(mark.as_char().to_string());
            }
            TokenTree::Ident(word) => push(word.to_string()),
            TokenTree::Literal(_) => push("literal".to_owned()),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::None => ("", ""),
                };
                push(open.to_owned());
                flatten(group.stream(), out);
                out.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
        }
    }
}

/// Every path into the own crate: `crate::`, `super::` and `self::` paths, with `use` trees expanded. `module` is the
/// module path of the file, for example `["mcp", "client"]`.
pub(crate) fn own_paths(tokens: &[Token], module: &[&str]) -> Vec<CodePath> {
    let mut here: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
    let mut open_braces: Vec<bool> = Vec::new();
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let next = text(tokens, at + 1);
        let prefix = match text(tokens, at) {
            "{" => {
                let opens_module = at >= 2 && text(tokens, at - 2) == "mod";
                if opens_module {
                    here.push(text(tokens, at - 1).to_owned());
                }
                open_braces.push(opens_module);
                None
            }
            "}" => {
                if open_braces.pop() == Some(true) {
                    here.pop();
                }
                None
            }
            _ if at > 0 && text(tokens, at - 1) == "::" => None,
            // Renamed, the crate could be imported without detection.
            "crate" if next == "as" => Some(Vec::new()),
            "crate" | "toolgate" if next == "::" => Some(Vec::new()),
            "self" if next == "::" => Some(here.clone()),
            "super" if next == "::" => Some(here.split_last().map(|(_, parents)| parents.to_vec()).unwrap_or_default()),
            _ => None,
        };
        at = match prefix {
            Some(prefix) => spell_out(tokens, at + 1, prefix, tokens[at].line, &mut found),
            None => at + 1,
        };
    }
    found
}

/// Every path into the crate of that name, with `use` trees expanded.
pub(crate) fn paths_into(name: &str, tokens: &[Token]) -> Vec<CodePath> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let starts = text(tokens, at) == name && text(tokens, at + 1) == "::";
        if starts && (at < 2 || text(tokens, at - 1) != "::" || !is_word(text(tokens, at - 2))) {
            spell_out(tokens, at + 1, Vec::new(), tokens[at].line, &mut found);
        }
    }
    found
}

/// Follows a path from the position after its first segment, and returns the position after its last one.
fn spell_out(tokens: &[Token], mut at: usize, mut path: Vec<String>, line: usize, out: &mut Vec<CodePath>) -> usize {
    while text(tokens, at) == "::" {
        match text(tokens, at + 1) {
            "{" => return spell_out_group(tokens, at + 2, &path, out),
            "super" => _ = path.pop(),
            "self" => {}
            "*" => path.push("*".to_owned()),
            word if is_word(word) => path.push(word.to_owned()),
            _ => break,
        }
        at += 2;
    }
    out.push(CodePath { segments: path, line });
    at
}

fn spell_out_group(tokens: &[Token], mut at: usize, prefix: &[String], out: &mut Vec<CodePath>) -> usize {
    loop {
        match text(tokens, at) {
            "}" | "" => return at + 1,
            "{" => at = spell_out_group(tokens, at + 1, prefix, out),
            "," => at += 1,
            "as" => at += 2,
            first => {
                let mut path = prefix.to_vec();
                match first {
                    "super" => _ = path.pop(),
                    "self" | "::" => {}
                    segment => path.push(segment.to_owned()),
                }
                at = spell_out(tokens, at + 1, path, tokens[at].line, out);
            }
        }
    }
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
