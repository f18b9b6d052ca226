import { hash } from "node:crypto";
import type { z } from "zod";
import { operationOf } from "../../app/service/stored-input.ts";
import type { LoadedAgent } from "../../app/sources/discover-sources.ts";
import { KitError } from "../../base/kit-error.ts";
import { version } from "../../base/own-package.ts";
import { toAgentCard } from "../../interfaces/a2a/card.ts";
import { a2aError, toA2aError } from "../../interfaces/a2a/error.ts";
import { type A2aTask, a2aParams } from "../../protocol/a2a.ts";
import type { ErrorEnvelope } from "../../protocol/errors.ts";
import { a2aRoutes } from "../../protocol/routes/a2a-routes.ts";
import { jsonReply, staticReply } from "../reply.ts";
import { checkInput } from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route, type RouteInput } from "../route.ts";
import { dataFrame, streamFrames } from "../streams/openai-stream.ts";
import {
  type A2aContext,
  accept,
  type Caller,
  type FollowedTask,
  findTask,
  followed,
  toTasks,
  updatesOf,
} from "./a2a-work.ts";
import { instanceFor } from "./openai-work.ts";

type RpcInput = RouteInput<"POST /a2a/{name}", (typeof a2aRoutes)["POST /a2a/{name}"]>;

export interface A2aRoutesContext extends A2aContext {
  /** Whether requests need a key. */
  readonly isGuarded: boolean;
}

/** `/a2a`: agents for the agents of others. */
export function bindA2aRoutes(context: A2aRoutesContext): readonly Route[] {
  const { authorization, service, settings, masked, toEnvelope, reach } = context;
  const served = (name: string): LoadedAgent => {
    const agent = service.app.agents().find((loaded) => loaded.name === name);
    if (agent !== undefined && reach.serves(agent)) return agent;
    // One error for both: a card must not tell which agents are hidden.
    throw new KitError({ code: "agent_not_found", message: "There is no agent of this name here." });
  };
  const cardOf = (
    { name, definition }: LoadedAgent,
    { url, principal }: Pick<RpcInput, "url" | "principal">,
  ) => {
    const address = `${settings.url?.replace(/\/$/, "") ?? new URL(url).origin}/a2a/${encodeURIComponent(name)}`;
    const description = "profile" in definition ? definition.profile.description : undefined;
    const isKnown = !context.isGuarded || principal !== undefined;
    const skills = isKnown
      ? service.app.skills().map((skill) => ({ name: skill.name, description: skill.description }))
      : [];
    return masked(
      toAgentCard({
        agent: { name, description },
        skills,
        url: address,
        version,
        isGuarded: context.isGuarded,
      }),
    );
  };
  const cardReply = (agent: LoadedAgent, input: Pick<RpcInput, "url" | "principal" | "header">): Response => {
    const body = JSON.stringify(cardOf(agent, input));
    const etag = `"${hash("sha256", body).slice(0, 32)}"`;
    const headers = {
      "cache-control": "private, max-age=60",
      etag,
      "content-type": "application/json; charset=utf-8",
    };
    const isSame = input.header("if-none-match") === etag;
    return staticReply(isSame ? null : body, { status: isSame ? 304 : 200, headers });
  };
  const handlers: Handlers<typeof a2aRoutes> = {
    async "POST /a2a/{name}"(input) {
      const { id = null } = input.body;
      const failure = (envelope: ErrorEnvelope) => ({
        jsonrpc: "2.0",
        id,
        error: toA2aError(envelope, -32_602),
      });
      const agent = served(input.segment("name"));
      const call: Call = {
        context,
        input,
        caller: { agent: agent.name, principal: input.principal, receivedAt: input.receivedAt },
        frame: (result) => dataFrame(masked({ jsonrpc: "2.0", id, result })),
        toLastFrames: (envelope) => dataFrame(failure(envelope)),
        card: () => cardOf(agent, input),
      };
      try {
        const result = await answer(call);
        return result instanceof Response ? result : jsonReply(masked({ jsonrpc: "2.0", id, result }));
      } catch (error) {
        return jsonReply(failure(toEnvelope(error)));
      }
    },
    "GET /a2a/{name}/.well-known/agent-card.json": (input) => cardReply(served(input.segment("name")), input),
    async "GET /.well-known/agent-card.json"(input) {
      const { principal, itemAction: action } = input;
      const seen = await authorization.permitted(
        service.app.agents().filter((agent) => reach.serves(agent)),
        ({ name: agent }) => ({ principal, action, agent }),
      );
      const main = seen.find(({ name }) => name === (settings.agent ?? "default"));
      const agent = main ?? (settings.agent === undefined && seen.length === 1 ? seen[0] : undefined);
      if (agent !== undefined) return cardReply(agent, input);
      throw new KitError({
        code: "agent_not_found",
        message:
          "No agent has its card here: server.a2a.agent names one. The others have theirs at /a2a/{name}/.well-known/agent-card.json.",
      });
    },
  };
  return bindRoutes(a2aRoutes, handlers, async ({ action, principal, segment }) => {
    if (action !== undefined) await authorization.check({ principal, action, agent: segment("name") });
  });
}

interface Call {
  readonly context: A2aRoutesContext;
  readonly input: RpcInput;
  readonly caller: Caller;
  readonly frame: (result: unknown) => string;
  readonly toLastFrames: (envelope: ErrorEnvelope) => string;
  readonly card: () => unknown;
}

