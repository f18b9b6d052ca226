/**
 * The server, the workbench and the extension host of VS Code in a folder, from npm's package code-server: without native code, and without
 * scripts of packages. 47 MB are loaded once.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../files.ts";

const version = "4.139.1";
const sha512 = "fUYvJVdz4ZoVJfakGiGWXFMpF8K1ObsrpGvX17ZxNpKOzdNHs7lANT670JTr4ZhA8DnWqyvvmFG/d3HV9Yy6ew==";

/** The packages that the server, the host, the watcher of files and the workbench load, of 50 that it depends on. */
const needed = [
  ...["@microsoft/1ds-core-js", "@microsoft/1ds-post-js", "@parcel/watcher", "@vscode/deviceid"],
  ...[
    "@vscode/iconv-lite-umd",
    "@vscode/proxy-agent",
    "@vscode/ripgrep-universal",
    "@vscode/tree-sitter-wasm",
  ],
  ...["cookie", "http-proxy-agent", "https-proxy-agent", "jschardet", "minimist", "vscode-oniguruma"],
  ...["vscode-regexpp", "vscode-textmate", "ws", "yauzl", "yazl"],
];

/**
 * Two packages whose native part is not built. The host imports the logger as an ES module, so the names are set on `exports` one by one;
 * without it the host has no log at all.
 */
const stubs = {
  "@vscode/native-watchdog": "exports.start = () => {};\n",
  "@vscode/spdlog": `const { appendFileSync, mkdirSync } = require("node:fs");
const { dirname } = require("node:path");
const levels = ["trace", "debug", "info", "warn", "error", "critical"];
class Logger {
  constructor(_type, _name, path) { this.path = path; mkdirSync(dirname(path), { recursive: true }); }
  getLevel() { return 2; }
  setLevel() {}
  setPattern() {}
  clearFormatters() {}
  flush() {}
  drop() {}
}
for (const [level, name] of levels.entries())
  Logger.prototype[name] = function (message) { if (level >= 2) appendFileSync(this.path, message + "\\n"); };
exports.Logger = Logger;
exports.version = 1;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.createRotatingLogger = async (name, path) => new Logger("rotating", name, path);
exports.createAsyncRotatingLogger = exports.createRotatingLogger;
`,
};

/** Returns the folder of VS Code, and makes it if it is not there. */
export function prepareCode(): string {
  const folder = join(repositoryRoot, "editors/vscode/node_modules/.code");
  const code = join(folder, "package/lib/vscode");
  const ready = join(folder, `ready-${version}`);
  if (existsSync(ready)) return code;
  mkdirSync(folder, { recursive: true });
  const run = (cwd: string, ...args: string[]): void =>
    void execFileSync("npm", args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const archive = join(folder, `code-server-${version}.tgz`);
  if (!existsSync(archive)) run(folder, "pack", "--silent", `code-server@${version}`);
  if (createHash("sha512").update(readFileSync(archive)).digest("base64") !== sha512)
    throw new Error("npm's code-server is another file than the one that was tried.");
  rmSync(join(folder, "package"), { recursive: true, force: true });
  execFileSync("tar", ["xzf", archive, "-C", folder, "package/lib/vscode"]);

  const manifest = readJson(join(code, "package.json"));
  const dependencies = Object.fromEntries(needed.map((name) => [name, manifest.dependencies[name]]));
  const { name, version: of } = manifest;
  writeJson(join(code, "package.json"), { name, version: of, private: true, type: "module", dependencies });
  rmSync(join(code, "npm-shrinkwrap.json"));
  cpSync(join(repositoryRoot, "editors/vscode/test/code-lock.json"), join(code, "package-lock.json"));
  run(code, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund");
  for (const [stub, text] of Object.entries(stubs)) {
    const place = join(code, "node_modules", stub);
    mkdirSync(place, { recursive: true });
    writeJson(join(place, "package.json"), { name: stub, version: "0.0.0", main: "index.js" });
    writeFileSync(join(place, "index.js"), text);
  }

  // Otherwise the server asks the shop for extensions.
  const product = readJson(join(code, "product.json"));
  writeJson(join(code, "product.json"), { ...product, extensionsGallery: { serviceUrl: "" } });
  // Languages and themes stay. Those with code start slowly and look for accounts.
  for (const extension of readdirSync(join(code, "extensions"))) {
    const about = join(code, "extensions", extension, "package.json");
    if (existsSync(about) && readJson(about).main !== undefined)
      rmSync(join(code, "extensions", extension), { recursive: true });
  }
  writeFileSync(ready, "");
  return code;
}

function readJson(file: string) {
  return JSON.parse(readFileSync(file, "utf8"));
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, JSON.stringify(value, null, 1));
}
