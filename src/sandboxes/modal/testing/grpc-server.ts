import http2 from "node:http2";
import type { AddressInfo } from "node:net";

/** A protobuf message by field number; a list is a repeated field. */
export interface Message {
  readonly [field: number]: Value | readonly Value[] | undefined;
}
type Value = string | number | boolean | Uint8Array | Double | Message;

/** A number encoded as eight bytes. */
export class Double {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** A received message. Missing fields are empty. */
export interface Received {
  text(field: number): string;
  texts(field: number): readonly string[];
  number(field: number): number;
  double(field: number): number | undefined;
  bytes(field: number): Buffer;
  message(field: number): Received;
  messages(field: number): readonly Received[];
}

export interface GrpcCall {
  /** The name of the method without its service. */
  readonly name: string;
  readonly request: Received;
  readonly headers: http2.IncomingHttpHeaders;
  /** Sends one message of a streamed answer. */
  send(message: Message): void;
  /** Closes the connection of the call. */
  cut(): void;
}

/** Fails a call with a gRPC status. */
export class GrpcFailure extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Answers a call with a message; returns `undefined` after streaming its answer. */
export type GrpcHandler = (call: GrpcCall) => Promise<Message | undefined> | Message | undefined;

/** The part of gRPC over plain HTTP/2 that a fake needs. */
export async function startGrpcServer(
  handle: GrpcHandler,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => undefined);
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream, headers) => void answer(stream, headers, handle));
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const session of sessions) session.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

async function answer(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  handle: GrpcHandler,
): Promise<void> {
  stream.on("error", () => undefined);
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of stream) chunks.push(chunk);
  } catch {
    return;
  }
  const body = Buffer.concat(chunks);
  const send = (message: Message): void => {
    if (!stream.destroyed) stream.write(frame(encode(message)));
  };
  let status = 0;
  let reported = "";
  if (stream.destroyed) return;
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => {
    if (!stream.destroyed)
      stream.sendTrailers({ "grpc-status": String(status), "grpc-message": encodeURIComponent(reported) });
  });
  try {
    const message = await handle({
      name: String(headers[":path"]).split("/").at(-1) ?? "",
      request: decode(body.subarray(5)),
      headers,
      send,
      cut: () => stream.session?.destroy(),
    });
    if (message !== undefined) send(message);
  } catch (error) {
    status = error instanceof GrpcFailure ? error.status : 13;
    reported = String(error instanceof Error ? error.message : error);
  }
  if (!stream.destroyed) stream.end();
}

function frame(body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

function encode(message: Message): Buffer {
  const parts = Object.entries(message).flatMap(([field, value]) => {
    const values = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return values.map((each) => encodeField(Number(field), each));
  });
  return Buffer.concat(parts);
}

function encodeField(field: number, value: Value): Buffer {
  if (value instanceof Double) {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value.value);
    return Buffer.concat([varint((field << 3) | 1), bytes]);
  }
  if (typeof value === "number" || typeof value === "boolean")
    return Buffer.concat([varint(field << 3), varint(Number(value))]);
  const bytes =
    typeof value === "string"
      ? Buffer.from(value)
      : value instanceof Uint8Array
        ? Buffer.from(value)
        : encode(value);
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

function decode(bytes: Buffer): Received {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at] ?? 0;
      at += 1;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  const take = (length: number): Buffer => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const kind = tag & 7;
    const value =
      kind === 0
        ? readVarint()
        : kind === 2
          ? take(readVarint())
          : kind === 1
            ? take(8).readDoubleLE()
            : take(4).readFloatLE();
    fields.set(tag >>> 3, [...(fields.get(tag >>> 3) ?? []), value]);
  }
  return toReceived(fields);
}

function toReceived(fields: ReadonlyMap<number, readonly (number | Buffer)[]>): Received {
  const buffers = (field: number): readonly Buffer[] =>
    (fields.get(field) ?? []).filter((value) => typeof value !== "number");
  const numberAt = (field: number): number | undefined =>
    fields.get(field)?.find((value) => typeof value === "number");
  return {
    text: (field) => buffers(field)[0]?.toString() ?? "",
    texts: (field) => buffers(field).map(String),
    number: (field) => numberAt(field) ?? 0,
    double: numberAt,
    bytes: (field) => buffers(field)[0] ?? Buffer.alloc(0),
    message: (field) => decode(buffers(field)[0] ?? Buffer.alloc(0)),
    messages: (field) => buffers(field).map(decode),
  };
}
