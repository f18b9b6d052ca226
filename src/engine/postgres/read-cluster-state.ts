import { isoTime } from "../../base/clock.ts";
import type { ClusterNodeState, ClusterProblem, ClusterState } from "../../protocol/cluster.ts";
import { heldRuns } from "../cluster-state.ts";
import type { EngineLoad } from "../contract.ts";
import { databaseNow } from "./engine-database.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { functionPrefix, shardCount } from "./shards.ts";

/** A node whose last heartbeat is older counts as silent; the heartbeat is sent every 200 ms. */
const silentMs = 1_000;
/** A larger difference of clocks is a problem for the operator. */
const skewMs = 5_000;
/** A node without a notification for longer is deaf; each node notifies itself every two seconds. */
const deafMs = 6_000;

interface NodeRow {
  readonly node: string;
  readonly host: string;
  readonly address: string | null;
  readonly version: string;
  readonly project: string | null;
  readonly draining: boolean;
  readonly begun: string;
  readonly beaten: string;
  readonly now: number;
  readonly ahead: number | null;
  readonly news_age_ms: number | null;
  readonly problem: string | null;
  readonly shards: number;
  readonly running: number;
  readonly queued: number;
  readonly endable: boolean;
}

type Totals = Record<
  | "queued_dispatches"
  | "running_dispatches"
  | "queued_runs"
  | "running_runs"
  | "waiting_runs"
  | "held_runs"
  | "dead_letters",
  string
> & { readonly oldest: string | null };

/** The nodes of a shared database, their work, and their problems. */
export async function clusterState(base: PostgresBase): Promise<ClusterState> {
  const { database, ownership } = base;
  const rows = await database.rows<NodeRow>(nodesQuery);
  const { unowned = 0 } = (await database.row<{ unowned: number }>(unownedQuery)) ?? {};
  const nodes = rows.map((row) => toNode(row, ownership.node));
  const load = await engineLoad(base, 0);
  return {
    engine: "postgres",
    distributed: true,
    nodes,
    shards: shardCount,
    unowned_shards: unowned,
    running_dispatches: 0,
    ...load,
    problems: [...problemsOf(nodes, unowned), ...rows.flatMap(problemsOfRow), ...heldRuns(load)],
  };
}

/** Counts waiting and running work of the whole cluster; `attached` is the number of inputs that wait on this node without being stored. */
export async function engineLoad({ database }: PostgresBase, attached: number): Promise<EngineLoad> {
  const totals = await database.row<Totals>(totalsQuery);
  const count = (name: Exclude<keyof Totals, "oldest">): number => Number(totals?.[name] ?? 0);
  const oldest = totals?.oldest ?? undefined;
  return {
    queued_dispatches: count("queued_dispatches") + attached,
    running_dispatches: count("running_dispatches"),
    queued_runs: count("queued_runs"),
    running_runs: count("running_runs"),
    waiting_runs: count("waiting_runs"),
    held_runs: count("held_runs"),
    dead_letters: count("dead_letters"),
    ...(oldest === undefined ? {} : { oldest_queued_at: isoTime(Number(oldest)) }),
  };
}

const counted = (table: string, status: string): string =>
  `(SELECT count(*) FROM $s.${table} WHERE status = '${status}' AND ended_at IS NULL AND shard = ANY(own.shards))`;

const nodesQuery = `
SELECT n.node, host, address, version, project, draining, clock_ahead_ms AS ahead, news_age_ms, problem,
  (extract(epoch FROM started_at) * 1000)::bigint::text AS begun,
  (extract(epoch FROM beat) * 1000)::bigint::text AS beaten, ${databaseNow} AS now,
  cardinality(own.shards) AS shards,
  (${counted("dispatches", "running")} + ${counted("runs", "running")})::int AS running,
  (${counted("dispatches", "queued")} + ${counted("runs", "queued")})::int AS queued,
  coalesce(role.rolname = current_user OR (pg_has_role(role.oid, 'USAGE') AND NOT role.rolsuper)
    OR pg_has_role('pg_signal_backend', 'USAGE'), true) AS endable
FROM $s.nodes AS n
  LEFT JOIN pg_stat_activity AS a ON a.pid = n.backend
  LEFT JOIN pg_roles AS role ON role.oid = a.usesysid,
  LATERAL (SELECT coalesce(array_agg(shard), '{}') AS shards FROM $s.shards WHERE shards.node = n.node) AS own
ORDER BY started_at, n.node`;

const totalsQuery = `
SELECT (SELECT count(*) FROM $s.dispatches WHERE status = 'queued' AND ended_at IS NULL) AS queued_dispatches,
  (SELECT count(*) FROM $s.dispatches WHERE status = 'running' AND ended_at IS NULL) AS running_dispatches,
  (SELECT count(*) FROM $s.dispatches WHERE status = 'failed' AND ended_at IS NOT NULL AND result IS NULL) AS dead_letters,
  (SELECT count(*) FROM $s.runs WHERE status = 'queued') AS queued_runs,
  (SELECT count(*) FROM $s.runs WHERE status = 'running') AS running_runs,
  (SELECT count(*) FROM $s.runs WHERE status = 'waiting') AS waiting_runs,
  (SELECT count(*) FROM $s.runs WHERE problem IS NOT NULL AND status = 'waiting') AS held_runs,
  least((SELECT min(accepted_at) FROM $s.dispatches WHERE status = 'queued' AND ended_at IS NULL AND started_at IS NULL),
    (SELECT min(accepted_at) FROM $s.runs WHERE status = 'queued' AND started_at IS NULL))::text AS oldest`;

