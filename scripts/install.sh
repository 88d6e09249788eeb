#!/bin/sh
# Installs toolgate from a release: downloads the archive of this platform, compares its checksum, copies the binary.
# It changes one file, TOOLGATE_INSTALL_DIR/toolgate, and needs no root.
#
#   TOOLGATE_VERSION       the version, such as 0.1.0 (default: the latest release)
#   TOOLGATE_INSTALL_DIR   the folder (default: ~/.local/bin)
#   TOOLGATE_TARGET        the platform (default: that of this machine)
#   TOOLGATE_DOWNLOAD_URL  the folder with the files of the release, such as a mirror
set -eu

repository=https://github.com/toolgate/toolgate

main() {
  for program in uname tar mktemp; do have "$program" || fail "$program is missing"; done
  target=${TOOLGATE_TARGET:-$(target)}
  folder=${TOOLGATE_INSTALL_DIR:-$HOME/.local/bin}
  if [ -n "${TOOLGATE_DOWNLOAD_URL:-}" ]; then
    url=${TOOLGATE_DOWNLOAD_URL%/}
  elif [ -n "${TOOLGATE_VERSION:-}" ]; then
    url=$repository/releases/download/v${TOOLGATE_VERSION#v}
  else
    url=$repository/releases/latest/download
  fi

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM

  download "$url/SHA256SUMS" "$work/SHA256SUMS"
  # "CHECKSUM  toolgate-VERSION-TARGET.tar.gz", or " *" in place of the spaces.
  line=$(grep "[ *]toolgate-[^ ]*-$target\.tar\.gz\$" "$work/SHA256SUMS") ||
    fail "the release at $url has no archive for $target; build it from source: $repository#install"
  archive=${line##*[ *]}
  download "$url/$archive" "$work/$archive"
  [ "$(sha256 "$work/$archive")" = "${line%% *}" ] ||
    fail "$archive does not have the checksum of SHA256SUMS; nothing was installed"

  name=${archive%.tar.gz}
  tar -xzf "$work/$archive" -C "$work" "$name/toolgate"
  version=$("$work/$name/toolgate" --version) ||
    fail "the binary for $target does not run on this machine; set TOOLGATE_TARGET, or build it from source"

  mkdir -p "$folder" || fail "$folder cannot be created; set TOOLGATE_INSTALL_DIR"
  # A rename, because a running binary cannot be overwritten.
  if ! { cp "$work/$name/toolgate" "$folder/.toolgate.new" && chmod 755 "$folder/.toolgate.new" &&
    mv -f "$folder/.toolgate.new" "$folder/toolgate"; }; then
    fail "$folder is not writable; set TOOLGATE_INSTALL_DIR"
  fi

  echo "$version is installed: $folder/toolgate"
  case :$PATH: in
    *:"$folder":*) ;;
    *) echo "$folder is not on your PATH; add it: export PATH=\"$folder:\$PATH\"" ;;
  esac
}

# The platform of this machine, in the names of Rust.
target() {
  case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no binary for $(uname -m); build it from source: $repository#install" ;;
  esac
  case $(uname -s) in
    Linux) if recent_glibc; then echo "$machine-unknown-linux-gnu"; else echo "$machine-unknown-linux-musl"; fi ;;
    Darwin)
      # A shell under Rosetta reports the processor that Rosetta emulates.
      if [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then machine=aarch64; fi
      echo "$machine-apple-darwin"
      ;;
    *) fail "there is no binary for $(uname -s); build it from source: $repository#install" ;;
  esac
}

# Whether the C library is the one of the machine that built the release (glibc 2.35), or newer.
recent_glibc() {
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || return 1
  glibc=${glibc#glibc }
  [ "${glibc%%.*}" -gt 2 ] || { [ "${glibc%%.*}" -eq 2 ] && minor=${glibc#*.} && [ "${minor%%.*}" -ge 35 ]; }
}

download() {
  if have curl; then
    curl --fail --silent --show-error --location --retry 3 --output "$2" "$1" || fail "failed to download $1"
  elif have wget; then
    wget -q -O "$2" "$1" || fail "failed to download $1"
  else
    fail "curl or wget is needed"
  fi
}

sha256() {
  if have sha256sum; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif have shasum; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    fail "sha256sum or shasum is needed to compare the checksum"
  fi
}

have() { command -v "$1" >/dev/null 2>&1; }

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# The last line, so that a download that was cut off runs nothing.
main
