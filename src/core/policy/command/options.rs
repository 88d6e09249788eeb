//! Command options: which words are options, and which options are known to write files, to run programs, or to read files
//! outside a repository.
//!
//! The table covers programs that operators allow because they only read. It is a safety net and cannot be complete; a
//! rule that lists its `options` does not use it.

/// Options by program that write files or run other programs.
const UNSAFE_OPTIONS: [(&[&str], &[&str]); 14] = [
    (
        &["git"],
        &[
            "--output",
            "--ext-diff",
            "--textconv",
            "--exec",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--open-files-in-pager",
            "--config",
            "--config-env",
            "--template",
            "--no-index",
            "--contents",
            "--ignore-revs-file",
            "-O",
        ],
    ),
    (&["cargo"], &["--config", "--fix", "--logfile", "--manifest-path", "-C", "-Z"]),
    (
        &["npm", "pnpm", "yarn", "bun"],
        &["--prefix", "--script-shell", "--node-options", "--userconfig", "--globalconfig", "--dir", "--cwd", "-C"],
    ),
    (&["bun"], &["--preload", "--require", "--import", "-r"]),
    (&["kubectl"], &["--kubeconfig"]),
    (
        &["pytest"],
        &[
            "--basetemp",
            "--benchmark-json",
            "--config-file",
            "--confcutdir",
            "--cov-config",
            "--cov-report",
            "--debug",
            "--html",
            "--json-report-file",
            "--junit-xml",
            "--junitxml",
            "--log-file",
            "--override-ini",
            "--pastebin",
            "--pdbcls",
            "--pyargs",
            "--report-log",
            "--resultlog",
            "--rootdir",
            "--rsyncdir",
            "--snapshot-update",
            "--tx",
            "-c",
            "-o",
            "-p",
        ],
    ),
    (&["find"], &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fprint0", "-fls"]),
    (&["fd", "fdfind"], &["--exec", "--exec-batch", "-x", "-X"]),
    (&["rg"], &["--pre", "--hostname-bin", "--search-zip", "-z"]),
    (&["sort"], &["--output", "--compress-program", "-o"]),
    (&["tree"], &["-o", "-R"]),
    (&["base64"], &["--output", "-o"]),
    (&["date"], &["--set", "-s"]),
    (
        &["tar"],
        &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--rsh-command",
            "-I",
            "-F",
        ],
    ),
];

/// Options, without hyphens, of programs that accept one hyphen or two before a whole name: `-o x`, `--out=x`.
const UNSAFE_FLAGS: [(&str, &[&str]); 2] = [
    (
        "go",
        &[
            "exec",
            "toolexec",
            "vettool",
            "overlay",
            "C",
            "ldflags",
            "mod",
            "modfile",
            "o",
            "coverprofile",
            "cpuprofile",
            "memprofile",
            "blockprofile",
            "mutexprofile",
            "trace",
            "outputdir",
        ],
    ),
    ("terraform", &["out", "generate-config-out"]),
];

/// Whether a word is an option: it begins with `-` and is neither `-` nor `--`.
pub(super) fn is_option(word: &str) -> bool {
    word.starts_with('-') && !matches!(word, "-" | "--")
}

/// Whether an option is one of these, with or without a value after `=`.
pub(super) fn is_listed(word: &str, options: &[String]) -> bool {
    let name = word.split_once('=').filter(|_| word.starts_with("--")).map_or(word, |(name, _)| name);
    options.iter().any(|option| option == word || option == name)
}

/// Whether a word is an option with which the program is known to write files or to run other programs. Programs accept
/// abbreviated long options, and several short ones in one word.
pub(super) fn may_write_or_run(program: &str, word: &str) -> bool {
    let program = base_name(program);
    let known = UNSAFE_OPTIONS.iter().filter(|(programs, _)| programs.contains(&program));
    let flags = UNSAFE_FLAGS.iter().filter(|(other, _)| *other == program);
    is_option(word)
        && (known.flat_map(|(_, options)| options.iter()).any(|option| may_be(option, word))
            || flags.flat_map(|(_, flags)| flags.iter()).any(|flag| is_flag(flag, word)))
}

/// Whether a word is this flag. `go test` also accepts the names of flags after `test.`.
fn is_flag(flag: &str, word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name).trim_start_matches('-');
    name.strip_prefix("test.").unwrap_or(name) == flag
}

/// Whether a word may be this option, alone, among other letters, or abbreviated.
pub(super) fn may_be(option: &str, word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let is_short = option.len() == 2;
    match word.strip_prefix("--") {
        Some(_) => option.starts_with(name),
        // `-o`, `-ofile`, `-vo file`.
        None if is_short => option.chars().nth(1).is_some_and(|letter| name.contains(letter)),
        None => name == option,
    }
}

/// The name of a program without its folder.
pub(in crate::policy) fn base_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}
