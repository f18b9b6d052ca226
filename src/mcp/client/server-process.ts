import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { endsWithin } from "../../base/abort.ts";
import { createFloodGate } from "./flood-gate.ts";
import { limits, times } from "./limits.ts";

/** A server that runs as a process, with everything it started in a group of its own. */
export interface ServerProcess {
  readonly pid: number;
  write(text: string): Promise<void>;
  /** How it ended, once it has: "Its process ended with code 1." */
  readonly ended: Promise<string>;
  /** Whether it has ended, or does so in a moment. */
  hasEnded(): Promise<boolean>;
  /** What it wrote to stderr last. */
  lastWords(): string;
  /** Closes its input, then asks it to end, then ends it. Resolves when the whole group is gone. */
  close(): Promise<void>;
  /** Ends the whole group at once. */
  kill(): void;
}

export interface ProcessRequest {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly onOutput: (piece: Buffer) => void;
  /** It prints more to stderr than a log can be. */
  readonly onErrorFlood: () => void;
}

/** Starts a server without a shell. Rejects when there is no such program. */
export async function startServerProcess(request: ProcessRequest): Promise<ServerProcess> {
  const child = spawn(request.command, [...request.args], {
    cwd: request.cwd,
    env: { ...request.env },
    stdio: ["pipe", "pipe", "pipe"],
    // A group of its own: what `npx` starts ends with it, and Ctrl-C in a terminal is kit's to handle.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  let lastWords = Buffer.alloc(0);
  const gate = createFloodGate(limits.flood);
  readInTurns(child.stderr, (piece) => {
    // Four bytes a character at most.
    lastWords = Buffer.concat([lastWords, piece.subarray(-4 * limits.stderrChars)]).subarray(
      -4 * limits.stderrChars,
    );
    if (!gate.take(piece.length, 0)) request.onErrorFlood();
  });
  readInTurns(child.stdout, request.onOutput);
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", ignore);
  const ended = endOf(child);
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  // A server that nobody waits for does not keep a program from ending.
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr])
    if (stream instanceof Socket) stream.unref();
  return {
    pid: child.pid ?? 0,
    ended,
    hasEnded: () => endsWithin(times.grace, ended),
    kill() {
      signalGroup(child, "SIGKILL");
      // What has left its group may hold them open, and go on.
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
    },
    lastWords: () => lastWords.toString("utf8").slice(-limits.stderrChars),
    async write(text) {
      if (child.stdin.writableLength > limits.unsentBytes)
        throw new Error("The process does not read its input.");
      await new Promise<void>((resolve, reject) => {
        child.stdin.write(text, (error) => (error ? reject(error) : resolve()));
      });
    },
    async close() {
      child.ref();
      child.stdin.end();
      for (const signal of ["SIGTERM", "SIGKILL"] as const) {
        if (await endsWithin(times.grace, ended)) return;
        signalGroup(child, signal);
      }
      await ended;
    },
  };
}

/**
 * Reads from a process, a piece in each turn of the event loop, so that what it floods kit with holds up nobody else.
 * One that writes byte by byte is read at longer intervals: what it has written meanwhile comes at once.
 */
function readInTurns(stream: Readable, onPiece: (piece: Buffer) => void): void {
  let started = 0;
  let reads = 0;
  const goOn = (): void => {
    const now = performance.now();
    if (now - started >= limits.reads.ms) {
      started = now;
      reads = 0;
    }
    reads += 1;
    if (reads < limits.reads.count) stream.resume();
    else setTimeout(() => stream.resume(), started + limits.reads.ms - now).unref();
  };
  let rest: Buffer = Buffer.alloc(0);
  const readPiece = (): void => {
    const piece = rest.subarray(0, limits.reads.bytes);
    rest = rest.subarray(piece.length);
    onPiece(piece);
  };
  // Destroyed where the process was ended for a flood meanwhile.
  const hasMore = (): boolean => rest.length > 0 && !stream.destroyed;
  const readOn = (): void => {
    if (!hasMore()) return;
    readPiece();
    if (hasMore()) setImmediate(readOn);
    else goOn();
  };
  const readAll = (): void => {
    while (hasMore()) readPiece();
  };
  stream.on("data", (chunk: Buffer) => {
    // Node resumes the streams of a process that has ended: what is left comes before what is new.
    readAll();
    rest = chunk;
    stream.pause();
    readOn();
  });
  stream.on("end", readAll);
}

/** Resolves when a process has ended and nothing more of its output comes. */
function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let how = "Its process could not be started.";
    const finish = (): void => {
      for (const stream of child.stdio) stream?.destroy();
      resolve(how);
    };
    child.once("exit", (code, signal) => {
      how = code === null ? `Its process was ended by ${signal}.` : `Its process ended with code ${code}.`;
      // Children it leaves behind would hold its output open, and live on.
      signalGroup(child, "SIGKILL");
      setTimeout(finish, times.grace).unref();
    });
    child.once("close", finish);
    child.once("error", () => {
      if (child.pid === undefined) finish();
    });
  });
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // Nobody of the group is left.
  }
}

function ignore(): void {}
