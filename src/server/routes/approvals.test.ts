import { afterAll, beforeAll, expect, test } from "vitest";
import { readEventStream } from "../testing/read-event-stream.ts";
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

let served: ServedService;
beforeAll(async () => {
  served = await serveService({
    files: {
      "src/agents/unseen.ts": `export const triggers = { webhook: false };\nexport default ${cashier("")};\n`,
      "src/workflows/refund-unseen.ts": `import unseen from "../agents/unseen.ts";\n${refund("unseen")}`,
      "src/workflows/refund-own.ts": `const own = ${cashier('name: "own",')};\n${refund("own")}`,
    },
  });
});
afterAll(async () => {
  expect(served.errors).toEqual([]);
  await served.close();
});

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
    expect(await decide()).toMatchObject({ status: 404, body: { error: { type: "not_found" } } });
    expect(await served.service.engine.awaitRun(run_id)).toMatchObject({ result: "It is done." });
    expect((await served.send(path)).body).toEqual({ approvals: [] });
    // That is all that is within reach of it.
    const prompted = await served.send(`/agents/${agent}/${run_id}`, { body: { message: "pay 5" } });
    expect(prompted.status).toBe(404);
  }
});

async function approvalOf(runId: string): Promise<{ readonly approval_id: string }> {
  for await (const { data } of readEventStream(await served.stream(`/runs/${runId}/stream`))) {
    if (data.type === "approval_request") return data;
  }
  throw new Error("Nothing waits.");
}

test("approvals come in pages, oldest first, also when the last one of a page was decided since", async () => {
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
