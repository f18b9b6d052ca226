import { dispatchOf } from "../../app/service/stored-input.ts";
import { KitError } from "../../base/kit-error.ts";
import { ChatFold } from "../../interfaces/openai/chat-fold.ts";
import { type OpenAiInput, toChatInput, toResponseInput } from "../../interfaces/openai/input.ts";
import {
  newResponse,
  positionOf,
  type ResponseEvent,
  ResponseFold,
} from "../../interfaces/openai/response-fold.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { OpenAiResponse } from "../../protocol/openai.ts";
import { openAiRoutes } from "../../protocol/routes/openai-routes.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { dataFrame, errorFrames, type OpenAiWork, streamFrames } from "../streams/openai-stream.ts";
import {
  begin,
  type FoundResponse,
  findResponse,
  ignoreMissing,
  instanceFor,
  missingResponse,
  newSession,
  permitted,
  readSessionName,
  type Sender,
  sessionOf,
  toFold,
  toResponseId,
  toSeconds,
} from "./openai-work.ts";
import { eventsOf } from "./ui.ts";

/** `/v1`: agents as models of OpenAI's Chat Completions and Responses. */
export function bindOpenAiRoutes(context: ServiceContext): readonly Route[] {
  const { service, authorization, reach } = context;
  const handlers: Handlers<typeof openAiRoutes> = {
    async "GET /v1/models"({ principal, itemAction: action }) {
      const served = service.app.agents().filter((agent) => reach.serves(agent));
      const agents = await authorization.permitted(served, ({ name: agent }) => ({
        principal,
        action,
        agent,
        instance: instanceFor(principal),
      }));
      const data = agents.map(
        ({ name: id }) => ({ id, object: "model", created: 0, owned_by: "kit" }) as const,
      );
      return { object: "list", data };
    },
    async "POST /v1/chat/completions"(input) {
      const { body, action } = input;
      const { model, stream, stream_options } = body;
      const target = await permitted(context, input, { agent: model, action });
      const asked = toChatInput(body);
      const open = async () => {
        const sessionName = readSessionName(input);
        const key = { ...target, session: sessionName ?? newSession("chat") };
        // A session that has begun has what the client repeats.
        const toRest = (rest: OpenAiInput): OpenAiInput => ({ ...rest, history: [] });
        const work = await begin(context, input, { key, asked, isNew: sessionName === undefined, toRest });
        const { operation_id: operationId, after } = work;
        const fold = new ChatFold({ operationId, after, model, created: toSeconds(work.acceptedAt) });
        const withUsage = stream_options?.include_usage === true;
        const frames = (events: AsyncIterable<KitEvent>) => chatFrames(events, fold, withUsage);
        return { work, fold, frames };
      };
      if (stream === true) return await streamFrames(context, input, { action, endsWithClient: true, open });
      const { work, fold } = await open();
      await drain(context, input, { work, fold, endsWithClient: true });
      if (fold.error !== undefined)
        throw new KitError({ code: fold.error.type, message: fold.error.message });
      return fold.toCompletion();
    },
    async "POST /v1/responses"(input) {
      const { body, action } = input;
      const { model } = body;
      const target = await permitted(context, input, { agent: model, action });
      const asked = toResponseInput(body);
      const endsWithClient = body.store === false;
      const open = async () => {
        const key =
          "results" in asked
            ? { ...target, session: "" }
            : await sessionOf(context, input, { target, previous: asked.previous });
        const work = await begin(context, input, { key, asked, toRest: inOneMessage });
        const id = toResponseId(work, { isStored: !endsWithClient });
        const response = newResponse({ id, model, createdAt: toSeconds(work.acceptedAt) }, body);
        const fold = toFold(work, response);
        const frames = (events: AsyncIterable<KitEvent>) => responseFrames(events, fold, -1);
        return { work, fold, frames };
      };
      if (body.stream === true) return await streamFrames(context, input, { action, endsWithClient, open });
      const { work, fold } = await open();
      if (body.background !== true) await drain(context, input, { work, fold, endsWithClient });
      return fold.response;
    },
    async "GET /v1/responses/{response_id}"(input) {
      const { action } = input;
      const found = await findResponse(context, input);
      const { work } = found;
      const { stream, starting_after: last = -1 } = input.query;
      const current = await currentResponse(context, found);
      if (stream !== "true") return current;
      const fold = toFold(work, found.response);
      const open = async () => {
        const first = work.after === undefined ? await firstIndexOf(context, work) : work.after + 1;
        const after = first === undefined ? 0 : positionOf(last, first);
        const frames = (events: AsyncIterable<KitEvent>) => responseFrames(events, fold, last);
        return { work, fold, after, frames };
      };
      return await streamFrames(context, input, { action, endsWithClient: false, open });
    },
    async "POST /v1/responses/{response_id}/cancel"(input) {
      const found = await findResponse(context, input);
      await service.abort(found.work);
      return await currentResponse(context, found);
    },
  };
  return bindRoutes(openAiRoutes, handlers);
}

