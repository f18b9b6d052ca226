import { setImmediate } from "node:timers/promises";
import type { ToolCallUpdate } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { KitClient } from "../../client/kit-client.ts";
import { EditorSpecRun, type RunEditor } from "./editor-spec-run.ts";

const context = {
  timestamp: "2026-12-01T10:00:00.000Z",
  instance_id: "run_1-1",
  operation_id: "op_1",
  agent: "kit.coder",
};
const task = {
  ...{ task: "1.1", title: "Add up", path: "tasks.md", line: 4, criteria: [], attempt: 1, cost: 0 },
  ...{ state: "working", work_tree: "/top/.kit/work/cart.1.1" },
};
const working = { ...context, index: 1, type: "log", level: "info", message: "", data: { spec_task: task } };
const approval = (tool: string, args: unknown) => ({
  ...{ ...context, index: 2, type: "approval_request", session: "work 1.1" },
  ...{ tool, args, approval_id: "apr_1", tool_call_id: "c1" },
});

/** A server whose run `run_1` has these events and goes on; every request is in `requests`. */
function serve({
  isOpen = false,
  cancel = 200,
  events = [] as readonly unknown[],
  onRequest = (_: string) => {},
}) {
  const requests: string[] = [];
  const replies: readonly (readonly [RegExp, () => Response])[] = [
    [
      /^GET \/runs\?/,
      () =>
        Response.json({
          runs: isOpen ? [{ run_id: "run_1", status: "running", payload: { feature: "cart" } }] : [],
        }),
    ],
    [/^POST \/workflows\//, () => Response.json({ run_id: "run_1" }, { status: 202 })],
    [/^GET \/runs\/run_1\/events/, () => Response.json({ events })],
    [/^GET \/runs\/run_1\/journal/, () => Response.json({ entries: [] })],
    [
      /^GET \/runs\/run_1\/stream/,
      () => new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } }),
    ],
    [
      /^POST \/runs\/run_1\/cancel/,
      () =>
        cancel === 200
          ? Response.json({ cancelled: true })
          : Response.json(
              { error: { type: "store_unavailable", message: "The disk is full.", details: "", meta: {} } },
              { status: cancel },
            ),
    ],
    [/^GET \/agents\/.*\/rules/, () => Response.json({ choices: [] })],
    [/^POST \/agents\//, () => Response.json({})],
  ];
  const client = new KitClient({
    baseUrl: "http://localhost",
    retry: { attempts: 1 },
    fetch: async (input, init) => {
      await setImmediate();
      const { method, url } = new Request(input, init);
      const request = `${method} ${url.slice("http://localhost".length)}`;
      requests.push(request);
      onRequest(request);
      const reply = replies.find(([path]) => path.test(request))?.[1];
      return reply?.() ?? new Response(null, { status: 404 });
    },
  });
  return { client, requests };
}

function open({ client }: { readonly client: KitClient }, ask: RunEditor["ask"] = async () => undefined) {
  const stop = new AbortController();
  const leave = new AbortController();
  const texts: string[] = [];
  const editor: RunEditor = {
    prefix: "shop/",
    ask,
    send(updates) {
      for (const update of updates)
        if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text")
          texts.push(update.content.text);
    },
  };
  const ended = new EditorSpecRun(client, editor).toEnd(
    { feature: "cart" },
    { stop: stop.signal, leave: leave.signal },
  );
  return { stop, leave, texts, ended };
}

const changes = (requests: readonly string[]): readonly string[] =>
  requests.filter((request) => request.startsWith("POST"));

test("a stop before the run is found starts none, and ends none that was there", async () => {
  const stopping = new AbortController();
  for (const isOpen of [false, true]) {
    let begun: ReturnType<typeof open> | undefined;
    const server = serve({ isOpen, onRequest: () => begun?.stop.abort() });
    begun = open(server);
    await expect(begun.ended).rejects.toThrow(/abort/);
    expect(changes(server.requests)).toEqual([]);
    expect(begun.texts).toEqual(isOpen ? ["The run run_1 is left as it was.\n\n"] : []);
  }
  const server = serve({});
  stopping.abort();
  const { signal } = stopping;
  const editor = { prefix: "", send: () => undefined, ask: async () => undefined };
  const early = new EditorSpecRun(server.client, editor).toEnd(
    { feature: "cart" },
    { stop: signal, leave: signal },
  );
  await expect(early).rejects.toThrow(/abort/);
  expect(server.requests).toEqual([]);
});

test("a stop cancels the run, and one that fails says that the run can go on", async () => {
  for (const [cancel, text] of [
    [200, /^Stopped\. Closed tasks stay closed/],
    [
      500,
      /^The run run_1 was not stopped, and can go on: .*disk is full.* `kit runs cancel run_1` ends it\./,
    ],
  ] as const) {
    const server = serve({ cancel });
    const run = open(server);
    await expect.poll(() => server.requests.at(-1)).toMatch(/stream/);
    run.stop.abort();
    await expect(run.ended).rejects.toThrow(/abort/);
    expect(changes(server.requests).at(-1)).toMatch(/cancel$/);
    expect(run.texts.at(-1)).toMatch(text);
  }
});

test("leaving neither cancels the run nor answers what the person was asked", async () => {
  const server = serve({ events: [working, approval("bash", { command: "ls" })] });
  const closed = Promise.withResolvers<undefined>();
  const asked = Promise.withResolvers<void>();
  const run = open(server, () => {
    asked.resolve();
    return closed.promise;
  });
  await asked.promise;
  // The connection rejects its requests, and then fires the signal.
  closed.resolve(undefined);
  await Promise.resolve();
  run.leave.abort();
  await expect(run.ended).rejects.toThrow(/abort/);
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(changes(server.requests)).toEqual([expect.stringMatching(/^POST \/workflows\//)]);
});

test("the question about a write has the file of the task's work tree, and its marks are visible", async () => {
  const contents: ToolCallUpdate["content"][] = [];
  const write = { path: "src/a.ts", content: "a\u202E\u2028b\n" };
  const other = { key: "a\u202Eb" };
  for (const call of [
    [working, approval("write", write)],
    [working, approval("mcp__x", other)],
    [approval("write", write)],
  ]) {
    const asked = Promise.withResolvers<void>();
    const run = open(serve({ events: call }), async ({ content }) => {
      contents.push(content);
      asked.resolve();
      return { outcome: "selected", optionId: "allow" };
    });
    await asked.promise;
    run.leave.abort();
    await run.ended.catch(() => undefined);
  }
  const text = (words: string) => [{ type: "content", content: { type: "text", text: words } }];
  expect(contents).toEqual([
    [{ type: "diff", path: "/top/.kit/work/cart.1.1/shop/src/a.ts", newText: "a\\u202e\\u2028b\n" }],
    text('{"key":"a\\u202eb"}'),
    text('{"path":"src/a.ts","content":"a\\u202e\\u2028b\\n"}'),
  ]);
});
