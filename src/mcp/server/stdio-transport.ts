import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { parseJSONRPCMessage } from "@modelcontextprotocol/server";
import { isRecord } from "../../base/record.ts";
import { LineReader } from "../line-reader.ts";

export interface StdioStreams {
  readonly input: Readable;
  readonly output: Writable;
  /** Longer lines are refused; default 10 MB. */
  readonly maxLineBytes?: number | undefined;
}

/** JSON-RPC error codes. */
const parseError = -32_700;
const invalidRequest = -32_600;
const invalidParams = -32_602;

const messagesInTurn = 16;

/** After the client has closed its output, the time in which it still receives answers. */
const lastAnswersMs = 2_000;

/** The error that the client gets for a refused line. */
interface Refusal {
  readonly code: number;
  readonly message: string;
  readonly id?: string | number;
}

/**
 * The protocol over stdin and stdout, one message per line. Lines are read in linear time and up to a limit. An
 * invalid line is answered with a JSON-RPC error, and the next line is read. Reading pauses while the client does
 * not read its answers.
 */
export class StdioTransport implements Transport {
  onmessage?: Transport["onmessage"];
  onclose?: Transport["onclose"];
  onerror?: Transport["onerror"];
  /** Resolves when the client has disconnected and its requests are answered. */
  readonly ended: Promise<void>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #reader: LineReader;
  readonly #waiting: JSONRPCMessage[] = [];
  /** Ids of requests without an answer. */
  readonly #open = new Set<string | number>();
  #end: () => void = () => undefined;
  #isClosed = false;
  #hasInputEnded = false;

  constructor({ input, output, maxLineBytes = 10_485_760 }: StdioStreams) {
    this.#input = input;
    this.#output = output;
    this.#reader = new LineReader(maxLineBytes, {
      onLine: (line) => this.#onLine(line),
      onTooLong: () => {
        const limit = `${maxLineBytes / 1_048_576} MB`;
        this.#refuse({ code: invalidRequest, message: `Invalid Request: a line is longer than ${limit}.` });
      },
    });
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    // Listen now, because a client may disconnect before the first line is read.
    input.once("end", this.#onInputEnd).once("close", this.#onInputEnd).once("error", this.#onInputEnd);
    output.once("close", this.#end).on("error", this.#onOutputError);
  }

  async start(): Promise<void> {
    this.#input.on("data", this.#onData);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      if (!("method" in message) && message.id !== undefined) this.#open.delete(message.id);
    }
    this.#endIfAnswered();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#input.off("data", this.#onData).pause();
    this.#end();
    this.onclose?.();
  }

  readonly #onData = (chunk: Buffer): void => {
    // Write all refusals of a chunk at once.
    this.#output.cork();
    this.#reader.push(chunk);
    this.#output.uncork();
    this.#input.pause();
    this.#deliver();
  };

  /** Delivers a few messages per turn of the event loop, so that a disconnect is noticed in between. */
  readonly #deliver = (): void => {
    for (const message of this.#waiting.splice(0, messagesInTurn)) {
      if ("method" in message && "id" in message) this.#open.add(message.id);
      this.onmessage?.(message);
    }
    if (this.#isClosed) return;
    this.#endIfAnswered();
    if (this.#waiting.length > 0) setImmediate(this.#deliver);
    else if (this.#output.writableNeedDrain) this.#output.once("drain", this.#deliver);
    else this.#input.resume();
  };

  /** Ends after the client has disconnected, once it has sent nothing that is still to be answered. */
  #endIfAnswered(): void {
    if (this.#hasInputEnded && this.#open.size === 0 && this.#waiting.length === 0) this.#end();
  }

  readonly #onInputEnd = (): void => {
    if (this.#hasInputEnded) return;
    this.#hasInputEnded = true;
    // The last line may lack a line feed.
    this.#reader.push(Buffer.from("\n"));
    this.#deliver();
    setTimeout(this.#end, lastAnswersMs).unref();
  };

  readonly #onOutputError = (error: Error): void => {
    // EPIPE means that the client has disconnected, which is not an error.
    if (!("code" in error && error.code === "EPIPE")) this.onerror?.(error);
    this.#end();
  };

  #onLine(line: Buffer): void {
    if (this.#isClosed) return;
    const text = decode(line);
    if (text !== undefined && text.trim() === "") return;
    const value = text === undefined ? undefined : parseJson(text);
    if (value === undefined) {
      const format = text === undefined ? "UTF-8" : "JSON";
      this.#refuse({ code: parseError, message: `Parse error: the line is not a ${format}.` });
      return;
    }
    const refusal = refusalOf(value);
    if (refusal !== undefined) {
      this.#refuse(refusal);
      return;
    }
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(value);
    } catch (error) {
      // A malformed answer or notification gets no answer.
      this.onerror?.(new Error("The client sent an invalid message.", { cause: error }));
      return;
    }
    this.#waiting.push(message);
  }

  #refuse({ code, message, id }: Refusal): void {
    const answer = { jsonrpc: "2.0", id: id ?? null, error: { code, message } };
    this.#output.write(`${JSON.stringify(answer)}\n`);
  }
}

/** The text of a line without a byte order mark; `undefined` if it is not UTF-8. */
function decode(line: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(line);
  } catch {
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Why a value is not a request, answer or notification; `undefined` if it may be one. */
function refusalOf(value: unknown): Refusal | undefined {
  const refused = (reason: string, code = invalidRequest): Refusal => ({
    code,
    message: `${code === invalidParams ? "Invalid params" : "Invalid Request"}: ${reason}.`,
    ...idOf(value),
  });
  if (Array.isArray(value)) return refused("batches are not supported, send one message per line");
  if (typeof value !== "object" || value === null) return refused("a message must be an object");
  const message = value as Readonly<Record<string, unknown>>;
  if (message.jsonrpc !== "2.0") return refused('"jsonrpc" must be "2.0"');
  if (!("method" in message)) {
    return "result" in message || "error" in message ? undefined : refused('"method" is missing');
  }
  if (typeof message.method !== "string") return refused('"method" must be a string');
  if ("id" in message && !isId(message.id)) return refused('"id" must be a string or a whole number');
  const { params } = message;
  if (params === undefined || isRecord(params)) return undefined;
  if (!Array.isArray(params)) return refused('"params" must be an object');
  // JSON-RPC allows positional arguments, but no method of MCP uses them. A notification gets no answer.
  return "id" in message ? refused('"params" must be an object', invalidParams) : undefined;
}

function isId(id: unknown): id is string | number {
  return typeof id === "string" || Number.isSafeInteger(id);
}

/** The id for the answer, if the message has a usable one. */
function idOf(value: unknown): Pick<Refusal, "id"> {
  if (typeof value !== "object" || value === null || !("id" in value)) return {};
  const { id } = value;
  // An unsafe integer would be returned as another number.
  const isFraction = typeof id === "number" && Number.isFinite(id) && !Number.isInteger(id);
  return isId(id) || isFraction ? { id } : {};
}
