import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { readEventStream } from "../testing/read-event-stream.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

// As `createAgent` of kit makes them: vitest finds no package of that name beside a temporary file.
const cashier = (name: string): string => `{
  kind: "kit.agent",
  describe: async () => ({
    ${name}
    tools: [{
      name: "pay",
      description: "Pays an amount.",
      input: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
      needsApproval: true,
      execute: ({ cents }) => \`Paid \${cents} cents.\`,
    }],
  }),
}`;

const refund = (agent: string): string => `export async function run(ctx) {
  const agent = await ctx.init(${agent});
  return (await agent.session().prompt("pay 5")).text;
}
`;

const served = serveForTests({
  files: {
    "src/agents/unseen.ts": `export const triggers = { webhook: false };\nexport default ${cashier("")};\n`,
    "src/workflows/refund-unseen.ts": `import unseen from "../agents/unseen.ts";\n${refund("unseen")}`,
    "src/workflows/refund-own.ts": `const own = ${cashier('name: "own",')};\n${refund("own")}`,
  },
});
afterAll(() => expect(served.errors).toEqual([]));

test("calls of agents that only a workflow reaches are listed and decided", async () => {
  for (const agent of ["own", "unseen"]) {
    const { body } = await served.send(`/workflows/refund-${agent}`, { body: {} });
    const { run_id } = body;
    const waiting = await approvalOf(run_id);
    expect(waiting).toMatchObject({ agent, instance_id: run_id, tool: "pay" });
    const path = `/agents/${agent}/${run_id}/approvals`;
    const listed = await served.send(path);
    expect(listed.body.approvals).toMatchObject([{ approval_id: waiting.approval_id, agent }]);
    for (const query of ["", `?agent=${agent}`, `?instance_id=${run_id}&session=default`]) {
      expect((await served.send(`/approvals${query}`)).body).toEqual(listed.body);
    }
    expect((await served.send("/approvals?session=other")).body).toEqual({ approvals: [] });
    const decide = () => served.send(`${path}/${waiting.approval_id}`, { body: { approved: true } });
    expect(await decide()).toMatchObject({ status: 200, body: { approved: true } });
    const first = { approved: true };
    const second = { status: 404, body: { error: { type: "not_found", meta: { decision: first } } } };
    expect(await decide()).toMatchObject(second);
    const withArgs = { approved: true, args: { cents: 9 } };
    expect(await served.send(`${path}/${waiting.approval_id}`, { body: withArgs })).toMatchObject(second);
    expect(await served.service.engine.awaitRun(run_id)).toMatchObject({ result: "It is done." });
    expect((await served.send(path)).body).toEqual({ approvals: [] });
    // That is all that is within reach of it.
    const prompted = await served.send(`/agents/${agent}/${run_id}`, { body: { message: "pay 5" } });
    expect(prompted.status).toBe(404);
  }
});

test("a dispatch and its operation say that they wait for a decision, and no longer after it", async () => {
  const target = { agent: "unseen", instance_id: "waits", session: "default" };
  const { dispatch_id } = await served.service.dispatch(target, "pay 5");
  const states = async () => {
    const record = (await served.send(`/dispatches/${dispatch_id}`)).body;
    const [listed] = (await served.send("/dispatches?instance_id=waits")).body.dispatches;
    const [operation] = (await served.service.operations(target)).operations;
    return [record.waits_for_approval, listed.waits_for_approval, operation?.status];
  };
  await expect.poll(states).toEqual([true, true, "waiting"]);
  const [call] = (await served.send("/approvals?instance_id=waits")).body.approvals;
  expect(call).toMatchObject({ dispatch_id });
  await served.service.approvals.decide(call.approval_id, { approved: true });
  await served.service.engine.awaitDispatch(dispatch_id);
  expect(await states()).toEqual([undefined, undefined, "completed"]);
});

async function approvalOf(runId: string): Promise<{ readonly approval_id: string }> {
  for await (const { data } of readEventStream(await served.stream(`/runs/${runId}/stream`))) {
    if (data.type === "approval_request") return data;
  }
  throw new Error("Nothing waits.");
}

test("approvals are listed in pages, oldest first, even if the last one of a page was decided in the meantime", async () => {
  for (const number of [1, 2, 3, 4, 5]) {
    const body = { input: `pay ${number}` };
    await served.send(`/agents/careful/page-${number}/dispatch`, { body });
    await expect
      .poll(async () => (await served.send(`/agents/careful/page-${number}/approvals`)).body.approvals.length)
      .toBe(1);
  }
  const list = async (query: string) => (await served.send(`/approvals?agent=careful&${query}`)).body;
  const idsOf = (page: { approvals: readonly { instance_id: string }[] }) =>
    page.approvals.map(({ instance_id }) => instance_id);
  const first = await list("limit=2");
  expect(idsOf(first)).toEqual(["page-1", "page-2"]);
  const { instance_id, approval_id } = first.approvals[1];
  await served.send(`/agents/careful/${instance_id}/approvals/${approval_id}`, { body: { approved: false } });
  const second = await list(`limit=2&cursor=${encodeURIComponent(first.next_cursor)}`);
  expect(idsOf(second)).toEqual(["page-3", "page-4"]);
  const last = await list(`limit=2&cursor=${encodeURIComponent(second.next_cursor)}`);
  expect([idsOf(last), last.next_cursor]).toEqual([["page-5"], undefined]);
  for (const query of ["limit=0", "limit=1001", "cursor=x"])
    expect((await served.send(`/approvals?${query}`)).status).toBe(400);
});

