import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { openStage, resultsOf, rolesOf } from "../../testing/backend/backend-stage.ts";
import type { Script } from "../../testing/scripted-model.ts";
import { backendContract } from "../contract.suite.ts";
import type { BackendChoice } from "../contract.ts";
import { handoverTests, instructions, noting } from "../handover.suite.ts";
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

    /** A desk that transfers to Billing and Repairs, which may transfer back. */
    const shop = ({ tools }: GoogleAdkWork): GoogleAdkAgent =>
      new LlmAgent({
        name: "Desk",
        instruction: instructions.Desk,
        subAgents: (["Billing", "Repairs"] as const).map(
          (name) =>
            new LlmAgent({
              name,
              description: `Does ${name}.`,
              instruction: instructions[name],
              tools,
            }),
        ),
      });

    const outputSchema = { type: "OBJECT", properties: { sum: { type: "NUMBER" } }, required: ["sum"] };
    const rm = () => new FunctionTool({ name: "rm", description: "Removes.", execute: () => "gone" });
    const A = (config: object) => new LlmAgent({ name: "A", ...config });
    const transfer = (agentName: string) => ({ name: "transfer_to_agent", input: { agentName } });

    handoverTests({
      projectRoot: vendors,
      shop: () => googleAdk(shop),
      whole: () => googleAdk({ agent: new LlmAgent({ name: "Desk", instruction: instructions.Desk }) }),
      typed: () => googleAdk(({ tools }) => new LlmAgent({ name: "Sums", tools, outputSchema })),
      refused: () =>
        (
          [
            [A({ tools: [rm()] }), /"A" has a tool "rm" that the operation does not have/],
            [A({ subAgents: [new LlmAgent({ name: "B", tools: [rm()] })] }), /"B" has a tool "rm"/],
            [A({ beforeToolCallback: () => ({ result: "mine" }) }), /beforeToolCallback/],
            [A({ afterModelCallback: [() => undefined] }), /afterModelCallback/],
            [A({ codeExecutor: {} }), /code executor/],
            [A({ mode: "task" }), /`mode`/],
            [A({ includeContents: "none" }), /includeContents/],
            [
              new SequentialAgent({ name: "Steps", subAgents: [A({})] }),
              /"Steps" is not an `LlmAgent`, but a Seq/,
            ],
          ] as const
        ).map(([agent, said]) => [googleAdk({ agent }), said]),
      call: transfer,
      offers(tools) {
        const last = tools.at(-1);
        const schema = last?.type === "function" ? JSON.stringify(last.inputSchema) : "";
        return Object.keys(instructions).filter((name) => schema.includes(`"${name}"`));
      },
      second: /transferred to Repairs in the same turn/,
    });

    test("a transfer to an agent that is not there does not take place, and the model is told", async () => {
      const asked: string[] = [];
      const stage = stageOf(
        googleAdk(shop),
        noting([{ toolCalls: [transfer("Kitchen")] }, { text: "I stay." }], asked),
      );
      expect((await stage.agent.session().prompt("go")).text).toBe("I stay.");
      expect(asked[1]).toBe("You greet.");
      expect(resultsOf(await stage.log())[0]).toMatch(/not what transfer_to_agent takes/);
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
