#!/usr/bin/env node
// Starts the binary of this platform. npm installs it as an optional dependency, so no script runs at the installation.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;

function binary() {
  try {
    return require.resolve(`@toolgate/${platform}/toolgate${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    console.error(
      `toolgate: the package @toolgate/${platform} is not installed. Either there is no binary for this platform, or ` +
        "npm omitted optional dependencies: install again without --omit=optional.",
    );
    process.exit(1);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
// The terminal sends Ctrl-C to both processes; a second one would end a run at once.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`toolgate: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
