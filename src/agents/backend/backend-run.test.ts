import { expect, test } from "vitest";
import type { AgentBackend, BackendOperation, BackendTurn } from "../../backends/contract.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { nextEvent, openStage, requires, resultsOf, rolesOf } from "../../testing/backend/backend-stage.ts";
import type { Script } from "../../testing/scripted-model.ts";
import type { AgentRuntime } from "../agent-runtime.ts";
import { createApprovals } from "../approvals/approvals.ts";

type Run = (operation: BackendOperation) => Promise<unknown>;

function backendOf(run: Run, capabilities: AgentBackend["capabilities"] = {}): AgentBackend {
  return {
    name: "own",
    capabilities,
    async run(operation) {
      await run(operation);
    },
  };
}

function open(
  run: Run,
  script: Script,
  over: Partial<AgentRuntime> & { readonly backend?: AgentBackend } = {},
) {
  const { backend = backendOf(run), ...runtime } = over;
  return openStage({ create: () => backend }, { script, over: runtime });
}

test("a backend calls the model with its own messages and system prompt, and the log has both turns", async () => {
  const stage = open(
    async (operation) => {
      await operation.turn({ system: "Plan.", tools: [] });
      await operation.turn({
        system: "Do.",
        messages: [{ role: "user", content: [{ type: "text", text: "only this" }], timestamp: "" }],
      });
    },
    [{ text: "a plan" }, { text: "done" }],
  );
  expect((await stage.agent.session().prompt("go")).text).toBe("done");
  const [plan, act] = stage.model.calls;
  expect(plan?.tools).toBeUndefined();
  expect(JSON.stringify(act?.prompt)).toContain("Do.");
  expect(JSON.stringify(act?.prompt)).not.toContain("a plan");
  expect(act?.tools?.length).toBeGreaterThan(0);
  expect(rolesOf(await stage.log())).toBe("user assistant assistant");
});

test("a side question is billed and logged, and later turns do not see it", async () => {
  const seen: unknown[] = [];
  const stage = open(
    async (operation) => {
      const [one, two] = await Promise.all([
        operation.turn({ aside: true, system: "one?" }),
        operation.turn({ aside: true, system: "two?", schema: { type: "object", required: ["ok"] } }),
      ]);
      seen.push(one.text, two.value);
      await operation.turn();
    },
    ({ prompt }) => {
      const system = JSON.stringify(prompt[0]);
      if (system.includes("one?")) return { text: "side one", usage: { input: 1 } };
      if (system.includes("two?")) return { text: 'Sure: {"ok": true}', usage: { input: 2 } };
      return { text: "done", usage: { input: 4 } };
    },
  );
  const { usage, metadata } = await stage.agent.session().prompt("go");
  expect(seen).toEqual(["side one", { ok: true }]);
  expect([usage.input, metadata.turns]).toEqual([7, 3]);
  expect(rolesOf(await stage.log())).toBe("user assistant");
  expect(JSON.stringify(stage.model.calls[2]?.prompt)).not.toContain("side one");
});

test("a turn has only the offered tools and those of the backend itself", async () => {
  const calls: string[][] = [];
  const stage = open(
    async (operation) => {
      const hand = {
        name: "hand_over",
        description: "Hands over.",
        schema: { type: "object" },
        run: ({ to }: Readonly<Record<string, unknown>>) => `over to ${String(to)}`,
      };
      const turn = await operation.turn({ tools: [hand] });
      calls.push(turn.calls.map(({ tool }) => tool));
      await operation.turn();
    },
    [
      {
        toolCalls: [
          { name: "price", id: "a" },
          { name: "hand_over", id: "b", input: { to: "Ann" } },
        ],
      },
      { text: "done" },
    ],
  );
  expect((await stage.agent.session().prompt("go")).text).toBe("done");
  expect(calls).toEqual([["hand_over"]]);
  const [price, hand] = resultsOf(await stage.log());
  expect(price).toContain('no tool named "price"');
  expect(hand).toBe("over to Ann");
  expect(stage.ran).toEqual([]);
});