/** Counts the shards without an owner that should have one: nodes that take shards on request leave the others free, and functions end with their requests. */
const unownedQuery = `
SELECT count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM $s.nodes AS n WHERE n.node = s.node)
  AND (shares > 0 OR (others = 0 AND CASE WHEN s.node IS NULL THEN functions = 0 ELSE NOT s.node LIKE '${functionPrefix}%' END)))::int
  AS unowned
FROM $s.shards AS s,
  (SELECT count(*) FILTER (WHERE takes = 'share') AS shares, count(*) FILTER (WHERE takes <> 'share') AS others
   FROM $s.nodes) AS live,
  (SELECT count(*) FILTER (WHERE node LIKE '${functionPrefix}%') AS functions FROM $s.shards) AS had`;

function toNode(row: NodeRow, self: string): ClusterNodeState {
  const { node, host, address, version, project, draining, ahead, now, shards, running, queued } = row;
  const beat_age_ms = Math.max(0, now - Number(row.beaten));
  return {
    node,
    host,
    ...(address === null ? {} : { address }),
    version,
    ...(project === null ? {} : { project }),
    state: beat_age_ms > silentMs ? "silent" : draining ? "draining" : "working",
    started_at: isoTime(Number(row.begun)),
    last_beat_at: isoTime(Number(row.beaten)),
    beat_age_ms,
    ...(ahead === null ? {} : { clock_ahead_ms: Number(ahead) }),
    shards,
    running,
    queued,
    is_this: node === self,
  };
}

/** The problems of the cluster and of its nodes, for operators. */
function problemsOf(nodes: readonly ClusterNodeState[], unowned: number): ClusterProblem[] {
  const problems: ClusterProblem[] = [];
  const working = nodes.filter(({ state }) => state === "working");
  const versions = tally(nodes.map(({ version }) => version));
  if (versions.size > 1) {
    problems.push({
      code: "several_versions",
      message: `The nodes run different versions of kit: ${listed(versions)}.`,
      hint: "Finish the deploy. A node with an older version cannot restart once a newer one has migrated the tables.",
    });
  }
  const projects = tally(nodes.flatMap(({ project }) => project ?? []));
  if (projects.size > 1) {
    problems.push({
      code: "several_projects",
      message: `The nodes belong to different projects: ${listed(projects)}. Each node would do the work of the others.`,
      hint: "Give each cluster its own schema: engine.schema.",
    });
  }
  if (unowned > 0) {
    problems.push({
      code: "unowned_shards",
      message: `${unowned} of ${shardCount} shards have no owner, so their work waits.`,
      hint:
        working.length === 0
          ? "No node is working. Start one."
          : "This lasts less than a second after a node stops, and less than four seconds after a node hangs.",
    });
  }
  for (const { node, host, state, beat_age_ms, address, clock_ahead_ms = 0 } of nodes) {
    const name = `${host} (${node.slice(0, 8)})`;
    if (state === "silent") {
      problems.push({
        code: "silent_node",
        node,
        message: `${name} has sent no heartbeat for ${seconds(beat_age_ms)}.`,
        hint: "The node hangs, or the network has cut it off. The other nodes take over its work after three seconds.",
      });
    }
    if (Math.abs(clock_ahead_ms) > skewMs) {
      const side = clock_ahead_ms > 0 ? "ahead of" : "behind";
      problems.push({
        code: "clock_skew",
        node,
        message: `The clock of ${name} is ${seconds(Math.abs(clock_ahead_ms))} ${side} the database's.`,
        hint: "Work does not depend on this clock, but times in the log and in events do. Synchronize the machine's clock (NTP).",
      });
    }
    const isOnSeveral = nodes.some((other) => other.host !== host);
    if (address !== undefined && isOnSeveral && isLoopback(address)) {
      problems.push({
        code: "no_address",
        node,
        message: `${name} publishes the address ${address}, which other machines cannot reach.`,
        hint: "Start the node with --host 0.0.0.0, or set its network address: engine.address (KIT_NODE_ADDRESS).",
      });
    }
    if (address === undefined && nodes.length > 1) {
      problems.push({
        code: "no_address",
        node,
        message: `${name} has no address, so other nodes cannot forward prompts and streams to it.`,
        hint: "Either it is a process without a server, or it listens on an address that others cannot reach.",
      });
    }
  }
  return problems;
}

function problemsOfRow({ node, host, news_age_ms, problem, endable }: NodeRow): ClusterProblem[] {
  const name = `${host} (${node.slice(0, 8)})`;
  const problems: ClusterProblem[] = [];
  if (problem !== null) {
    const { message, hint } = JSON.parse(problem) as Pick<ClusterProblem, "message" | "hint">;
    problems.push({ code: "engine_problem", node, message: `${name}: ${message}`, hint });
  }
  if (news_age_ms !== null && news_age_ms > deafMs) {
    problems.push({
      code: "no_notifications",
      node,
      message: `Notifications (NOTIFY) do not reach ${name}, so work begins up to a quarter of a second late there.`,
      hint: "A pooler in transaction mode does not forward them: set the direct address of the database (KIT_ENGINE_DIRECT_URL).",
    });
  }
  if (!endable) {
    problems.push({
      code: "missing_right",
      node,
      message: `This node's role cannot end the connection of ${name}, which has another role.`,
      hint: "Use one role for all nodes, or: GRANT pg_signal_backend TO <role>. Postgres 14 and later ends a silent connection itself.",
    });
  }
  return problems;
}

function isLoopback(address: string): boolean {
  return /^https?:\/\/(localhost|127\.[\d.]+|\[::1\])([:/]|$)/i.test(address);
}

function tally(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function listed(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} (${count})`).join(", ");
}

function seconds(ms: number): string {
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}
