import { join } from "node:path";
import { loadPeer } from "../../runtime/peers/install-peer.ts";
import { toModelV2 } from "../../runtime/subjects/mastra.ts";
import type { Serve } from "../subject.ts";
import { freePort, untilListening } from "./listen.ts";

type Made = new (options: unknown) => unknown;

/** VoltAgent's server, with its memory in LibSQL, and no telemetry. */
export const serveVoltAgent: Serve = async ({ folder }) => {
  // Otherwise its warnings to the terminal would be measured too.
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
  const load = <Module>(specifier: string): Promise<Module> => loadPeer<Module>("voltagent", specifier);
  const { Agent, VoltAgent, Memory }: { Agent: Made; VoltAgent: Made; Memory: Made } =
    await load("@voltagent/core");
  const { LibSQLMemoryAdapter }: { LibSQLMemoryAdapter: Made } = await load("@voltagent/libsql");
  const { honoServer }: { honoServer(options: unknown): unknown } = await load("@voltagent/server-hono");
  const { createPinoLogger }: { createPinoLogger(options: unknown): unknown } =
    await load("@voltagent/logger");
  const logger = createPinoLogger({ name: "bench", level: "silent" });
  const url = `file:${join(folder, "voltagent.db")}`;
  const agent = new Agent({
    id: "bench",
    name: "bench",
    instructions: "You help.",
    model: toModelV2("answer"),
    memory: new Memory({ storage: new LibSQLMemoryAdapter({ url }) }),
    logger,
  });
  const port = await freePort();
  const server = honoServer({ port, hostname: "127.0.0.1", enableSwaggerUI: false });
  new VoltAgent({ agents: { bench: agent }, server, logger, checkDependencies: false });
  await untilListening(port);
  return port;
};
