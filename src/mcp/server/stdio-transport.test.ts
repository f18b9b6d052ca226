import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** A transport over streams in memory, with its delivered messages and its answers. */
async function openTransport(maxLineBytes?: number) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const transport = new StdioTransport({
    input,
    output,
    maxLineBytes,
  });
  const messages: JSONRPCMessage[] = [];
  const failures: Error[] = [];
  transport.onmessage = (message) => messages.push(message);
  transport.onerror = (error) => failures.push(error);
  await transport.start();
  return { input, output, transport, messages, failures };
}

/** Sends bytes as a client that then disconnects; returns the answers, messages and errors that follow. */
async function outcomeOf(bytes: string | Buffer, maxLineBytes?: number) {
  const { input, output, transport, messages, failures } = await openTransport(maxLineBytes);
  let text = "";
  output.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  input.end(bytes);
  await once(input, "end");
  await new Promise((resolve) => setImmediate(resolve));
  await transport.close();
  const answers = text.split("\n").filter((line) => line !== "");
  return { answers: answers.map((line) => JSON.parse(line) as unknown), messages, failures };
}

const refused = (code: number, id: unknown = null): object => ({
  jsonrpc: "2.0",
  id,
  error: { code, message: expect.stringMatching(/^(Parse error|Invalid Request|Invalid params): .*\.$/) },
});

test.each<readonly [string | Buffer, object]>([
  ["{", refused(-32_700)],
  ["this is not JSON", refused(-32_700)],
  ['{"jsonrpc":"2.0","id":1,"method":"ping"}}', refused(-32_700)],
  ["{'jsonrpc':'2.0'}", refused(-32_700)],
  ["\u0000", refused(-32_700)],
  [Buffer.from([0x22, 0xff, 0xfe, 0x22]), refused(-32_700)],
  [Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), refused(-32_700)],
  ["[]", refused(-32_600)],
  ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', refused(-32_600)],
  ["5", refused(-32_600)],
  ["null", refused(-32_600)],
  ["false", refused(-32_600)],
  ['"ping"', refused(-32_600)],
  ["{}", refused(-32_600)],
  ['{"id":1,"method":"ping"}', refused(-32_600, 1)],
  ['{"jsonrpc":"1.0","id":"a","method":"ping"}', refused(-32_600, "a")],
  ['{"jsonrpc":2.0,"id":1,"method":"ping"}', refused(-32_600, 1)],
  ['{"__proto__":{"jsonrpc":"2.0"},"id":1,"method":"ping"}', refused(-32_600, 1)],
  ['{"jsonrpc":"2.0","id":1}', refused(-32_600, 1)],
  ['{"jsonrpc":"2.0","id":1,"method":5}', refused(-32_600, 1)],
  ['{"jsonrpc":"2.0","method":null}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":null,"method":"ping"}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":true,"method":"ping"}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":[1],"method":"ping"}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":{},"method":"ping"}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', refused(-32_600, 1.5)],
  ['{"jsonrpc":"2.0","id":1e400,"method":"ping"}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}', refused(-32_600)],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","params":"a"}', refused(-32_600, 1)],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', refused(-32_600, 1)],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', refused(-32_602, 1)],
])("%s is answered with what is wrong, and the next line is read", async (line, answer) => {
  const next = '\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n';
  const { answers, messages, failures } = await outcomeOf(
    Buffer.concat([Buffer.from(line), Buffer.from(next)]),
  );
  expect(answers).toEqual([answer]);
  expect(messages).toEqual([{ jsonrpc: "2.0", id: 2, method: "ping" }]);
  expect(failures).toEqual([]);
});

test.each([
  '{"jsonrpc":"2.0","id":"","method":"ping"}',
  '{"jsonrpc":"2.0","id":-1,"method":"ping","params":{}}',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  '{"jsonrpc":"2.0","id":1,"result":{}}',
  '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}\r',
])("%s is handed on", async (line) => {
  const { answers, messages } = await outcomeOf(`\n  \n\r\n${line}\n`);
  expect(answers).toEqual([]);
  expect(messages).toHaveLength(1);
});

test("invalid answers and notifications get no answer", async () => {
  const { answers, messages, failures } = await outcomeOf(
    '{"jsonrpc":"2.0","id":1,"result":5}\n{"jsonrpc":"2.0","id":1,"error":"no"}\n{"jsonrpc":"2.0","method":"a","params":[]}\n',
  );
  expect([answers, messages]).toEqual([[], []]);
  expect(failures).toHaveLength(3);
});

test("a line over the limit is refused once, and not buffered", async () => {
  const { answers, messages } = await outcomeOf(
    `${"x".repeat(5_000)}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n`,
    1_048_576 / 1_024,
  );
  expect(answers).toEqual([refused(-32_600)]);
  expect(messages).toHaveLength(1);
});

test("for any bytes, answers are JSON-RPC and only messages are delivered", async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '{"jsonrpc":"2.0",',
      '"id":',
      "1",
      '"method":"ping"',
      ",",
      "}",
      "{",
      "[",
      "]",
      "\n",
      '"',
      "\\",
    ),
    fc.uint8Array({ maxLength: 4 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 30 }), async (pieces) => {
      const bytes = Buffer.concat(
        pieces.map((one) => (typeof one === "string" ? Buffer.from(one) : Buffer.from(one))),
      );
      const { answers, messages } = await outcomeOf(bytes, 60);
      for (const one of [...answers, ...messages]) expect(one).toMatchObject({ jsonrpc: "2.0" });
    }),
    { numRuns: 200 },
  );
});

test("a message of any depth is read in linear time", async () => {
  const started = processorMs();
  const deep = `${'{"a":'.repeat(1_000_000)}1${"}".repeat(1_000_000)}`;
  const { messages } = await outcomeOf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":${deep}}\n`);
  expect(messages).toHaveLength(1);
  expect(processorMs() - started).toBeLessThan(5_000);
});

test("the transport stops reading while the client does not read its answers", async () => {
  const { input, output, messages } = await openTransport();
  const bad = "{\n".repeat(20_000);
  input.write(bad);
  for (let count = 0; count < 50; count += 1) input.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(output.writableNeedDrain).toBe(true);
  expect(messages).toEqual([]);
  output.resume();
  await expect.poll(() => messages.length).toBe(50);
});

test("`ended` resolves after the client closed its output and got its answers, or closed its input", async () => {
  const open = await openTransport();
  let hasEnded = false;
  void open.transport.ended.then(() => {
    hasEnded = true;
  });
  open.output.resume();
  open.input.end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  await expect.poll(() => open.messages.length).toBe(1);
  expect(hasEnded).toBe(false);
  await open.transport.send({ jsonrpc: "2.0", id: 1, result: {} });
  await open.transport.ended;
  const broken = await openTransport();
  broken.output.destroy(Object.assign(new Error("gone"), { code: "EPIPE" }));
  await broken.transport.ended;
  expect(broken.failures).toEqual([]);
});

test("all requests of a client that disconnects after the last one are answered", async () => {
  const { input, output, transport } = await openTransport();
  transport.onmessage = (message) => {
    if ("method" in message && "id" in message)
      void transport.send({ jsonrpc: "2.0", id: message.id, result: {} });
  };
  const ids = Array.from({ length: 100 }, (_, id) => id);
  input.end(ids.map((id) => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })).join("\n"));
  await transport.ended;
  const lines = String(output.read()).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(ids);
});