test("open calls run before the next turn, and are closed with a note when the backend ends", async () => {
  const stage = open(
    async (operation) => {
      await operation.turn();
      await operation.turn();
    },
    [requires("cup"), requires("pot", { text: "Looking." }), { text: "Yes." }],
  );
  const { text } = await stage.agent.session().prompt("go");
  expect(text).toBe("Looking.");
  expect(stage.ran).toEqual(["price cup"]);
  expect(resultsOf(await stage.log())[1]).toContain("not run");
  expect((await stage.agent.session().prompt("go on", { backend: "typed" })).text).toBe("Yes.");
});

test("a backend calls tools itself, under the same policy, and writes its own answer", async () => {
  const stage = open(
    async (operation) => {
      const { content } = await operation.call("price", { article: "jar" });
      const denied = await operation.call("pay", { amount: 1 });
      operation.answer(`${JSON.stringify(content)} ${denied.is_error}`);
    },
    [{ text: "next" }],
  );
  const stream = stage.agent.session().stream("go");
  let said = "";
  for await (const event of stream) if (event.type === "text_delta") said += event.text;
  const { text, metadata } = await stream.result;
  expect(text).toContain("jar costs 12");
  expect(text).toContain("true");
  expect(said).toBe(text);
  expect(metadata.turns).toBe(0);
  expect(stage.ran).toEqual(["price jar"]);
  expect(rolesOf(await stage.log())).toBe("user assistant tool assistant tool assistant");
  const next = await stage.agent.session().prompt("and?", { backend: "typed" });
  expect(next.text).toBe("next");
});

test.each<{ readonly what: string; readonly run: Run; readonly script?: Script; readonly error: object }>([
  {
    what: "swallows what a turn rejects with",
    run: async (operation) => operation.turn().catch(() => operation.answer("fine")),
    error: { code: "invalid_request" },
  },
  {
    what: "throws something else than the turn did",
    run: async (operation) => {
      await operation.turn().catch(() => {
        throw new Error("framework error");
      });
    },
    script: [{ error: Object.assign(new Error("no"), { statusCode: 401 }) }],
    error: { code: "model_error" },
  },
  {
    what: "asks for a call that no turn had",
    run: (operation) => operation.tool("call_9_9"),
    error: { code: "invalid_request" },
  },
  {
    what: "ends without asking anything",
    run: async () => undefined,
    error: { code: "internal_error", message: expect.stringContaining('"own" ended without an answer') },
  },
  {
    what: "offers a tool that is not there",
    run: (operation) => operation.turn({ tools: ["prise"] }),
    error: { message: expect.stringContaining("did you mean price?") },
  },
  {
    what: "gives an aside tools",
    run: (operation) => operation.turn({ aside: true, tools: ["price"] }),
    error: { code: "invalid_request" },
  },
  {
    what: "keeps too much",
    run: (operation) => operation.state.save("x".repeat(1_048_577)),
    error: { code: "payload_too_large" },
  },
  { what: "fails by itself", run: () => Promise.reject(new TypeError("mine")), error: { message: "mine" } },
])("a backend that $what fails its operation with that error", async ({ run, script = [], error }) => {
  const stage = open(run, script);
  await expect(stage.agent.session().prompt("go")).rejects.toMatchObject(error);
  expect(stage.events.filter(({ type }) => type === "operation")).toMatchObject([{ is_error: true }]);
});

test("an operation ends only after the work that its backend left running", async () => {
  let slow: Promise<BackendTurn> | undefined;
  const stage = open(
    async (operation) => {
      slow = operation.turn();
      throw new Error("too early");
    },
    [{ text: "late", delayMs: 20 }],
  );
  await expect(stage.agent.session().prompt("go")).rejects.toThrow("too early");
  expect(rolesOf(await stage.log())).toBe("user assistant");
  expect((await slow)?.text).toBe("late");
});

test("an ended operation does no more work for its backend", async () => {
  let kept: BackendOperation | undefined;
  const stage = open(
    async (operation) => {
      kept = operation;
      await operation.turn();
    },
    [{ text: "done" }],
  );
  await stage.agent.session().prompt("go");
  await expect(kept?.turn()).rejects.toMatchObject({ code: "invalid_request" });
});

