import type { RequestListener } from "node:http";
import { join } from "node:path";
import { loadPeer } from "../../runtime/peers/install-peer.ts";
import { toModelV2 } from "../../runtime/subjects/mastra.ts";
import type { Serve } from "../subject.ts";
import { listen } from "./listen.ts";

type Made<Instance = unknown> = new (options: unknown) => Instance;
type App = { readonly fetch: unknown };

/** Mastra behind its adapter for Hono, with its memory in LibSQL. */
export const serveMastra: Serve = async ({ folder }) => {
  const load = <Module>(specifier: string): Promise<Module> => loadPeer<Module>("mastra-server", specifier);
  const { Mastra }: { Mastra: Made } = await load("@mastra/core");
  const { Agent }: { Agent: Made } = await load("@mastra/core/agent");
  const { Memory }: { Memory: Made } = await load("@mastra/memory");
  const { LibSQLStore }: { LibSQLStore: Made } = await load("@mastra/libsql");
  const { MastraServer }: { MastraServer: Made<{ init(): Promise<void> }> } = await load("@mastra/hono");
  const { Hono }: { Hono: new () => App } = await load("hono");
  const { getRequestListener }: { getRequestListener(fetch: unknown): RequestListener } =
    await load("@hono/node-server");
  const storage = new LibSQLStore({ id: "bench", url: `file:${join(folder, "mastra.db")}` });
  const agent = new Agent({
    id: "bench",
    name: "bench",
    instructions: "You help.",
    model: toModelV2("answer"),
    memory: new Memory({ storage, options: { semanticRecall: false, generateTitle: false } }),
  });
  const mastra = new Mastra({ agents: { bench: agent }, storage, logger: false });
  const app = new Hono();
  await new MastraServer({ app, mastra }).init();
  return await listen(getRequestListener(app.fetch));
};
