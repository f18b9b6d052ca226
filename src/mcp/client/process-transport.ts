import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { LineReader } from "../line-reader.ts";
import { createFloodGate } from "./flood-gate.ts";
import { limits } from "./limits.ts";
import type { McpSdk } from "./load-sdk.ts";
import { ServerFailure } from "./server-failure.ts";
import { type ProcessRequest, type ServerProcess, startServerProcess } from "./server-process.ts";

/** The protocol over a process's stdin and stdout. */
export interface ProcessTransport extends Transport {
  /** Why it is no longer connected; undefined while it is. */
  readonly failure: ServerFailure | undefined;
  /** What the process wrote to stderr last. */
  lastWords(): string;
  /** Ends the process at once. */
  kill(): void;
  // The SDK tells by these two that a silent server may be one of the older protocol.
  readonly pid: number | null;
  readonly stderr: null;
}

/**
 * Creates a transport that contains its server: the environment is what it is given and no more, the
 * process is ended with everything it started, and what it sends is bounded. The SDK's own transport
 * hands on parts of kit's environment and ends one process only.
 */
export function createProcessTransport(
  sdk: Pick<McpSdk, "deserializeMessage" | "serializeMessage">,
  request: Omit<ProcessRequest, "onOutput" | "onErrorFlood">,
): ProcessTransport {
  const gate = createFloodGate(limits.flood);
  let server: ServerProcess | undefined;
  let failure: ServerFailure | undefined;
  const asked = new Set<string | number>();

  const fail = (message: string, isFlood = false): void => {
    failure ??= new ServerFailure(message, {
      outcome: "unknown",
      details: server?.lastWords() ?? "",
      isFlood,
    });
  };
  const cutOff = (message: string): void => {
    fail(message, true);
    server?.kill();
  };
  const read = (line: Buffer): JSONRPCMessage | undefined => {
    // Banners and debug prints on stdout are common; they are skipped, as long as they stay few.
    if (!mayBeMessage(line)) return undefined;
    try {
      return sdk.deserializeMessage(line.toString("utf8"));
    } catch (error) {
      transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
      const id = idOf(line);
      if (id === undefined || !asked.has(id)) return undefined;
      const data = new ServerFailure("Its answer is not what the protocol asks for.", { outcome: "unknown" });
      return { jsonrpc: "2.0", id, error: { code: -32_000, message: "", data } };
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
        asked.delete(message.id);
      if (!isAnswer && !gate.take(line.length, 1)) {
        cutOff("It flooded its output with what nobody had asked for.");
      } else if (message !== undefined) transport.onmessage?.(message);
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
    lastWords: () => server?.lastWords() ?? "",
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
      if ("id" in message && "method" in message) asked.add(message.id);
      try {
        await server.write(sdk.serializeMessage(message));
      } catch (error) {
        // Its end closes its input before it is told: how it ended says more.
        await server.hasEnded();
        throw (
          failure ?? new ServerFailure("It does not take requests.", { outcome: "not_sent", cause: error })
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

/** The id of what may be an answer, however malformed; undefined where there is none. */
function idOf(line: Buffer): string | number | undefined {
  try {
    const { id, method } = JSON.parse(line.toString("utf8"));
    return method === undefined ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a line begins as an object does: what else is printed costs no more than a look. */
function mayBeMessage(line: Buffer): boolean {
  const first = line.find((byte) => byte !== 32 && byte !== 9);
  return first === 123;
}

function notStarted(error: unknown): ServerFailure {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "There is no such command, or no such folder to run it in.",
    EACCES: "Its command may not be run.",
  };
  const message = reasons[String(code)] ?? `Its process could not be started (${String(code)}).`;
  return new ServerFailure(message, { outcome: "not_sent", cause: error });
}
