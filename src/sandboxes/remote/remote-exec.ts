import { randomUUID } from "node:crypto";
import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { invalid } from "../../files/file-error.ts";
import { createBoundedOutput } from "../../processes/bounded-output.ts";
import { stopOn } from "../../processes/stop-on.ts";
import type { CommandAccess, ExecRequest, ExecResult } from "../contract.ts";
import { nobodyThere } from "../host/exec/environment.ts";
import { endScript, execScript } from "./exec-scripts.ts";
import { isolationBy } from "./isolation.ts";
import { closed, failure, pathIn, type RemoteView } from "./remote-view.ts";

const defaultTimeoutMs = 120_000;
const defaultMaxOutputBytes = 1024 * 1024;
/** A command that writes more is out of control; every byte crosses the network. */
const floodBytes = 64 * 1024 * 1024;
/** A script and its arguments are one argument of a shell, of which Linux takes 128 KiB. */
const maxWordBytes = 100_000;
/** How long the machine waits beyond a time limit before it ends the command by itself: nobody may be there to do it. */
const spareSeconds = 15;

/** Runs a command on the machine, in one round trip; ending it before it ends itself takes another. */
export async function execRemotely(view: RemoteView, request: ExecRequest): Promise<ExecResult> {
  const { signal, timeoutMs = defaultTimeoutMs } = request;
  signal?.throwIfAborted();
  if (view.closing.signal.aborted) throw closed();
  const folder = pathIn(view, request.cwd ?? "");
  const words = wordsOf(request.command);
  if (Buffer.byteLength(words.join("")) > maxWordBytes) return tooLong(words);
  const env = checkedNames(request.env ?? {});
  const { root, wall } = await view.link.open();
  if (wall === "" && view.requiresWall) throw noWall(view.name);
  // Without a wall nothing keeps them, as `isolation` says.
  const kept = keptPaths(root, request.access);
  const [id, word] = [randomUUID(), randomUUID()];
  const output = collect(request);
  const stop = stopOn({ timeoutMs, signals: [view.closing.signal, signal] }, () => {
    const ending = new AbortController();
    view.link
      .run({ script: endScript, args: [id], signal: ending.signal, repeatable: true })
      .catch(() => undefined);
    return () => ending.abort();
  });
  output.onFlood(() => stop.now("flood"));
  const started = performance.now();
  try {
    const { exitCode } = await view.link.run({
      script: `${settings(env)}${execScript}`,
      isCommand: true,
      args: [
        folder,
        id,
        String(Math.ceil(Math.min(timeoutMs, longestTimerMs) / 1000) + spareSeconds),
        request.stdin === undefined ? "0" : "1",
        wall,
        word,
        ...(wall === "" ? ["0"] : [String(kept.length), ...kept]),
        ...words,
      ],
      env,
      onOutput: output.add,
      ...(request.stdin === undefined ? {} : { stdin: request.stdin }),
    });
    const told = output.told(word);
    if (told !== undefined && told === exitCode) throw failure(told, folder);
    // Its own script has been killed, and what that started may go on.
    if (exitCode < 0) await view.link.run({ script: endScript, args: [id] }).catch(() => undefined);
    const reason = stop.reason();
    const note =
      reason === "flood" ? `\nThe command was stopped: it wrote more than ${floodBytes} bytes.\n` : "";
    return {
      exit_code: reason !== undefined ? null : exitCode < 0 ? 137 : exitCode,
      stdout: output.stdout.text(),
      stderr: output.stderr.text() + note,
      dropped_bytes: output.stdout.droppedBytes + output.stderr.droppedBytes,
      timed_out: reason === "timeout",
      duration_ms: performance.now() - started,
    };
  } finally {
    stop.release();
  }
}

/** As a shell says it. */
function tooLong([program]: readonly string[]): ExecResult {
  return {
    exit_code: 126,
    stdout: "",
    stderr: `${program}: argument list too long\n`,
    dropped_bytes: 0,
    timed_out: false,
    duration_ms: 0,
  };
}

function wordsOf(command: ExecRequest["command"]): readonly string[] {
  const words = typeof command === "string" ? ["/bin/sh", "-c", "--", command] : command;
  if (words[0] === undefined || words[0] === "") throw invalid("There is no command to run.");
  if (words.some((word) => word.includes("\0"))) throw invalid("A command has no NUL characters.");
  return words;
}

/** What goes for every command, unless this one says something else. */
function settings(env: Readonly<Record<string, string>>): string {
  const names = Object.keys(nobodyThere).filter((name) => !Object.hasOwn(env, name));
  return `export ${names.map((name) => `${name}=${nobodyThere[name]}`).join(" ")}\n`;
}

function checkedNames(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes("\0"))
      throw invalid(`${JSON.stringify(name.slice(0, 80))} is no variable of a command.`);
  }
  return env;
}

function noWall(name: string): KitError {
  const { description, hint } = isolationBy(name, "");
  return new KitError({
    code: "unavailable",
    message: `The command was not run: sandbox.isolation is required. ${description}`,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** The paths on the machine that a command may not change. */
function keptPaths(root: string, access: CommandAccess = {}): readonly string[] {
  if (access.write === false) return [root];
  return (access.readOnlyPaths ?? []).map((path) => `${root}/${path}`);
}

function collect({ maxOutputBytes = defaultMaxOutputBytes, onOutput }: ExecRequest) {
  const stdout = createBoundedOutput(maxOutputBytes);
  const stderr = createBoundedOutput(maxOutputBytes);
  let total = 0;
  let flooded: () => void = () => undefined;
  const hand = (stream: "stdout" | "stderr", text: string): void => {
    const kept = stream === "stdout" ? stdout : stderr;
    const bytes = Buffer.from(text);
    kept.add(bytes);
    total += bytes.length;
    if (total > floodBytes) flooded();
    if (onOutput === undefined || kept.droppedBytes > 0) return;
    try {
      onOutput({ stream, text });
    } catch {
      // Who listens badly must not harm the command.
    }
  };
  return {
    stdout,
    stderr,
    onFlood(listener: () => void): void {
      flooded = listener;
    },
    add: hand,
    /** The exit code that the script itself has told, when it could not enter the folder. */
    told(word: string): number | undefined {
      const text = stderr.text();
      return text.startsWith(`${word}:`) ? Number(text.slice(word.length + 1)) : undefined;
    },
  };
}
