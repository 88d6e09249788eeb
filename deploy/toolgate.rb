# Homebrew formula. `scripts/release assets` writes dist/toolgate.rb from it, with version, addresses and checksums.
class Toolgate < Formula
  desc "Agent runtime and gateway for MCP tools"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@URL@/toolgate-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256 aarch64-apple-darwin@"
    end
    on_intel do
      url "@URL@/toolgate-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256 x86_64-apple-darwin@"
    end
  end

  # The static binaries: they run with every C library.
  on_linux do
    on_arm do
      url "@URL@/toolgate-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@URL@/toolgate-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256 x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "toolgate"
    generate_completions_from_executable(bin/"toolgate", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/toolgate --version")
    system bin/"toolgate", "init"
    assert_match "mcp_demo_find_customer", shell_output("#{bin}/toolgate tools")
  end
end
