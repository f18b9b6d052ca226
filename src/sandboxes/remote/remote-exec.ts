import { randomUUID } from "node:crypto";
import { longestTimerMs } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { invalid } from "../../files/obstacle.ts";
import { createBoundedOutput } from "../../processes/bounded-output.ts";
import { markName } from "../../processes/end-group.ts";
import { stopOn } from "../../processes/start-process.ts";
import type { CommandAccess, ExecRequest, ExecResult } from "../contract.ts";
import { nonInteractive } from "../host/exec/command-environment.ts";
import { isolationBy } from "./remote-options.ts";
import { closed, failure, pathIn, type RemoteView } from "./remote-view.ts";

const defaultTimeoutMs = 120_000;
const defaultMaxOutputBytes = 1024 * 1024;
/** A command that writes more is stopped, as every byte crosses the network. */
const floodBytes = 64 * 1024 * 1024;
/** A script with its arguments becomes one argument of a shell, which Linux limits to 128 KiB. */
const maxWordBytes = 100_000;
/** Added to the time limit after which the machine itself ends the command, in case kit has ended. */
const spareSeconds = 15;

/** Runs a command on the machine in one round trip; stopping it takes another one. */
export async function execRemotely(view: RemoteView, request: ExecRequest): Promise<ExecResult> {
  const { signal, timeoutMs = defaultTimeoutMs } = request;
  signal?.throwIfAborted();
  if (view.closing.signal.aborted) throw closed();
  const folder = pathIn(view, request.cwd ?? "");
  const words = wordsOf(request.command);
  if (Buffer.byteLength(words.join("")) > maxWordBytes) return tooLong(words);
  const env = checkVariables(request.env ?? {});
  const { root, wall } = await view.link.open();
  if (wall === "" && view.requiresWall) throw noWall(view.name);
  // Used only with isolation; `isolation` reports a machine without it.
  const protectedPaths = readOnlyPathsOf(root, request.access);
  const [id, errorMark] = [randomUUID(), randomUUID()];
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
      script: `${exportDefaults(env)}${execScript}`,
      isCommand: true,
      args: [
        folder,
        id,
        String(Math.ceil(Math.min(timeoutMs, longestTimerMs) / 1000) + spareSeconds),
        request.stdin === undefined ? "0" : "1",
        wall,
        errorMark,
        ...(wall === "" ? ["0"] : [String(protectedPaths.length), ...protectedPaths]),
        ...words,
      ],
      env,
      onOutput: output.add,
      stdin: request.stdin,
    });
    const reported = output.parseExitCode(errorMark);
    if (reported !== undefined && reported === exitCode) throw failure(reported, folder);
    // The script itself was killed, so processes of the command may still run.
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

/** The result that a shell reports. */
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
  if (words[0] === undefined || words[0] === "") throw invalid("The command is empty.");
  if (words.some((word) => word.includes("\0"))) throw invalid("A command cannot contain NUL characters.");
  return words;
}

/** Shell lines that set the non-interactive defaults, except those that the command overrides. */
function exportDefaults(env: Readonly<Record<string, string>>): string {
  const names = Object.keys(nonInteractive).filter((name) => !Object.hasOwn(env, name));
  return `export ${names.map((name) => `${name}=${nonInteractive[name]}`).join(" ")}\n`;
}

function checkVariables(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes("\0"))
      throw invalid(
        `${JSON.stringify(name.slice(0, 80))} is not a valid environment variable, or its value contains NUL characters.`,
      );
  }
  return env;
}

function noWall(name: string): KitError {
  const { description, hint } = isolationBy(name, "");
  return new KitError({
    code: "unavailable",
    message: `The command was not run: sandbox.isolation is required. ${description}`,
    hint,
  });
}

/** The paths on the machine that are read-only for a command. */
function readOnlyPathsOf(root: string, access: CommandAccess = {}): readonly string[] {
  if (access.write === false) return [root];
  return (access.readOnlyPaths ?? []).map((path) => `${root}/${path}`);
}

