import type { Readable } from "node:stream";
import { endsWithin } from "../../base/abort.ts";
import { type RunningProcess, startProcess } from "../../processes/start-process.ts";
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
  const server = startProcess({
    program: request.command,
    args: request.args,
    cwd: request.cwd,
    env: request.env,
    hasInput: true,
  });
  let lastWords = Buffer.alloc(0);
  const gate = createFloodGate(limits.flood);
  readInTurns(server.stderr, (piece) => {
    // Four bytes a character at most.
    lastWords = Buffer.concat([lastWords, piece.subarray(-4 * limits.stderrChars)]).subarray(
      -4 * limits.stderrChars,
    );
    if (!gate.take(piece.length, 0)) request.onErrorFlood();
  });
  readInTurns(server.stdout, request.onOutput);
  const ended = endOf(server);
  if (server.pid === undefined) await server.exited;
  // A server that nobody waits for does not keep a program from ending.
  server.unref();
  return {
    pid: server.pid ?? 0,
    ended,
    hasEnded: () => endsWithin(times.grace, ended),
    kill() {
      server.signal("SIGKILL");
      // What has left its group may hold them open, and go on.
      for (const stream of [server.stdout, server.stderr]) stream.destroy();
    },
    lastWords: () => lastWords.toString("utf8").slice(-limits.stderrChars),
    async write(text) {
      const { stdin } = server;
      if (stdin === null || stdin.writableLength > limits.unsentBytes)
        throw new Error("The process does not read its input.");
      await new Promise<void>((resolve, reject) => {
        stdin.write(text, (error) => (error ? reject(error) : resolve()));
      });
    },
    async close() {
      server.ref();
      server.stdin?.end();
      for (const signal of ["SIGTERM", "SIGKILL"] as const) {
        if (await endsWithin(times.grace, ended)) return;
        server.signal(signal);
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
async function endOf(server: RunningProcess): Promise<string> {
  try {
    const { code, signal } = await server.exited;
    // Children it leaves behind would hold its output open, and live on.
    server.signal("SIGKILL");
    await server.closeOutput(times.grace);
    return code === null ? `Its process was ended by ${signal}.` : `Its process ended with code ${code}.`;
  } catch {
    return "Its process could not be started.";
  }
}
