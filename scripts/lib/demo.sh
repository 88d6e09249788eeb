# Runs the first command of README.md like a new user: no configuration, an empty home directory, no model server.
# Sourced by scripts/test; needs $work.

# Hook: the lines that the demo must print, as extended regular expressions, in this order.
demo_lines=(
  'priority 10 first: 1 call now, 2 deferred' 'rejected, invalid arguments' 'mcp_shop_list_orders' 'mcp_shop_get_loyalty'
  'mcp_shop_add_note .*requires approval' 'add_note approved' 'ext_issue_refund .*waits for your application' 'The run is pending'
  'ext_issue_refund from the caller' '^completed' 'toolgate runs show'
)

demo_check() {
  local command output=$work/demo.out
  command=$(first_command README.md)
  [[ -n $command ]] || skip "README.md shows no command yet"
  printf '$ %s\n' "$command"
  clean_home timeout 300 bash -c "$command" </dev/null | tee "$output"
  expect_in_order "$output" "${demo_lines[@]}"
  note "$command"
}

# Prints the first line of the first fenced block that is a shell command, without its prompt.
first_command() {
  [[ -e $1 ]] || return 0
  awk '/^```/ { inside = !inside; shell = /^```(sh|bash|shell|console|text)?$/; next }
    inside && shell && NF && !/^#/ { sub(/^\$ /, ""); print; exit }' "$1"
}

# Runs a command with an empty home directory and without any setting of toolgate, a provider or telemetry.
clean_home() {
  local home name unset_names=()
  home=$(mktemp -d "$work/home.XXXX")
  while IFS= read -r name; do
    case $name in
      TOOLGATE_* | OPENAI_* | ANTHROPIC_* | GEMINI_* | GOOGLE_* | OTEL_* | XDG_*) unset_names+=(-u "$name") ;;
    esac
  done < <(compgen -e)
  env "${unset_names[@]}" HOME="$home" CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" \
    RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" "$@"
}

expect_in_order() {
  local file=$1 from=1 pattern found
  shift
  for pattern in "$@"; do
    found=$(tail -n "+$from" "$file" | grep -nEm1 -- "$pattern" | cut -d: -f1) || true
    if [[ -z $found ]]; then
      echo "the output has no line like '$pattern' after its line $((from - 1))"
      return 1
    fi
    from=$((from + found))
  done
}