const editable = `export const triggers = { webhook: true };
const pay = {
  name: "pay",
  description: "Pays an amount.",
  input: { type: "object", properties: { cents: { type: "integer", minimum: 1 } }, required: ["cents"] },
  needsApproval: true,
  editableArguments: true,
  touches: () => ["ledger.md"],
  execute: ({ cents }) => \`Paid \${cents} cents.\`,
};
const hooks = { beforeTool: ({ args }) => (args.cents > 1000 ? { refuse: "More than the limit." } : undefined) };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay], hooks }) };
`;

describe("arguments that an approver can change", () => {
  let service: ServedService;
  beforeAll(async () => {
    service = await serveService({ files: { "src/agents/editable.ts": editable } });
  });
  afterAll(async () => {
    expect(service.errors).toEqual([]);
    await service.close();
  });

  async function requestApproval(id: string) {
    const { body } = await service.send(`/agents/editable/${id}/dispatch`, { body: { input: "pay 5" } });
    const list = async () => (await service.send(`/agents/editable/${id}/approvals`)).body.approvals;
    await expect.poll(async () => (await list()).length).toBe(1);
    const [request] = await list();
    const decide = (decision: object) =>
      service.send(`/agents/editable/${id}/approvals/${request.approval_id}`, { body: decision });
    const result = async () => {
      await service.service.engine.awaitDispatch(body.dispatch_id);
      const { messages } = (await service.send(`/agents/editable/${id}/history`)).body;
      return messages.find(({ role }: { role: string }) => role === "tool").content[0];
    };
    return { request, decide, result };
  }

  test("are accepted over a WebSocket too, with the same checks as over HTTP", async () => {
    const { request, result } = await requestApproval("socket");
    await using connection = await new KitClient({ baseUrl: service.url }).agents.connect("editable", {
      id: "socket",
    });
    const { approval_id } = request;
    const approve = (cents: unknown) => connection.approve({ approval_id, approved: true, args: { cents } });
    await expect(approve("many")).rejects.toMatchObject({ code: "invalid_request" });
    await approve(9);
    expect((await result()).content[0].text).toContain("Paid 9 cents.");
  });

  test("replace the model's arguments; the model reads what changed, and the event has the new arguments", async () => {
    const { request, decide, result } = await requestApproval("changed");
    expect(request).toMatchObject({ input_schema: { required: ["cents"] }, touches: ["ledger.md"] });
    expect(await decide({ approved: true, args: { cents: 7 } })).toMatchObject({ status: 200 });
    const { content } = await result();
    expect(content[0].text).toBe(
      '[The arguments were changed before the call was approved: {"cents":7}]\nPaid 7 cents.',
    );
    const { operations } = (await service.send("/agents/editable/changed/operations")).body;
    const { events } = (
      await service.send(
        `/agents/editable/changed/operations/${operations[0].operation_id}/events?types=approval,tool_start`,
      )
    ).body;
    expect(events).toMatchObject([
      { type: "tool_start", args: { cents: 5 } },
      { type: "approval", approved: true, args: { cents: 7 } },
    ]);
  });

  test("are refused if they do not match the schema, and the call keeps waiting", async () => {
    const { decide, result } = await requestApproval("refused");
    for (const args of [{ cents: 0 }, { cents: "7" }, {}])
      expect(await decide({ approved: true, args })).toMatchObject({
        status: 400,
        body: {
          error: { type: "invalid_request", meta: { issues: [{ path: expect.stringContaining("args") }] } },
        },
      });
    expect(await decide({ approved: true, args: [1] })).toMatchObject({ status: 400 });
    expect(await decide({ approved: false, args: { cents: 7 } })).toMatchObject({ status: 400 });
    expect(await decide({ approved: true })).toMatchObject({ status: 200 });
    expect((await result()).content[0].text).toBe("Paid 5 cents.");
  });

  test("are checked by the hooks again: a refused call does not run", async () => {
    const { decide, result } = await requestApproval("hooked");
    expect(await decide({ approved: true, args: { cents: 2_000 } })).toMatchObject({ status: 200 });
    const { content, is_error } = await result();
    expect(content[0].text).toContain("More than the limit.");
    expect(is_error).toBe(true);
  });

  test("cannot be changed if the tool does not allow it", async () => {
    const { body } = await service.send("/agents/careful/fixed/dispatch", { body: { input: "pay 5" } });
    const list = async () => (await service.send("/agents/careful/fixed/approvals")).body.approvals;
    await expect.poll(async () => (await list()).length).toBe(1);
    const [request] = await list();
    expect(request.input_schema).toBeUndefined();
    const path = `/agents/careful/fixed/approvals/${request.approval_id}`;
    const refused = await service.send(path, { body: { approved: true, args: { cents: 7 } } });
    expect(refused).toMatchObject({ status: 400, body: { error: { type: "invalid_request" } } });
    expect(refused.body.error.message).toContain("editableArguments");
    await service.send(path, { body: { approved: false } });
    await service.service.engine.awaitDispatch(body.dispatch_id);
  });
});
