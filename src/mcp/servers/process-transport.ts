import type { Readable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { endsWithin } from "../../base/abort.ts";
import { thrownText } from "../../base/thrown.ts";
import { type RunningProcess, startProcess } from "../../processes/start-process.ts";
import { limits, times } from "../limits.ts";
import { LineReader } from "../line-reader.ts";
import { createFloodGate } from "./flood-gate.ts";
import type { McpSdk } from "./load-mcp-sdk.ts";
import { ServerFailure } from "./server-failure.ts";

/** The protocol over a process's stdin and stdout. */
export interface ProcessTransport extends Transport {
  /** Why the connection ended; `undefined` while it is open. */
  readonly failure: ServerFailure | undefined;
  /** The end of the process's stderr. */
  stderrEnd(): string;
  /** Ends the process at once. */
  kill(): void;
  // With these two the SDK detects that a silent server may have the older protocol.
  readonly pid: number | null;
  readonly stderr: null;
}

/**
 * Creates a transport that isolates its server: the process gets only the given environment, it ends with all
 * processes that it started, and its output is bounded. The SDK's own transport passes on parts of kit's
 * environment and ends only one process.
 */
export function createProcessTransport(
  sdk: Pick<McpSdk, "deserializeMessage" | "serializeMessage">,
  request: Omit<ProcessRequest, "onOutput" | "onErrorFlood">,
): ProcessTransport {
  const gate = createFloodGate(limits.flood);
  let server: ServerProcess | undefined;
  let failure: ServerFailure | undefined;
  const pendingIds = new Set<string | number>();

  const fail = (message: string, isFlood = false): void => {
    failure ??= new ServerFailure(message, {
      outcome: "unknown",
      details: server?.stderrEnd() ?? "",
      isFlood,
    });
  };
  const cutOff = (message: string): void => {
    fail(message, true);
    server?.kill();
  };
  const read = (line: Buffer): JSONRPCMessage | undefined => {
    // Servers often print banners and debug lines to stdout; skip them, within the rate limit.
    if (!mayBeMessage(line)) return undefined;
    try {
      return sdk.deserializeMessage(line.toString("utf8"));
    } catch (error) {
      transport.onerror?.(error instanceof Error ? error : new Error(thrownText(error)));
      const id = idOf(line);
      if (id === undefined || !pendingIds.has(id)) return undefined;
      const data = new ServerFailure("Its answer is not what the protocol asks for.", { outcome: "unknown" });
      return { jsonrpc: "2.0", id, error: { code: -32_000, message: "", data } };
    }
  };
  // Nothing could catch what the SDK throws for a message: this runs in a listener of the process's output.
  const deliver = (message: JSONRPCMessage): void => {
    try {
      transport.onmessage?.(message);
    } catch {
      cutOff("It sent a message that is not what the protocol asks for.");
    }
  };
  const reader = new LineReader(limits.messageBytes, {
    onLine(line) {
      if (failure !== undefined) return;
      const message = read(line);
      const isAnswer =
        message !== undefined &&
        !("method" in message) &&
        message.id !== undefined &&
        pendingIds.delete(message.id);
      if (!isAnswer && !gate.take(line.length, 1)) {
        cutOff("It sent too many messages that kit did not ask for.");
      } else if (message !== undefined) deliver(message);
    },
    onTooLong: () => cutOff(`It sent a message of more than ${limits.messageBytes / 1024 / 1024} MB.`),
  });
  const transport: ProcessTransport = {
    get failure() {
      return failure;
    },
    get pid() {
      return server?.pid ?? null;
    },
    stderr: null,
    kill: () => server?.kill(),
    stderrEnd: () => server?.stderrEnd() ?? "",
    async start() {
      server = await startServerProcess({
        ...request,
        onOutput: (piece) => reader.push(piece),
        onErrorFlood: () => cutOff("It flooded its error output."),
      }).catch((error: unknown) => {
        throw notStarted(error);
      });
      server.ended.then(
        (how) => {
          fail(how);
          transport.onclose?.();
        },
        () => undefined,
      );
    },
    async send(message: JSONRPCMessage) {
      if (server === undefined || failure !== undefined) {
        throw failure ?? new ServerFailure("It is not running.", { outcome: "not_sent" });
      }
      if ("id" in message && "method" in message) pendingIds.add(message.id);
      try {
        await server.write(sdk.serializeMessage(message));
      } catch (error) {
        // If the process ended, its input closes before `ended` resolves; that failure explains more.
        await server.hasEnded();
        throw (
          failure ?? new ServerFailure("It does not accept requests.", { outcome: "not_sent", cause: error })
        );
      }
    },
    async close() {
      fail("The connection was closed.");
      await server?.close();
    },
  };
  return transport;
}

/** The id of a malformed answer; `undefined` if it has none or is not an answer. */
function idOf(line: Buffer): string | number | undefined {
  try {
    const { id, method } = JSON.parse(line.toString("utf8"));
    return method === undefined ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a line starts with `{`, so that other output is not parsed. */
function mayBeMessage(line: Buffer): boolean {
  const first = line.find((byte) => byte !== 32 && byte !== 9);
  return first === 123;
}

function notStarted(error: unknown): ServerFailure {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "Its command or its working folder does not exist.",
    EACCES: "Its command is not executable.",
  };
  const message = reasons[String(code)] ?? `Its process could not be started (${String(code)}).`;
  return new ServerFailure(message, { outcome: "not_sent", cause: error });
}

/** A server that runs as a process; the processes that it starts share its process group. */
export interface ServerProcess {
  readonly pid: number;
  write(text: string): Promise<void>;
  /** Resolves with a sentence about its end: "Its process ended with code 1." */
  readonly ended: Promise<string>;
  /** Whether it has ended, or ends within `times.grace`. */
  hasEnded(): Promise<boolean>;
  /** The end of its stderr. */
  stderrEnd(): string;
  /** Closes its input, then sends SIGTERM, then SIGKILL. Resolves when the whole group has ended. */
  close(): Promise<void>;
  /** Ends the whole group at once. */
  kill(): void;
}

interface ProcessRequest {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly onOutput: (piece: Buffer) => void;
  /** The process floods stderr. */
  readonly onErrorFlood: () => void;
}

/** Starts a server without a shell. Rejects if the program does not exist. */
export async function startServerProcess(request: ProcessRequest): Promise<ServerProcess> {
  const server = startProcess({
    program: request.command,
    args: request.args,
    cwd: request.cwd,
    env: request.env,
    hasInput: true,
  });
  let stderrEnd = Buffer.alloc(0);
  const gate = createFloodGate(limits.flood);
  readInTurns(server.stderr, (piece) => {
    // A character has at most four bytes.
    stderrEnd = Buffer.concat([stderrEnd, piece.subarray(-4 * limits.stderrChars)]).subarray(
      -4 * limits.stderrChars,
    );
    if (!gate.take(piece.length, 0)) request.onErrorFlood();
  });
  readInTurns(server.stdout, request.onOutput);
  const ended = endOf(server);
  if (server.pid === undefined) await server.exited;
  // An idle server must not keep kit's process alive.
  server.unref();
  return {
    pid: server.pid ?? 0,
    ended,
    hasEnded: () => endsWithin(times.grace, ended),
    kill() {
      server.signal("SIGKILL");
      // A process that left the group may hold the streams open.
      for (const stream of [server.stdout, server.stderr]) stream.destroy();
    },
    stderrEnd: () => stderrEnd.toString("utf8").slice(-limits.stderrChars),
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
 * Reads one piece per turn of the event loop, so that a flood does not block other work. A process that writes single
 * bytes is read at longer intervals, more bytes at a time.
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
  // The stream is destroyed if the process was killed for a flood meanwhile.
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
    // Node resumes the streams of a process that has ended, so read the rest before the new chunk.
    readAll();
    rest = chunk;
    stream.pause();
    readOn();
  });
  stream.on("end", readAll);
}

/** Resolves when a process has ended and its output is read. */
async function endOf(server: RunningProcess): Promise<string> {
  try {
    const { code, signal } = await server.exited;
    // Remaining child processes would hold the output open.
    server.signal("SIGKILL");
    await server.closeOutput(times.grace);
    return code === null ? `Its process was ended by ${signal}.` : `Its process ended with code ${code}.`;
  } catch {
    return "Its process could not be started.";
  }
}
