import { expect, test } from "vitest";
import { z } from "zod";
import { KitClient } from "./kit-client.ts";

// Modules as `typeof import(…)` gives them.
const release = {
  payload: z.object({ version: z.string(), notes: z.string().default("") }),
  run: async (_: unknown) => ({ published: true, at: new Date(), undo: () => undefined }),
};
const nightly = { run: async (_: unknown) => 7 };
interface Defined<Payload, Result> {
  readonly kind: "kit.workflow";
  readonly "~types"?: { readonly payload: (payload: Payload) => void; readonly result: Result } | undefined;
}
interface Project {
  readonly agents: { readonly reviewer: object };
  readonly workflows: {
    readonly release: typeof release;
    readonly nightly: typeof nightly;
    readonly defined: { readonly default: Defined<{ readonly size: number }, readonly string[]> };
    readonly plain: object;
  };
}

test("a client of a project checks names, payloads and results", () => {
  const { agents, workflows } = new KitClient<Project>({ baseUrl: "http://127.0.0.1:1" });
  const calls = [
    async () => (await agents.invoke("reviewer", { id: "1", message: "Look." })).text.length,
    // @ts-expect-error: there is no such agent.
    () => agents.invoke("reviewerr", { id: "1", message: "Look." }),
    // @ts-expect-error: the field is called `message`.
    () => agents.stream("reviewer", { id: "1", mesage: "Look." }),
    async () => {
      const { result } = await workflows.invoke("release", { version: "1.0.0" });
      const at: string = result.at;
      const published: boolean = result.published;
      // @ts-expect-error: functions do not come over the wire.
      result.undo();
      return [at, published];
    },
    // @ts-expect-error: there is no such workflow.
    () => workflows.invoke("relaese", { version: "1.0.0" }),
    // @ts-expect-error: the payload has no such field.
    () => workflows.invoke("release", { verzion: "1.0.0" }),
    // @ts-expect-error: the payload is needed.
    () => workflows.start("release"),
    async () => (await workflows.invoke("nightly")).result.toFixed(),
    async () => (await workflows.stream("defined", { size: 1 }).result()).result[0]?.length,
    // @ts-expect-error: a size is a number.
    () => workflows.start("defined", { size: "1" }),
    async () => (await workflows.connect("release")).invoke({ version: "1.0.0" }),
    // @ts-expect-error: the same over a WebSocket.
    async () => (await workflows.connect("release")).invoke({}),
    async () =>
      (await workflows.invoke("kit.verify", { feature: "cart", task: "1" })).result.end === "closed",
    // @ts-expect-error: a verdict has no such end.
    async () => (await workflows.invoke("kit.verify")).result.end === "done",
    // @ts-expect-error: kit.verify takes no such field.
    () => workflows.start("kit.verify", { features: "cart" }),
    async () => {
      const { result } = await workflows.invoke("plain", { anything: 1 });
      // @ts-expect-error: a workflow without types has a result of which nothing is known.
      return result.length;
    },
  ];
  expect(calls).toHaveLength(16);
});

test("a client without a project accepts any name and any payload", () => {
  const { agents, workflows } = new KitClient({ baseUrl: "http://127.0.0.1:1" });
  const calls = [
    () => agents.invoke("any", { id: "1", message: "Look." }),
    async () => (await workflows.invoke("any", { thing: 1 })).result,
    () => workflows.start("any"),
  ];
  expect(calls).toHaveLength(3);
});
