import { createHash } from "node:crypto";
import type { Owned } from "../cluster.ts";
import type { Job } from "../shared/queue/job.ts";

/**
 * The number of shards. All instances and runs of a shard have the same owner. There are many more shards than nodes, so
 * that nodes get nearly equal shares. Rows store shards, so the number never changes.
 */
export const shardCount = 256;

/** The prefix of functions' node ids. Shards that a function owned last can be without an owner until work comes to them. */
export const functionPrefix = "function-";

const sessionLine = "session/";

/** The shard of an agent's instance, with all its sessions, or of a run. */
export function shardOf(owned: Owned): number {
  return "run_id" in owned
    ? hash(`run\0${owned.run_id}`)
    : hash(`agent\0${owned.agent}\0${owned.instance_id}`);
}

/** The shard of queued work: `lineOf` names the session, a run's job is named after the run. */
export function shardOfJob({ id, line }: Pick<Job, "id" | "line">): number {
  if (!line.startsWith(sessionLine)) return shardOf({ run_id: id });
  const [agent = "", instance_id = ""] = line.slice(sessionLine.length).split("\0");
  return shardOf({ agent, instance_id });
}

/** The shard of an event stream; `undefined` if the stream belongs to neither an instance nor a run. */
export function shardOfStream(stream: string): number | undefined {
  const [, agent, instance_id] = /^agent\/([^/]*)\/(.*)$/s.exec(stream) ?? [];
  if (agent !== undefined && instance_id !== undefined) return shardOf({ agent, instance_id });
  return stream.startsWith("run/") ? shardOf({ run_id: stream.slice(4) }) : undefined;
}

/** A cache of shards by name: the shard of an input is computed about a dozen times while it is processed. */
const shardCache = new Map<string, number>();
const maxCached = 5_000;

function hash(text: string): number {
  const cached = shardCache.get(text);
  if (cached !== undefined) return cached;
  const shard = createHash("sha1").update(text).digest().readUInt32BE(0) % shardCount;
  if (shardCache.size >= maxCached) shardCache.clear();
  shardCache.set(text, shard);
  return shard;
}

/** The name space of the locks: two clusters in different schemas of a database do not share locks. */
export function lockSpaceOf({ schema }: { readonly schema: string }): string {
  return `kit shards of ${schema}`;
}

/** A subquery for the shards that any node has locked; `space` is the SQL parameter for `lockSpaceOf`. */
export function lockedShards(space: string): string {
  return `SELECT objid::int FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = hashtext(${space})::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
}
