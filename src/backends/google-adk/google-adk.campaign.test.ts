import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { nextEvent, openStage, requires, resultsOf, rolesOf } from "../../testing/backend/backend-stage.ts";
import type { Script, ScriptedTurn } from "../../testing/scripted-model.ts";
import { backendContract } from "../contract.suite.ts";
import type { BackendChoice } from "../contract.ts";
import { loadPeer } from "../load-peer.ts";
import { type GoogleAdkAgent, type GoogleAdkWork, googleAdk } from "./google-adk.ts";

const vendors = fileURLToPath(new URL("../../../vendors", import.meta.url));

type Made = new (config: Readonly<Record<string, unknown>>) => GoogleAdkAgent;

describe.skipIf(!existsSync(`${vendors}/node_modules/@google/adk`))(
  "google_adk, with the package of npm run test:vendors",
  () => {
    let LlmAgent: Made;
    let SequentialAgent: Made;
    let FunctionTool: Made;

    beforeAll(async () => {
      const use = { from: vendors, what: "The test", packages: [] };
      ({ LlmAgent, SequentialAgent, FunctionTool } = await loadPeer<{
        readonly LlmAgent: Made;
        readonly SequentialAgent: Made;
        readonly FunctionTool: Made;
      }>("@google/adk", use));
    });

    backendContract({ name: "google_adk", create: () => "google_adk", projectRoot: vendors });

    const stageOf = (backend: BackendChoice, script: Script, over = {}) =>
      openStage({ create: () => backend, projectRoot: vendors }, { script, ...over });

    /** A desk that transfers to Billing, which may transfer back. */
    const shop = ({ tools }: GoogleAdkWork): GoogleAdkAgent =>
      new LlmAgent({
        name: "Desk",
        instruction: "You greet.",
        subAgents: ["Billing", "Repairs"].map(
          (name) =>
            new LlmAgent({ name, description: `Does ${name}.`, instruction: `You do ${name}.`, tools }),
        ),
      });

    /** Notes the instructions that each turn is asked under: a scripted model keeps prompts that go on changing. */
    function noting(script: readonly ScriptedTurn[], asked: string[]): Script {
      let turn = 0;
      return ({ prompt }) => {
        const system = JSON.stringify(prompt[0]);
        asked.push(
          ["You greet.", "You do Billing.", "You do Repairs."].find((words) => system.includes(words)) ??
            system,
        );
        turn += 1;
        return script[turn - 1] ?? { error: new Error("one turn too many") };
      };
    }

    const transfer = (agentName: string) => ({
      name: "transfer_to_agent",
      id: agentName,
      input: { agentName },
    });
    const to = (agentName: string): ScriptedTurn => ({ toolCalls: [transfer(agentName)] });

    test("the agent that the work is transferred to goes on with its own instructions and tools, shown as a task", async () => {
      const asked: string[] = [];
      const script = [to("Billing"), requires("lamp"), to("Desk"), { text: "Bye." }];
      const stage = stageOf(googleAdk(shop), noting(script, asked));
      expect((await stage.agent.session().prompt("the lamp?")).text).toBe("Bye.");
      expect(stage.ran).toEqual(["price lamp"]);
      expect(asked).toEqual(["You greet.", "You do Billing.", "You do Billing.", "You greet."]);
      const offered = stage.model.calls.map(({ tools = [] }) => {
        const last = tools.at(-1);
        const names = last?.type === "function" ? JSON.stringify(last.inputSchema) : "";
        return [
          tools.some(({ name }) => name === "price"),
          ["Desk", "Billing", "Repairs"].filter((name) => names.includes(`"${name}"`)),
        ];
      });
      expect(offered).toEqual([
        [false, ["Billing", "Repairs"]],
        [true, ["Desk", "Repairs"]],
        [true, ["Desk", "Repairs"]],
        [false, ["Billing", "Repairs"]],
      ]);
      const tasks = stage.events.flatMap((event): readonly unknown[] => {
        if (event.type === "task_start")
          return [["start", event.task_agent, event.tool_call_id !== undefined]];
        if (event.type === "task_end") return [["end", event.is_error]];
        return event.type === "tool_start" ? [event.tool] : [];
      });
      expect(tasks).toEqual([
        "transfer_to_agent",
        ["start", "Billing", true],
        "price",
        "transfer_to_agent",
        ["end", false],
        ["start", "Desk", true],
        ["end", false],
      ]);
      expect(rolesOf(await stage.log())).toBe("user assistant tool assistant tool assistant tool assistant");
    });

    test("the first of two transfers in one turn counts, and the model is told", async () => {
      const both = { toolCalls: [transfer("Repairs"), transfer("Billing")] };
      const asked: string[] = [];
      const stage = stageOf(googleAdk(shop), noting([both, { text: "Fixed." }], asked));
      expect((await stage.agent.session().prompt("go")).text).toBe("Fixed.");
      expect(asked[1]).toBe("You do Repairs.");
      expect(resultsOf(await stage.log())[1]).toMatch(/transferred to Repairs in the same turn/);
      expect(stage.events.filter(({ type }) => type === "task_start")).toHaveLength(1);
    });

    test("a transfer to an agent that is not there does not take place, and the model is told", async () => {
      const asked: string[] = [];
      const stage = stageOf(googleAdk(shop), noting([to("Kitchen"), { text: "I stay." }], asked));
      expect((await stage.agent.session().prompt("go")).text).toBe("I stay.");
      expect(asked[1]).toBe("You greet.");
      expect(resultsOf(await stage.log())[0]).toMatch(/not what transfer_to_agent takes/);
    });

    test("a transfer that the agent's policy asks for and a person denies does not take place", async () => {
      const rules = {
        profile: { approvals: { tools: ["transfer_to_*"] } },
        over: { approvals: createApprovals() },
      };
      const asked: string[] = [];
      const stage = stageOf(googleAdk(shop), noting([to("Billing"), { text: "I stay." }], asked), rules);
      const request = nextEvent(stage.agent, "approval_request");
      const answer = stage.agent.session().prompt("go");
      await stage.agent.approvals.decide((await request).approval_id, { approved: false });
      expect((await answer).text).toBe("I stay.");
      expect(asked).toEqual(["You greet.", "You greet."]);
      expect(stage.events.filter(({ type }) => type === "task_start")).toEqual([]);
    });

    test("a repair, and work after a crash, go on with the agent that has it; a new question begins anew", async () => {
      const schema = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };
      const script = [to("Billing"), { text: "twelve" }, { text: '{"sum": 12}' }, { text: "Hello again." }];
      const asked: string[] = [];
      const stage = stageOf(googleAdk(shop), noting(script, asked));
      const session = stage.agent.session();
      expect((await session.prompt("sum up", { result: schema })).result).toEqual({ sum: 12 });
      expect((await session.prompt("hello")).text).toBe("Hello again.");
      expect(asked).toEqual(["You greet.", "You do Billing.", "You do Billing.", "You greet."]);

      const store = new InMemorySessionStore();
      const hang: Script = ({ prompt }) =>
        prompt.at(-1)?.role === "tool" ? { deltas: ["…"], delayMs: 1e6 } : to("Billing");
      const first = stageOf(googleAdk(shop), hang, { over: { store } });
      const dying = first.agent.session().prompt("go", { operationId: "op_1" });
      dying.catch(() => undefined);
      await expect.poll(() => first.model.calls).toHaveLength(2);
      const again: string[] = [];
      const second = stageOf(googleAdk(shop), noting([{ text: "Billed." }], again), { over: { store } });
      expect((await second.agent.session().prompt("go", { operationId: "op_1" })).text).toBe("Billed.");
      expect(again).toEqual(["You do Billing."]);
    });

    test("agents that are given whole get the operation's tools, and serve operations side by side", async () => {
      const backend = googleAdk({ agent: new LlmAgent({ name: "Desk", instruction: "You greet." }) });
      const script: Script = ({ prompt }) =>
        prompt.at(-1)?.role === "tool" ? { text: "done" } : requires("cup");
      const stages = [stageOf(backend, script), stageOf(backend, script)];
      const texts = await Promise.all(
        stages.map(async ({ agent }) => (await agent.session().prompt("go")).text),
      );
      expect(texts).toEqual(["done", "done"]);
      for (const { ran } of stages) expect(ran).toEqual(["price cup"]);
    });

    test("an agent's typed output is asked of the provider, and what does not fit is an error", async () => {
      const outputSchema = { type: "OBJECT", properties: { sum: { type: "NUMBER" } }, required: ["sum"] };
      const backend = googleAdk(({ tools }) => new LlmAgent({ name: "Sums", tools, outputSchema }));
      const stage = stageOf(backend, [requires("cup"), { text: 'It is {"sum": 12}' }, { text: "twelve" }]);
      const session = stage.agent.session();
      expect((await session.prompt("sum")).text).toBe('It is {"sum": 12}');
      expect(stage.ran).toEqual(["price cup"]);
      expect(stage.model.calls[0]?.tools?.map(({ name }) => name)).not.toContain("set_model_response");
      await expect(session.prompt("again")).rejects.toMatchObject({ code: "typed_output" });
    });

    test("a callback that answers in the model's place gives the answer, and one that throws ends the operation", async () => {
      const said = (text: string) => ({ content: { role: "model", parts: [{ text }] } });
      const stops = new LlmAgent({ name: "Guard", beforeModelCallback: () => said("Not with me.") });
      const stage = stageOf(googleAdk({ agent: stops }), []);
      expect((await stage.agent.session().prompt("go")).text).toBe("Not with me.");
      expect(rolesOf(await stage.log())).toBe("user assistant");
      const adds = new LlmAgent({ name: "Adds", afterAgentCallback: () => said("That was all.").content });
      const added = stageOf(googleAdk({ agent: adds }), [{ text: "Hello." }]);
      expect((await added.agent.session().prompt("go")).text).toBe("That was all.");
      const throws = new LlmAgent({
        name: "Broken",
        beforeModelCallback: () => {
          throw new Error("no disk");
        },
      });
      const broken = stageOf(googleAdk({ agent: throws }), []);
      await expect(broken.agent.session().prompt("go")).rejects.toThrow(/"Broken" failed: no disk/);
    });

    test("an option that kit could not enforce is refused before the model is asked", async () => {
      const rm = new FunctionTool({ name: "rm", description: "Removes.", execute: () => "gone" });
      const B = () => new LlmAgent({ name: "B", tools: [rm] });
      const A = (config: object) => new LlmAgent({ name: "A", ...config });
      for (const [agent, said] of [
        [A({ tools: [rm] }), /"A" has a tool "rm" that the operation does not have/],
        [A({ subAgents: [B()] }), /"B" has a tool "rm"/],
        [A({ beforeToolCallback: () => ({ result: "mine" }) }), /beforeToolCallback/],
        [A({ afterModelCallback: [() => undefined] }), /afterModelCallback/],
        [A({ codeExecutor: {} }), /code executor/],
        [A({ mode: "task" }), /`mode`/],
        [A({ includeContents: "none" }), /includeContents/],
        [
          new SequentialAgent({ name: "Steps", subAgents: [A({})] }),
          /"Steps" is not an `LlmAgent`, but a Seq/,
        ],
      ] as const) {
        const stage = stageOf(googleAdk({ agent }), []);
        await expect(stage.agent.session().prompt("go")).rejects.toMatchObject({
          code: "invalid_request",
          message: expect.stringMatching(said),
        });
        expect(stage.model.calls).toEqual([]);
      }
    });

    test("the package says nothing, sends nothing, traces nothing and leaves signals to kit", () => {
      const program = `
        const { googleAdk } = await import("./src/backends/google-adk/google-adk.ts");
        const { openStage } = await import("./src/testing/backend/backend-stage.ts");
        const { context, trace } = await import("@opentelemetry/api");
        const { AsyncLocalStorageContextManager } = await import("@opentelemetry/context-async-hooks");
        const { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } = await import("@opentelemetry/sdk-trace");
        const exporter = new InMemorySpanExporter();
        trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
        context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
        globalThis.fetch = () => { throw new Error("sent"); };
        const look = {
          name: "look", description: "Looks.", input: { type: "object" },
          execute: () => trace.getTracer("shop").startActiveSpan("own", (span) => (span.end(), "seen")),
        };
        const calls = ["look", "fail"].map((name) => ({ name, id: name }));
        const stage = openStage(
          { create: () => googleAdk(), projectRoot: "vendors" },
          { script: [{ toolCalls: calls }, { text: "done" }], profile: { tools: [look] } },
        );
        await stage.agent.session().prompt("go");
        const names = ["SIGINT", "SIGTERM", "unhandledRejection", "beforeExit"];
        console.log(names.map((name) => process.listenerCount(name)).join());
        console.log(exporter.getFinishedSpans().map(({ name }) => name).join());
      `;
      const out = execFileSync(process.execPath, ["--input-type=module", "-e", program], {
        env: {
          ...process.env,
          GOOGLE_API_KEY: "AI-canary",
          OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
        },
        encoding: "utf8",
        stdio: "pipe",
      });
      expect(out).toBe("0,0,0,0\nown\n");
    });
  },
);
