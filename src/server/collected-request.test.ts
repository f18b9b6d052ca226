import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../agents/define/create-agent.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { serveApplication } from "./serve-application.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

test.each(["application/json", "text/event-stream"])(
  "a prompt answered as %s stops when the platform aborts the request",
  async (accept) => {
    const begun = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<unknown>();
    const model = createScriptedModel(async ({ abortSignal }) => {
      begun.resolve();
      abortSignal?.addEventListener("abort", () => stopped.resolve("stopped"), { once: true });
      return { text: String(await stopped.promise) };
    });
    const served = await serveApplication(
      {
        name: "shop",
        files: {},
        modules: {
          "kit.config.ts": async () => ({ default: { server: { expose: "all" } } }),
          "src/agents/helper.ts": async () => ({ default: createAgent({ model }) }),
        },
      },
      { env: {} },
    );
    onTestFinished(() => served.close({ timeoutMs: 0 }));
    const client = new AbortController();
    const send = (): Promise<Response> =>
      served.fetch(
        new Request("http://localhost/agents/helper/1", {
          method: "POST",
          headers: { accept, "content-type": "application/json" },
          body: JSON.stringify({ message: "Hello" }),
          signal: client.signal,
        }),
      );
    const reply = send();
    reply.catch(() => undefined);
    await begun.promise;
    for (let turn = 0; turn < 5; turn += 1) {
      await setImmediate();
      collectGarbage();
    }
    client.abort();
    const waited = new Promise((resolve) => setTimeout(resolve, 5_000, "still running"));
    expect(await Promise.race([stopped.promise, waited])).toBe("stopped");
  },
);