function collect({ maxOutputBytes = defaultMaxOutputBytes, onOutput }: ExecRequest) {
  const stdout = createBoundedOutput(maxOutputBytes);
  const stderr = createBoundedOutput(maxOutputBytes);
  let total = 0;
  let flooded: () => void = () => undefined;
  const receive = (stream: "stdout" | "stderr", text: string): void => {
    const protectedPaths = stream === "stdout" ? stdout : stderr;
    const bytes = Buffer.from(text);
    protectedPaths.add(bytes);
    total += bytes.length;
    if (total > floodBytes) flooded();
    if (onOutput === undefined || protectedPaths.droppedBytes > 0) return;
    try {
      onOutput({ stream, text });
    } catch {
      // Listener errors never fail the command.
    }
  };
  return {
    stdout,
    stderr,
    onFlood(listener: () => void): void {
      flooded = listener;
    },
    add: receive,
    /** The exit code that the script printed after `mark`, if it could not enter the folder. */
    parseExitCode(mark: string): number | undefined {
      const text = stderr.text();
      return text.startsWith(`${mark}:`) ? Number(text.slice(mark.length + 1)) : undefined;
    },
  };
}

/**
 * Runs a command in a new process group, and afterwards ends all processes that it started. Processes that left
 * the group are found by a mark in their environment. If kit has ended, the script's own time limit stops them.
 *
 * $1: root, $2: folder, $3: id, $4: seconds, $5: 1 if there is standard input, $6: the program that makes paths
 * read-only, $7: a mark that the command does not know, $8: the number of read-only paths, which follow; then the
 * words of the command. If the script cannot enter the folder, it prints the mark and an exit code to standard error.
 */
const execScript: string = `root=$1 p=$2 id=$3 limit=$4 input=$5 wall=$6 word=$7 kept=$8
shift 8
path= IFS=:
for folder in $PATH; do
  case "$folder/" in "$root"/*) ;; /*) path=$path\${path:+:}$folder ;; esac
done
unset IFS
PATH=\${path:-/usr/local/bin:/usr/bin:/bin}
export PATH
no() { printf %s "$word:$1" >&2; exit "$1"; }
real=$(realpath -m -- "$root/$p" 2>/dev/null && echo .) || no 71
real=\${real%??}
[ -L "$real" ] && no 71
case "$real" in "$root"|"$root"/*) ;; *) no 71 ;; esac
[ -e "$real" ] || no 70
[ -d "$real" ] || no 72
cd -- "$real" || no 71
pid=\${TMPDIR:-/tmp}/.kit-$id
if [ "$input" = 1 ]; then exec 3<&0; else exec 3</dev/null; fi
if [ "$kept" != 0 ]; then
  set -- $wall -- sh -c 'kept=$1 at=$2; shift 2
while [ "$kept" -gt 0 ]; do
  if [ -e "$1" ]; then mount --bind -- "$1" "$1" && mount -o remount,ro,bind -- "$1" || { echo "The files could not be made read-only for the command." >&2; exit 126; }; fi
  shift; kept=$((kept - 1))
done
cd -- "$at" || exit 126
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"' kit "$kept" "$real" "$@"
fi
${markName}=$id setsid -- "$@" <&3 3<&- &
w=$!
echo $w >"$pid"
# Messages of the shell itself are not output of the command.
exec 2>/dev/null
setsid -- sh -c 'sleep "$1"; kill -s KILL -- "-$2"' kit "$limit" $w </dev/null >/dev/null 2>&1 &
d=$!
wait $w
c=$?
kill -s KILL -- -$w -$d 2>/dev/null
for round in 1 2 3; do
  left=$(grep -lszFx "${markName}=$id" /proc/[0-9]*/environ)
  [ -n "$left" ] || break
  for e in $left; do e=\${e#/proc/}; kill -s KILL "\${e%/environ}"; done 2>/dev/null
done
rm -f -- "$pid"
exit $c`;

/** Ends a command with SIGTERM, and half a second later with SIGKILL. $2: its id. */
const endScript: string = `pid=\${TMPDIR:-/tmp}/.kit-$2
tries=0
while [ ! -s "$pid" ]; do [ $tries -lt 100 ] || exit 0; tries=$((tries + 1)); sleep 0.1; done
w=$(cat "$pid") || exit 0
kill -s TERM -- "-$w" 2>/dev/null || exit 0
tries=0
while kill -s 0 -- "-$w" 2>/dev/null && [ $tries -lt 10 ]; do tries=$((tries + 1)); sleep 0.05; done
kill -s KILL -- "-$w" 2>/dev/null
exit 0`;
