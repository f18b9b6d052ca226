import { z } from "zod";
import type { Infer } from "./fields.ts";

/** A process that shares the work. Times are ISO 8601, from the engine's clock. */
const clusterNodeSchema = z
  .object({
    node: z.string(),
    /** The name of its machine. */
    host: z.string(),
    /** Absent for a process that serves no HTTP. */
    address: z.string().optional().meta({ description: "The address at which other nodes reach this node." }),
    version: z.string().meta({ description: "The version of kit." }),
    project: z.string().optional(),
    state: z.enum(["working", "draining", "silent"]).meta({
      description:
        "`draining`: it accepts no more work. `silent`: it has sent no heartbeat for more than a second.",
    }),
    started_at: z.string(),
    last_beat_at: z.string(),
    beat_age_ms: z.int(),
    clock_ahead_ms: z
      .int()
      .optional()
      .meta({ description: "How far the node's clock is ahead of the engine's clock; negative if behind." }),
    shards: z.int().meta({ description: "Number of shards that the node owns." }),
    running: z.int().meta({ description: "Number of inputs and runs that the node is executing." }),
    queued: z.int().meta({ description: "Number of inputs and runs that wait on this node." }),
    is_this: z.boolean().meta({ description: "Whether this node sent the reply." }),
  })
  .meta({ id: "ClusterNode" });
export interface ClusterNodeState extends Infer<typeof clusterNodeSchema> {}

/** A fault for the operator. */
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
      "held_runs",
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
      .meta({ description: "`postgres`, `embedded`, `memory`, or the name of another engine." }),
    distributed: z.boolean().meta({ description: "Whether several machines share the work." }),
    nodes: z.array(clusterNodeSchema).meta({ description: "Oldest first." }),
    shards: z.int().meta({ description: "Number of shards into which the work is divided." }),
    unowned_shards: z.int(),
    queued_dispatches: z.int(),
    running_dispatches: z.int(),
    queued_runs: z.int(),
    running_runs: z.int(),
    waiting_runs: z.int(),
    held_runs: z.int().optional().meta({
      description: "Those of `waiting_runs` whose code is missing, broken or does not match their journal.",
    }),
    dead_letters: z.int(),
    /** Absent if no work waits to start. */
    oldest_queued_at: z
      .string()
      .optional()
      .meta({ description: "When the oldest work that has not started was accepted." }),
    problems: z.array(clusterProblemSchema),
  })
  .meta({ id: "Cluster" });
export interface ClusterState extends Infer<typeof clusterSchema> {}
