import { AsyncLocalStorage } from "node:async_hooks";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";

/**
 * The process in which a platform runs a function: `vercel` with the folder of an `index.func`, or `netlify` with that of an unpacked
 * archive. It answers requests by the platform's own contract, and reports after each when it has no open work.
 */
const [, , platform, folder = ""] = process.argv;

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

const load = async (file: string): Promise<Record<string, unknown>> => await import(pathToFileURL(file).href);

/** Like the Node.js launcher of Vercel: `export default { fetch }`, and the context of the request as a global. */
async function vercel(): Promise<Answer> {
  const { handler } = JSON.parse(await readFile(join(folder, ".vc-config.json"), "utf8"));
  const context = new AsyncLocalStorage<{ readonly waitUntil: (work: Promise<unknown>) => void }>();
  Object.assign(globalThis, { [Symbol.for("@vercel/request-context")]: { get: () => context.getStore() } });
  const module = (await load(join(folder, handler))) as {
    readonly default: { fetch(request: Request): Promise<Response> };
  };
  return async (incoming, outgoing) => {
    const waiting: Promise<unknown>[] = [];
    const gone = new AbortController();
    outgoing.once("close", () => outgoing.writableFinished || gone.abort());
    await context.run({ waitUntil: (work) => void waiting.push(work) }, async () => {
      const body = await bodyOf(incoming);
      const { method = "GET", headers } = incoming;
      const request = new Request(`https://${headers.host}${incoming.url}`, {
        method,
        headers: headers as Record<string, string>,
        signal: gone.signal,
        ...(body.length === 0 ? {} : { body }),
      });
      const reply = await module.default.fetch(request);
      outgoing.writeHead(reply.status, Object.fromEntries(reply.headers));
      outgoing.flushHeaders();
      try {
        for await (const chunk of reply.body ?? []) outgoing.write(chunk);
      } catch {
        // The client has disconnected.
      }
      outgoing.end();
      await Promise.allSettled(waiting);
    });
  };
}

type LambdaHandler = (event: object, stream: Writable, context: object) => Promise<void>;

interface Head {
  readonly statusCode: number;
  readonly headers?: Record<string, string>;
  readonly multiValueHeaders?: Record<string, string[]>;
}

/** Like AWS Lambda with streamed responses: Netlify's own bootstrap, which is in the archive, creates the request. */
async function netlify(): Promise<Answer> {
  const streams = new WeakMap<Writable, ServerResponse>();
  Object.assign(globalThis, {
    awslambda: {
      streamifyResponse: (handler: LambdaHandler) => handler,
      HttpResponseStream: {
        from(stream: Writable, { statusCode, headers, multiValueHeaders }: Head) {
          const outgoing = streams.get(stream);
          outgoing?.writeHead(statusCode, { ...headers, ...multiValueHeaders });
          outgoing?.flushHeaders();
          return stream;
        },
      },
    },
  });
  const { handler } = (await load(join(folder, "___netlify-entry-point.mjs"))) as {
    readonly handler: LambdaHandler;
  };
  return async (incoming, outgoing) => {
    // Lambda does not report that a client has disconnected.
    const stream = new Writable({
      write(chunk, _, done) {
        outgoing.write(chunk);
        done();
      },
      final(done) {
        outgoing.end();
        done();
      },
    });
    streams.set(stream, outgoing);
    const body = await bodyOf(incoming);
    const event = {
      rawUrl: `https://${incoming.headers.host}${incoming.url}`,
      path: incoming.url?.split("?")[0],
      httpMethod: incoming.method,
      headers: { ...incoming.headers, "x-nf-client-connection-ip": "203.0.113.7" },
      body: body.length === 0 ? undefined : body.toString("base64"),
      isBase64Encoded: body.length > 0,
      flags: {},
    };
    await handler(event, stream, { awsRequestId: "1", getRemainingTimeInMillis: () => 20_000 });
  };
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const answer = platform === "vercel" ? await vercel() : await netlify();
const server = createServer((incoming, outgoing) => {
  outgoing.on("error", () => undefined);
  answer(incoming, outgoing)
    .catch((error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      outgoing.destroy();
    })
    .finally(() => process.send?.("rests"));
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.send?.({ port: typeof address === "object" ? address?.port : 0 });
});
process.on("disconnect", () => process.exit());