test("a backend's question waits like an approval, also over a restart, and is asked once", async () => {
  const store = new InMemorySessionStore();
  const ask: Run = async (operation) => {
    const { approved, by } = await operation.ask({ id: "q1", name: "publish", args: { page: 1 } });
    operation.answer(`${approved} by ${by}`);
  };
  const first = open(ask, [], { store, approvals: createApprovals() });
  const asked = nextEvent(first.agent, "approval_request");
  first.agent
    .session()
    .prompt("go", { operationId: "op_1" })
    .catch(() => undefined);
  const { approval_id, tool, args } = await asked;
  expect([tool, args]).toEqual(["publish", { page: 1 }]);
  const second = open(ask, [], { store, approvals: createApprovals() });
  const again = nextEvent(second.agent, "approval_request");
  const answer = second.agent.session().prompt("go", { operationId: "op_1" });
  expect((await again).approval_id).toBe(approval_id);
  await second.agent.approvals.decide(approval_id, { approved: true, by: "Ann" });
  expect((await answer).text).toBe("true by Ann");
  const tools = second.events.filter(({ type }) => type.startsWith("tool_") || type.startsWith("approval"));
  expect(tools.map(({ type }) => type)).toEqual(["tool_start", "approval_request", "approval", "tool_end"]);
});

test("a backend with state resumes there, and gets the turns it has not seen again", async () => {
  const backendThat = (isCut: (step: number) => boolean): AgentBackend =>
    backendOf(
      async (operation) => {
        const [done = 0] = operation.state.load().slice(-1) as number[];
        const said: string[] = [];
        for (let step = done; step < 3; step += 1) {
          said.push((await operation.turn({ system: `step ${step}` })).text);
          if (isCut(step)) await new Promise(() => undefined);
          await operation.state.save(step + 1);
        }
        operation.answer(said.join(" "));
      },
      { state: true },
    );
  const store = new InMemorySessionStore();
  const script: Script = ({ prompt }) => ({
    text: `to ${JSON.stringify(prompt[0]?.content).slice(1, 7)}`,
    usage: { input: 1 },
  });
  const life = (cut: number) =>
    openStage({ create: () => backendThat((step) => step === cut) }, { script, over: { store } });
  const first = life(1);
  const turns = new Promise<void>((resolve) => {
    let seen = 0;
    first.agent.onEvent(({ type }) => {
      if (type === "turn_end") seen += 1;
      if (seen === 2) resolve();
    });
  });
  first.agent
    .session()
    .prompt("go", { operationId: "op_1" })
    .catch(() => undefined);
  await turns;
  const second = life(3);
  const { text, usage, metadata } = await second.agent.session().prompt("go", { operationId: "op_1" });
  expect(text).toBe("to step 1 to step 2");
  expect(second.model.calls).toHaveLength(1);
  expect([usage.input, metadata.turns]).toEqual([3, 3]);
  const third = life(0);
  expect((await third.agent.session().prompt("go", { operationId: "op_1" })).text).toBe(text);
  expect(third.model.calls).toHaveLength(0);
});

test("a call that a backend made before its interruption does not run again", async () => {
  const store = new InMemorySessionStore();
  const ran: string[] = [];
  const life = (dies: boolean) => {
    const shop: Run = async (operation) => {
      operation.state.load();
      await operation.state.save("begun");
      const { content } = await operation.call("price", { article: "jar" });
      if (dies) await new Promise(() => undefined);
      operation.answer(JSON.stringify(content));
    };
    return openStage(
      { create: () => backendOf(shop, { state: true }) },
      { script: [], ran, over: { store } },
    );
  };
  const first = life(true);
  const done = nextEvent(first.agent, "turn_end");
  first.agent
    .session()
    .prompt("go", { operationId: "op_1" })
    .catch(() => undefined);
  await done;
  const second = life(false);
  const { text } = await second.agent.session().prompt("go", { operationId: "op_1" });
  expect(text).toContain("jar costs 12");
  expect(ran).toEqual(["price jar"]);
});

test("a backend copies files into and out of its agent's sandbox", async () => {
  const { virtual } = await import("../../sandboxes/virtual/virtual-sandbox.ts");
  const copied: string[] = [];
  const stage = openStage(
    {
      create: () =>
        backendOf(async (operation) => {
          const { files } = operation;
          await files.upload("a/b.txt", new TextEncoder().encode("bytes"));
          copied.push(new TextDecoder().decode(await files.download("a/b.txt")));
          operation.answer("ok");
        }),
    },
    { script: [], over: { sandbox: virtual() } },
  );
  const { text } = await stage.agent.session().prompt("go");
  expect([text, ...copied]).toEqual(["ok", "bytes"]);
  await stage.agent.close();
});
