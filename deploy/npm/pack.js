// Packs the npm packages of a release from the archives in dist: one for each platform with its binary, and `toolgate`,
// which has them as optional dependencies. npm installs only the one whose `os` and `cpu` fit.
//
// Usage: node deploy/npm/pack.js VERSION REPOSITORY
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

// Linux gets the static binary, which runs with every C library.
const targets = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
  "win32-x64": "x86_64-pc-windows-msvc",
};

const [version, repository] = process.argv.slice(2);
const root = path.join(__dirname, "../..");
const dist = path.join(root, "dist");
const folder = path.join(dist, "npm");
const described = { version, license: "Apache-2.0", repository: { type: "git", url: `git+${repository}.git` } };

fs.rmSync(folder, { recursive: true, force: true });
const optionalDependencies = {};
for (const [platform, target] of Object.entries(targets)) {
  const archive = `toolgate-${version}-${target}`;
  if (!fs.existsSync(path.join(dist, `${archive}.tar.gz`))) {
    console.error(`no npm package for ${platform}: there is no ${archive}.tar.gz`);
    continue;
  }
  const [os, cpu] = platform.split("-");
  const binary = os === "win32" ? "toolgate.exe" : "toolgate";
  const name = `@toolgate/${platform}`;
  pack({ name, description: `The binary of toolgate for ${platform}`, ...described, os: [os], cpu: [cpu] }, (files) => {
    const extract = ["-xzf", `${archive}.tar.gz`, "-C", files, "--strip-components=1", `${archive}/${binary}`];
    execFileSync("tar", extract, { cwd: dist });
  });
  optionalDependencies[name] = version;
}
const description = "Agent runtime and gateway for MCP tools";
const bin = { toolgate: "toolgate.js" };
pack({ name: "toolgate", description, ...described, bin, engines: { node: ">=18" }, optionalDependencies }, (files) => {
  fs.copyFileSync(path.join(__dirname, "toolgate.js"), path.join(files, "toolgate.js"));
  fs.copyFileSync(path.join(__dirname, "README.md"), path.join(files, "README.md"));
});

// `fill` writes the files of the package into its folder.
function pack(manifest, fill) {
  const files = path.join(folder, manifest.name);
  fs.mkdirSync(files, { recursive: true });
  fs.writeFileSync(path.join(files, "package.json"), JSON.stringify(manifest, null, 2));
  fs.copyFileSync(path.join(root, "LICENSE"), path.join(files, "LICENSE"));
  fill(files);
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: files });
  fs.rmSync(path.join(folder, manifest.name.split("/")[0]), { recursive: true });
}
