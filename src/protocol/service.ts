import { z } from "zod";
import type { Infer } from "./fields.ts";
import { indexingSchema } from "./indexing.ts";

/** The reply of `GET /health`. */
export const healthSchema = z
  .object({ ok: z.literal(true), name: z.literal("kit"), version: z.string() })
  .meta({ id: "Health" });
export interface Health extends Infer<typeof healthSchema> {}

/** The reply of `GET /` to a client that asks for JSON: the content of the project and links to its routes. */
export const overviewSchema = z
  .object({
    name: z.literal("kit"),
    version: z.string(),
    project: z.string(),
    specs: z.int(),
    specs_by_framework: z.record(z.string(), z.int()),
    guidelines: z.int(),
    guidelines_by_source: z.record(z.string(), z.int()),
    indexing: indexingSchema.optional(),
    /** Absent if the server has no agents to prompt. */
    agents: z
      .array(z.string())
      .optional()
      .meta({ description: "Names of the agents that the server serves." }),
    workflows: z.array(z.string()).optional(),
    links: z.record(z.string(), z.string()),
  })
  .meta({ id: "Overview" });
export interface Overview extends Infer<typeof overviewSchema> {}

/** The result of one check of `kit doctor`. */
const findingSchema = z
  .object({
    name: z.string(),
    status: z.enum(["ok", "warning", "error"]),
    message: z.string(),
    hint: z.string().optional().meta({ description: "How to fix it, in one or more lines." }),
  })
  .meta({ id: "Finding" });
export interface Finding extends Infer<typeof findingSchema> {}

/** The reply of `GET /server`. */
export const serverStateSchema = z
  .object({
    version: z.string().meta({ description: "The version of kit." }),
    node: z.string().meta({ description: "The version of Node." }),
    project: z.string(),
    started_at: z.string(),
    console: z.union([z.boolean(), z.literal("read")]),
    expose: z.enum(["declared", "all"]),
    keys: z
      .array(z.string())
      .meta({ description: "The ids of the API keys: `key_` and the start of their SHA-256." }),
    has_auth: z.boolean().meta({ description: "Whether the configuration has a function `auth`." }),
    has_authorize: z.boolean(),
    limits: z.record(z.string(), z.number()).meta({ description: "Milliseconds (`_ms`), bytes and counts." }),
    configuration: z.record(z.string(), z.unknown()).optional().meta({
      description:
        "The configuration in effect, without secrets; code is replaced by its name. Absent for a server that a program starts.",
    }),
    findings: z.array(findingSchema).meta({ description: "Faults, warnings and passed checks." }),
  })
  .meta({ id: "ServerState" });
export interface ServerState extends Infer<typeof serverStateSchema> {}
