import type { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { A2aTask, a2aParams } from "../../protocol/a2a.ts";
import { type A2aContext, type Caller, toTasks } from "./a2a-work.ts";
import { instanceFor } from "./openai-work.ts";

/** How many pages of dispatches are read for a page of tasks of one state or time. */
const lookAhead = 50;

/** Lists the sender's tasks, newest first. A page that is filtered can be short, and the next one follows it. */
export async function listTasks(
  context: A2aContext,
  caller: Caller,
  params: z.output<typeof a2aParams.list>,
) {
  const { contextId, status, pageSize, pageToken, statusTimestampAfter, historyLength, includeArtifacts } =
    params;
  const { agent, principal } = caller;
  const instance = instanceFor(principal);
  await context.authorization.check({ principal, action: "agent.read", agent, instance });
  const limit = pageSize ?? 50;
  const state = status === "TASK_STATE_UNSPECIFIED" ? undefined : status;
  const since = statusTimestampAfter ? Date.parse(statusTimestampAfter) : Number.NEGATIVE_INFINITY;
  const isAsked = (task: A2aTask): boolean =>
    (!state || task.status.state === state) && Date.parse(task.status.timestamp) >= since;
  const isFiltered = state !== undefined || Boolean(statusTimestampAfter);
  if (pageToken && !/^dispatch_[0-9A-Z]{26}$/.test(pageToken))
    throw new KitError({
      code: "invalid_request",
      message: "The list has no such page.",
      meta: { issues: [{ path: "pageToken", message: "must be the nextPageToken of an earlier page" }] },
    });
  // No work of kit is ever in this state.
  if (state === "TASK_STATE_REJECTED") return { tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 };
  const tasks: A2aTask[] = [];
  let cursor = pageToken || undefined;
  let total: number | undefined;
  for (let page = 0; page < (isFiltered ? lookAhead : 1); page += 1) {
    const read = await context.service.engine.listDispatches({
      ...{ agent, instance_id: instance, count: !isFiltered, limit },
      session: contextId || undefined,
      cursor,
    });
    const view = { historyLength: historyLength ?? 0, hasArtifacts: includeArtifacts === true };
    tasks.push(...(await toTasks(context, caller, { records: read.items, ...view })).filter(isAsked));
    total = read.total;
    cursor = read.next_cursor;
    if (cursor === undefined || tasks.length > 0) break;
  }
  tasks.sort((one, other) => (one.status.timestamp < other.status.timestamp ? 1 : -1));
  const totalSize = isFiltered ? tasks.length : (total ?? tasks.length);
  return { tasks, nextPageToken: cursor ?? "", pageSize: tasks.length, totalSize };
}