/** A session that has begun takes no history: what is new is told in the message. */
function inOneMessage({ history, message, ...asked }: OpenAiInput): OpenAiInput {
  return { ...asked, history: [], message: [...history.map(({ content }) => content), message].join("\n\n") };
}

/** Reads an operation to its end. */
async function drain(
  { service }: ServiceContext,
  { clientGone }: Sender,
  {
    work,
    fold,
    endsWithClient,
  }: {
    readonly work: OpenAiWork;
    readonly fold: ChatFold | ResponseFold;
    readonly endsWithClient: boolean;
  },
): Promise<void> {
  const signal = clientGone({ silent: true });
  for await (const event of await service.followOperation(work, { after: work.after, signal })) {
    fold.push(event);
    if (fold.isOver) return;
  }
  if (endsWithClient && signal.aborted) await service.abort(work);
  if (!fold.isOver && fold instanceof ResponseFold) fold.end("cancelled");
}

async function* chatFrames(
  events: AsyncIterable<KitEvent>,
  fold: ChatFold,
  withUsage: boolean,
): AsyncGenerator<string> {
  yield dataFrame(fold.toChunk({ role: "assistant", content: "" }));
  for await (const event of events) {
    const deltas = fold.push(event);
    if (fold.isTorn)
      throw new KitError({
        code: "unavailable",
        message: "The answer broke off, and what was sent cannot be taken back.",
      });
    yield deltas.map((delta) => dataFrame(fold.toChunk(delta))).join("");
    if (fold.isOver) break;
  }
  const { error } = fold;
  if (error !== undefined) yield errorFrames({ error: { ...error, details: "" } });
  else yield `${fold.toLastChunks({ withUsage }).map(dataFrame).join("")}data: [DONE]\n\n`;
}

async function* responseFrames(
  events: AsyncIterable<KitEvent>,
  fold: ResponseFold,
  last: number,
): AsyncGenerator<string> {
  const frames = (all: readonly ResponseEvent[]): string =>
    all
      .filter(({ sequence_number }) => sequence_number > last)
      .map((event) => `event: ${event.type}\n${dataFrame(event)}`)
      .join("");
  yield frames(fold.begin());
  for await (const event of events) {
    yield frames(fold.push(event));
    if (fold.isOver) break;
  }
  if (!fold.isOver) yield frames(fold.end("cancelled"));
  yield "data: [DONE]\n\n";
}

/** Returns a response as it is now. Throws `not_found` if its events are gone, or if no calls waited where its id says that it begins. */
async function currentResponse(
  context: ServiceContext,
  { work, response, isCompleted }: FoundResponse,
): Promise<OpenAiResponse> {
  const fold = toFold(work, response);
  try {
    for await (const event of eventsOf(context, work, work)) {
      fold.push(event);
      if (fold.isOver) break;
    }
  } catch (error) {
    ignoreMissing(error);
  }
  if (!fold.isOver) {
    if (isCompleted) throw missingResponse();
    const dispatch = await context.service.engine.getDispatch(dispatchOf(work.operation_id));
    if (dispatch?.status === "failed") fold.end("failed", dispatch.error);
    if (dispatch?.status === "cancelled") fold.end("cancelled");
  }
  if (!fold.hasBeginning) throw missingResponse();
  return fold.response;
}

/** Returns the index of the first event of work that has begun. */
async function firstIndexOf({ service }: ServiceContext, work: OpenAiWork): Promise<number | undefined> {
  try {
    return (await service.operationEvents(work, { limit: 1 })).events[0]?.index;
  } catch (error) {
    return ignoreMissing(error);
  }
}
