import { z } from "zod";
import type { Infer } from "./fields.ts";

/** A process that shares the work. Times are ISO 8601, by the engine's clock. */
const clusterNodeSchema = z
  .object({
    node: z.string(),
    /** The name of its machine. */
    host: z.string(),
    /** Absent for a process that serves no HTTP. */
    address: z.string().optional().meta({ description: "Where other nodes reach it." }),
    version: z.string().meta({ description: "Of kit." }),
    project: z.string().optional(),
    state: z.enum(["working", "draining", "silent"]).meta({
      description:
        "`draining`: it takes no more work. `silent`: it has not been heard for longer than a second.",
    }),
    started_at: z.string(),
    last_beat_at: z.string(),
    beat_age_ms: z.int(),
    clock_ahead_ms: z.int().optional().meta({ description: "Its time of day against the engine's clock." }),
    shards: z.int().meta({ description: "Its parts of the work." }),
    running: z.int().meta({ description: "Inputs and runs at work." }),
    queued: z.int().meta({ description: "Inputs and runs that it is to begin." }),
    is_this: z.boolean().meta({ description: "Whether it is the node that answers." }),
  })
  .meta({ id: "ClusterNode" });
export interface ClusterNodeState extends Infer<typeof clusterNodeSchema> {}

/** A fault for an operator to look at. */
const clusterProblemSchema = z
  .object({
    code: z.enum([
      "silent_node",
      "several_versions",
      "several_projects",
      "clock_skew",
      "unowned_shards",
      "no_address",
      "no_notifications",
      "missing_right",
      "engine_problem",
    ]),
    message: z.string(),
    hint: z.string().optional(),
    node: z.string().optional(),
  })
  .meta({ id: "ClusterProblem" });
export interface ClusterProblem extends Infer<typeof clusterProblemSchema> {}

/** The reply of `GET /cluster`. */
export const clusterSchema = z
  .object({
    engine: z
      .string()
      .meta({ description: "`postgres`, `embedded` or `memory`; another engine's own name." }),
    distributed: z.boolean().meta({ description: "Whether several machines share the work." }),
    nodes: z.array(clusterNodeSchema).meta({ description: "Oldest first." }),
    shards: z.int().meta({ description: "Parts into which the work is divided." }),
    unowned_shards: z.int(),
    queued_dispatches: z.int(),
    running_dispatches: z.int(),
    queued_runs: z.int(),
    running_runs: z.int(),
    waiting_runs: z.int(),
    dead_letters: z.int(),
    /** Absent where nothing waits to begin. */
    oldest_queued_at: z
      .string()
      .optional()
      .meta({ description: "When the oldest of what has not begun was accepted." }),
    problems: z.array(clusterProblemSchema),
  })
  .meta({ id: "Cluster" });
export interface ClusterState extends Infer<typeof clusterSchema> {}