/** Answers a request with its result, or a stream of results. */
async function answer(call: Call): Promise<unknown> {
  const { input } = call;
  const asked = input.header("a2a-version") || new URL(input.url).searchParams.get("A2A-Version") || "0.3";
  if (!/^1\.0(?:\.\d+)?$/.test(asked))
    throw a2aError(
      "VERSION_NOT_SUPPORTED",
      `A2A ${asked.slice(0, 20)} is not spoken here: send the header A2A-Version: 1.0.`,
    );
  const method = Object.hasOwn(methods, input.body.method) ? methods[input.body.method] : undefined;
  if (method === undefined) throw a2aError("METHOD_NOT_FOUND", "A2A 1.0 has no such method.");
  return await method(call);
}

const methods: Readonly<Record<string, (call: Call) => unknown>> = {
  async SendMessage(call) {
    const { context, caller, input } = call;
    const { message, returnImmediately, view } = readSent(call);
    const from = await accept(context, caller, { message, ...view });
    if (returnImmediately || from.record.ended_at !== undefined || from.isWaiting) return { task: from.task };
    const signal = input.clientGone({ silent: true });
    const events = await context.service.followOperation(targetOf(from), { after: from.after, signal });
    for await (const _ of updatesOf(context, caller, { from, events }));
    signal.throwIfAborted();
    return { task: (await followed(context, caller, { record: from.record, ...view })).task };
  },
  SendStreamingMessage(call) {
    const { context, caller } = call;
    const { message, view } = readSent(call);
    return stream(call, { open: () => accept(context, caller, { message, ...view }), toTheEnd: false });
  },
  SubscribeToTask(call) {
    const { context, caller } = call;
    const { id } = read(call, a2aParams.id);
    const open = async (): Promise<FollowedTask> => {
      const record = await findTask(context, caller, { id, action: "agent.read" });
      if (record.ended_at !== undefined)
        throw a2aError("UNSUPPORTED_OPERATION", "The task has ended: GetTask returns it.");
      return await followed(context, caller, { record });
    };
    return stream(call, { open, toTheEnd: true });
  },
  async GetTask(call) {
    const { context, caller } = call;
    const { id, historyLength } = read(call, a2aParams.get);
    const record = await findTask(context, caller, { id, action: "agent.read" });
    return (await followed(context, caller, { record, historyLength })).task;
  },
  ListTasks: (call) => listTasks(call.context, call.caller, read(call, a2aParams.list)),
  async CancelTask(call) {
    const { context, caller, input } = call;
    const { id } = read(call, a2aParams.id);
    const record = await findTask(context, caller, { id, action: "agent.abort" });
    const { agent, instance_id } = record;
    const isStopped = await context.service.abort({ agent, instance_id, operation_id: operationOf(id) });
    if (!isStopped) throw a2aError("TASK_NOT_CANCELABLE", "The task has ended.");
    await context.service.engine.awaitDispatch(id, { signal: input.clientGone({ silent: true }) });
    return (await followed(context, caller, { record })).task;
  },
  CreateTaskPushNotificationConfig: noPush,
  GetTaskPushNotificationConfig: noPush,
  ListTaskPushNotificationConfigs: noPush,
  DeleteTaskPushNotificationConfig: noPush,
  GetExtendedAgentCard({ context, card }) {
    if (context.isGuarded) return card();
    throw a2aError("UNSUPPORTED_OPERATION", "This server needs no key, so the public card says everything.");
  },
};

function noPush(): never {
  throw a2aError(
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "kit calls no addresses of others: follow the task with SubscribeToTask, or get it with GetTask.",
  );
}

function read<Schema extends z.ZodType>({ input }: Call, schema: Schema): z.output<Schema> {
  return checkInput("body", input.body.params ?? {}, schema as z.ZodType<z.output<Schema>>);
}

function readSent(call: Call) {
  const { message, configuration } = read(call, a2aParams.send);
  const { historyLength, returnImmediately, taskPushNotificationConfig } = configuration ?? {};
  if (taskPushNotificationConfig !== undefined && taskPushNotificationConfig !== null) noPush();
  return { message, returnImmediately: returnImmediately === true, view: { historyLength } };
}

function targetOf({ record: { agent, instance_id, session, dispatch_id, accepted_at } }: FollowedTask) {
  return { agent, instance_id, session, operation_id: operationOf(dispatch_id), acceptedAt: accepted_at };
}

async function stream(
  { context, caller, input, frame, toLastFrames }: Call,
  { open, toTheEnd }: { readonly open: () => Promise<FollowedTask>; readonly toTheEnd: boolean },
): Promise<Response> {
  return await streamFrames(context, input, {
    action: "agent.read",
    endsWithClient: false,
    toLastFrames,
    async open() {
      const from = await open();
      const { record, after } = from;
      return {
        ...(record.ended_at === undefined && { work: targetOf(from) }),
        after,
        fold: { isOver: false },
        async *frames(events) {
          for await (const updates of updatesOf(context, caller, { from, events, toTheEnd }))
            yield updates.map(frame).join("");
        },
      };
    },
  });
}

/** How many pages of dispatches are read for a page of tasks of one state or time. */
const lookAhead = 50;

/** Lists the sender's tasks, newest first. A page that is filtered can be short, and the next one follows it. */
async function listTasks(context: A2aContext, caller: Caller, params: z.output<typeof a2aParams.list>) {
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
