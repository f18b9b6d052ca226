import type { SubjectName } from "./subjects.ts";

/** The packages of each peer's server, which are installed in a separate folder below `bench/peers`. */
export const peerPackages: Readonly<Partial<Record<SubjectName, Readonly<Record<string, string>>>>> = {
  voltagent: {
    "@voltagent/core": "2.10.0",
    "@voltagent/libsql": "2.1.2",
    "@voltagent/logger": "2.0.2",
    "@voltagent/server-hono": "2.0.14",
    ai: "6.0.322",
    zod: "4.6.7",
  },
  "mastra-server": {
    "@hono/node-server": "2.1.8",
    "@mastra/core": "1.71.0",
    "@mastra/hono": "1.7.9",
    "@mastra/libsql": "1.23.1",
    "@mastra/memory": "1.31.0",
    hono: "4.13.19",
    zod: "4.6.7",
  },
};
