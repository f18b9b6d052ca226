import { beforeAll, expect, test } from "vitest";
import type { KitEvent } from "../protocol/event.ts";
import { serveForTests } from "../server/testing/serve-for-tests.ts";
import { KitClient } from "./kit-client.ts";

const apiKey = "key~of/some+signs?";
let client: KitClient;

const served = serveForTests({ access: { apiKeys: [apiKey] } });
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url, apiKey });
});

async function collect(events: AsyncIterable<KitEvent>): Promise<readonly KitEvent[]> {
  const all: KitEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

function said(events: readonly KitEvent[]): string {
  return events.map((event) => (event.type === "text_delta" ? event.text : "")).join("");
}

test("the client reads health, agents and workflows", async () => {
  expect(await client.health()).toMatchObject({ ok: true, name: "kit" });
  const { agents, workflows } = await client.routes();
  expect(agents.find(({ name }) => name === "hidden")?.triggers).toEqual({ webhook: false });
  expect(workflows.map(({ name }) => name)).toContain("strict");
});

test("the default agent answers a prompt and streams its events", async () => {
  expect((await client.prompt("Good morning")).text).toBe("Good morning");
  const stream = client.stream({ message: "one two three", session: "second" });
  const events = await collect(stream);
  expect(said(events)).toBe("one two three");
  expect(events.at(0)?.session).toBe("second");
  expect((await stream.result()).text).toBe("one two three");
});

test("an agent answers, remembers, and forgets", async () => {
  const reply = await client.agents.invoke("echo", { id: "pr 7 ä?#%", message: "hello", session: "s" });
  expect(reply).toMatchObject({ text: "hello", model: { id: expect.any(String) } });
  const history = await client.agents.history("echo", { id: "pr 7 ä?#%", session: "s" });
  expect(history.map(({ role }) => role)).toEqual(["user", "assistant"]);
  await client.agents.delete("echo", { id: "pr 7 ä?#%" });
  await expect(client.agents.history("echo", { id: "pr 7 ä?#%", session: "s" })).rejects.toMatchObject({
    code: "not_found",
    meta: { status: 404 },
  });
});

test("a stream returns its result without a reader of its events", async () => {
  expect((await client.agents.stream("echo", { id: "1", message: "hello" }).result()).text).toBe("hello");
});

test("a stream of failed work throws the error to its reader and from its result", async () => {
  const stream = client.agents.stream("echo", { id: "failing", message: "fail for good" });
  await expect(collect(stream)).rejects.toMatchObject({ code: "context_overflow" });
  await expect(stream.result()).rejects.toMatchObject({ code: "context_overflow" });
});

test("a reader that stops reading a stream aborts the prompt", async () => {
  const stream = client.agents.stream("echo", { id: "left", message: "slow" });
  for await (const event of stream) if (event.type === "text_delta") break;
  await expect(stream.result()).rejects.toMatchObject({ code: "aborted" });
  // The session is free again: the next prompt need not wait 30 seconds.
  expect((await client.agents.invoke("echo", { id: "left", message: "next" })).text).toBe("next");
});

test("a signal aborts a call and a stream with its own reason", async () => {
  const reason = new Error("enough");
  const stop = new AbortController();
  const stream = client.agents.stream("echo", { id: "signal", message: "slow" }, { signal: stop.signal });
  const reading = (async () => {
    for await (const event of stream) if (event.type === "text_delta") stop.abort(reason);
  })();
  await expect(reading).rejects.toBe(reason);
  await expect(client.health({ signal: stop.signal })).rejects.toBe(reason);
});

test("a dispatch is accepted and executed, and its outcome can be read", async () => {
  const input = { id: "later", input: "do it" };
  const accepted = await client.agents.dispatch("echo", input, { idempotencyKey: "d-1" });
  expect(accepted.status).toBe("accepted");
  expect(await client.agents.dispatch("echo", input, { idempotencyKey: "d-1" })).toEqual(accepted);
  const events: KitEvent[] = [];
  for await (const event of client.agents.events("echo", { id: "later" })) {
    events.push(event);
    if (event.type === "operation") break;
  }
  expect(said(events)).toBe("do it");
  const after = events.at(-2)?.index ?? 0;
  for await (const event of client.agents.events("echo", { id: "later", after })) {
    expect(event.index).toBe(after + 1);
    break;
  }
  const record = await client.dispatches.get(accepted.dispatch_id);
  expect(record).toMatchObject({ agent: "echo", instance_id: "later", input: "do it" });
  const page = await client.dispatches.list({ agent: "echo", instance_id: "later", limit: 1 });
  expect(page.dispatches.map(({ dispatch_id }) => dispatch_id)).toEqual([accepted.dispatch_id]);
});

test("a dead letter is listed and retried; a queued dispatch is cancelled", async () => {
  const { dispatch_id } = await client.agents.dispatch("echo", { id: "dead", input: "fail for good" });
  await served.service.engine.awaitDispatch(dispatch_id);
  const { dispatches } = await client.dispatches.list({ status: "failed" });
  expect(dispatches.map((record) => record.dispatch_id)).toContain(dispatch_id);
  expect((await client.dispatches.retry(dispatch_id)).status).toBe("queued");
  await served.service.engine.awaitDispatch(dispatch_id);
  expect(await client.dispatches.cancel(dispatch_id)).toBe(false);
  await expect(client.dispatches.get("dispatch_unknown")).rejects.toMatchObject({ code: "not_found" });
});

test("the work of an agent is aborted", async () => {
  const prompt = client.agents.invoke("echo", { id: "busy", message: "hold" });
  const failed = expect(prompt).rejects.toMatchObject({ code: "aborted" });
  await served.echo.held(1);
  expect(await client.agents.abort("echo", { id: "busy" })).toBe(true);
  await failed;
});

test("a tool call waits for approval and then continues", async () => {
  const stream = client.agents.stream("careful", { id: "1", message: "pay 5" });
  let ran = "";
  for await (const event of stream) {
    if (event.type === "approval_request") {
      const [waiting] = await client.agents.approvals("careful", { id: "1" });
      expect(waiting).toMatchObject({ tool: "pay", args: { cents: 5 } });
      await client.agents.approve("careful", { id: "1", approval_id: event.approval_id, approved: true });
    }
    if (event.type === "tool_end") ran = event.result;
  }
  expect(ran).toBe("Paid 5 cents.");
  expect((await stream.result()).text).toBe("It is done.");
});

test("a workflow can be run for its result, for its events, or in the background", async () => {
  expect(await client.workflows.invoke("strict", { n: 21 })).toMatchObject({ result: { doubled: 42 } });
  const stream = client.workflows.stream("talking", { lines: 3 });
  const events = await collect(stream);
  expect(events.filter(({ type }) => type === "log")).toHaveLength(3);
  const { run_id, result } = await stream.result();
  expect(result).toBe("done");
  expect(await client.runs.get(run_id)).toMatchObject({ workflow: "talking", status: "completed" });
  expect(await collect(client.runs.stream(run_id))).toEqual(events);
  const rest = await collect(client.runs.stream(run_id, { after: events.at(1)?.index ?? 0 }));
  expect(rest).toEqual(events.slice(2));
  const logs = await client.runs.events(run_id, { types: ["log", "run_end"], limit: 2 });
  expect(logs.events.map(({ type }) => type)).toEqual(["log", "log"]);
});

test("a run waits for a signal, and another is cancelled", async () => {
  const started = await client.workflows.start("waiting");
  await client.runs.signal(started.run_id, { name: "word", payload: "yes" });
  expect(await client.runs.stream(started.run_id).result()).toMatchObject({ result: { said: "yes" } });
  const other = await client.workflows.start("waiting", {}, { idempotencyKey: "w-1" });
  expect(await client.workflows.start("waiting", {}, { idempotencyKey: "w-1" })).toEqual(other);
  expect(await client.runs.cancel(other.run_id)).toBe(true);
  await expect(client.runs.stream(other.run_id).result()).rejects.toMatchObject({
    code: "aborted",
    meta: { run_id: other.run_id },
  });
  const { runs } = await client.runs.list({ workflow: "waiting", status: "cancelled" });
  expect(runs.map(({ run_id }) => run_id)).toEqual([other.run_id]);
});

test("a workflow's failure names the run's id and contains no secrets", async () => {
  const failure: unknown = await client.workflows.invoke("failing").catch((error: unknown) => error);
  expect(failure).toMatchObject({ meta: { run_id: expect.stringMatching(/^run_/) } });
  expect(String(failure)).not.toContain("secret");
  await expect(client.workflows.invoke("strict", { n: "many" })).rejects.toMatchObject({
    code: "invalid_request",
    meta: { issues: [{ path: expect.any(String), message: expect.any(String) }] },
  });
});

test("the client reads guidelines and specs", async () => {
  const { guidelines, total_count } = await client.guidelines.list({ q: "cents" });
  expect(total_count).toBe(1);
  const [money] = guidelines;
  expect(await client.guidelines.get(money?.id ?? "")).toEqual(money);
  expect((await client.guidelines.export("fw_c")).filename).toBe("CLAUDE.md");
  const converted = await client.guidelines.convert({ guideline_id: money?.id ?? "", format: "steering" });
  expect(converted.filename).toBe("money.md");
  const { specs } = await client.specs.list({ q: "cents", limit: 5 });
  expect(await client.specs.get(specs[0]?.id ?? "")).toEqual(specs[0]);
  expect(await client.specs.diagnostics()).toBeInstanceOf(Array);
  expect((await client.specs.graph()).nodes.length).toBeGreaterThan(0);
  expect((await client.specs.impact({ files: ["CLAUDE.md"] })).affected.length).toBeGreaterThan(0);
  const paged = await client.specs.impact({ files: ["CLAUDE.md"], limit: 1 });
  expect(paged).toMatchObject({ affected: [expect.anything()], obsolete_count: 0, same_feature: [] });
  expect(await client.specs.coverage({ show: "uncovered", limit: 5 })).toMatchObject({
    criteria: expect.any(Array),
    total_count: expect.any(Number),
  });
  expect(await client.specs.stale({ limit: 5 })).toMatchObject({ stale: [], total_count: 0 });
  await expect(client.specs.coverage({ cursor: "x" })).rejects.toMatchObject({ code: "invalid_request" });
  expect(await client.specs.validate([{}])).toMatchObject({ valid: false });
});

test("a wrong key, an unknown agent and an invalid name have different errors", async () => {
  const stranger = new KitClient({ baseUrl: served.url, apiKey: "wrong" });
  expect(await stranger.health()).toMatchObject({ ok: true });
  await expect(stranger.agents.list()).rejects.toMatchObject({ code: "unauthorized", meta: { status: 401 } });
  await expect(collect(stranger.agents.events("echo", { id: "1" }))).rejects.toMatchObject({
    code: "unauthorized",
  });
  await expect(client.agents.invoke("no-such-agent", { id: "1", message: "x" })).rejects.toMatchObject({
    code: "agent_not_found",
  });
  for (const id of ["", ".", ".."]) {
    await expect(client.agents.delete("echo", { id })).rejects.toMatchObject({ code: "invalid_request" });
  }
});
