import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { Engine } from "../../engine/contract.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { OperationPage, OperationRecord, OperationsQuery } from "../../protocol/trace.ts";
import { type EventOf, eventsBetween, type Instance, pageSize } from "./events-between.ts";

const maxMessage = 1_000;

/** Returns the operations of an instance, newest first, without tasks. */
export async function listOperations(
  sources: OperationSources,
  { agent, instance_id }: Instance,
  { session, limit = 50, before }: OperationsQuery,
): Promise<OperationPage> {
  const { events } = sources;
  const stream = agentStream(agent, instance_id);
  const operations = new Map<string, Found>();
  const ends = new Map<string, EventOf<"operation">>();
  const errors = new Map<string, EventOf<"error">>();
  const parents = new Map<string, string>();
  const toPage = async (): Promise<Pick<OperationPage, "operations">> => {
    const found = [...operations.values()];
    return { operations: await toRecords(sources, { agent, instance_id }, { found, ends, errors, parents }) };
  };
  let to = before === undefined ? await events.last(stream) : before - 1;
  // The operations of this page can end in later events.
  if (before !== undefined) await readEnds(events, stream, { after: to, ends, errors });
  for (let window = pageSize; to > 0; window *= 2) {
    const from = Math.max(0, to - window);
    const read: KitEvent[] = [];
    for await (const event of eventsBetween(events, stream, {
      from,
      to,
      types: ["operation_start", "operation", "error"],
    }))
      read.push(event);
    for (const event of read.reverse()) {
      if (event.parent_operation_id !== undefined) {
        parents.set(event.operation_id, event.parent_operation_id);
        continue;
      }
      if (session !== undefined && event.session !== session) continue;
      if (event.type === "operation" && !ends.has(event.operation_id)) ends.set(event.operation_id, event);
      if (event.type === "error" && !errors.has(event.operation_id)) errors.set(event.operation_id, event);
      if (event.type !== "operation_start") continue;
      const operation = operations.get(event.operation_id);
      if (operation === undefined && operations.size === limit)
        return { ...(await toPage()), next_before: event.index + 1 };
      operations.set(event.operation_id, { start: event, newest: operation?.newest ?? event });
    }
    to = from;
  }
  return await toPage();
}

interface OperationSources {
  readonly events: EventLog;
  readonly engine: Pick<Engine, "getDispatch">;
  readonly approvals: Pick<Approvals, "list">;
}

/** The first and the newest start of an operation. */
interface Found {
  readonly start: EventOf<"operation_start">;
  readonly newest: EventOf<"operation_start">;
}

interface Outcomes {
  readonly found: readonly Found[];
  readonly ends: ReadonlyMap<string, EventOf<"operation">>;
  readonly errors: ReadonlyMap<string, EventOf<"error">>;
  /** The operation that started a task, by the task's operation. */
  readonly parents: ReadonlyMap<string, string>;
}

async function toRecords(
  { engine, approvals }: OperationSources,
  instance: Instance,
  { found, ends, errors, parents }: Outcomes,
): Promise<readonly OperationRecord[]> {
  const endOf = ({ start, newest }: Found): EventOf<"operation"> | undefined => {
    const end = ends.get(start.operation_id);
    // A retried dispatch goes on after its end.
    return end !== undefined && end.index > newest.index ? end : undefined;
  };
  const waiting = new Set<string>();
  if (found.some((each) => endOf(each) === undefined))
    for (const { operation_id } of await approvals.list(instance)) {
      let id: string | undefined = operation_id;
      for (; id !== undefined; id = parents.get(id)) waiting.add(id);
    }
  const records: OperationRecord[] = [];
  for (const each of found) {
    const end = endOf(each);
    const { dispatch_id, operation_id } = each.newest;
    const isOpen = end === undefined && !waiting.has(operation_id);
    // Between two attempts, or after a cancellation, only the dispatch knows how the operation goes on.
    const dispatch = isOpen && dispatch_id !== undefined ? await engine.getDispatch(dispatch_id) : undefined;
    const status =
      end !== undefined ? endedAs(end) : waiting.has(operation_id) ? "waiting" : openAs(dispatch);
    const failed = status === "failed" || status === "retrying";
    const error = failed ? (errors.get(operation_id)?.error ?? dispatch?.error) : undefined;
    records.push({
      ...toOperation(each.start, end),
      status,
      error,
      attempts: each.newest.attempt,
      dispatch_id,
    });
  }
  return records;
}

function endedAs({ is_error, is_aborted }: EventOf<"operation">): OperationRecord["status"] {
  if (is_aborted === true) return "aborted";
  return is_error ? "failed" : "completed";
}

function openAs(dispatch: DispatchRecord | undefined): OperationRecord["status"] {
  switch (dispatch?.status) {
    case "queued":
      return dispatch.next_attempt_at === undefined ? "working" : "retrying";
    case "cancelled":
      return "aborted";
    case "failed":
      return "failed";
    case "completed":
      return "completed";
    default:
      return "working";
  }
}

async function readEnds(
  events: EventLog,
  stream: string,
  {
    after,
    ends,
    errors,
  }: {
    readonly after: number;
    readonly ends: Map<string, EventOf<"operation">>;
    readonly errors: Map<string, EventOf<"error">>;
  },
): Promise<void> {
  const range = { from: after, to: Number.POSITIVE_INFINITY, types: ["operation", "error"] as const };
  for await (const event of eventsBetween(events, stream, range)) {
    if (event.type === "operation") ends.set(event.operation_id, event);
    if (event.type === "error") errors.set(event.operation_id, event);
  }
}

function toOperation(
  start: EventOf<"operation_start">,
  end: EventOf<"operation"> | undefined,
): Omit<OperationRecord, "status"> {
  return {
    operation_id: start.operation_id,
    session: start.session ?? "default",
    kind: start.operation_kind,
    message: start.message?.slice(0, maxMessage).toWellFormed(),
    client_id: start.client_id,
    rewound_before: start.rewound_before,
    first_index: start.index,
    last_index: end?.index,
    started_at: start.timestamp,
    duration_ms: end?.duration_ms,
    is_error: end?.is_error,
    is_aborted: end?.is_aborted,
    usage: end?.usage,
    resumed: start.resumed,
    forked_from: start.forked_from,
  };
}
