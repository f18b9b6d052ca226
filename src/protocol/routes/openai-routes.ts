import { emptyBodySchema } from "../fields.ts";
import {
  chatCompletionBodySchema,
  chatCompletionSchema,
  openAiModelsSchema,
  responseBodySchema,
  responseQuerySchema,
  responseSchema,
} from "../openai.ts";
import { defineRoutes } from "./route.ts";

const shared = { tag: "model clients", hasOpenAiErrors: true } as const;
const ofAgent = {
  ...shared,
  bodyBytes: 16 * 1024 * 1024,
  stream: "asked",
  action: "agent.prompt",
  errors: [
    "not_found",
    "agent_not_found",
    "conflict",
    "aborted",
    "model_error",
    "model_timeout",
    "unavailable",
  ],
} as const;
const parameters = { response_id: "The id of a response of the same sender." } as const;

/** OpenAI's Chat Completions and Responses, with an agent's name as the model. */
export const openAiRoutes = defineRoutes({
  "GET /v1/models": {
    ...shared,
    operation: "listModels",
    summary: "The agents, as models",
    reply: openAiModelsSchema,
    itemAction: "agent.prompt",
  },
  "POST /v1/chat/completions": {
    ...ofAgent,
    operation: "createChatCompletion",
    summary: "Prompt an agent as a model of Chat Completions",
    description:
      "The messages are the history of a new session. With the header `X-Kit-Session` the session of that name goes on, and only the last message is read. A client that disconnects ends the work.",
    body: chatCompletionBodySchema,
    reply: chatCompletionSchema,
    frames:
      "With `stream` true: `data` is a chunk (`chat.completion.chunk`) or an error, of the last one `[DONE]`.",
  },
  "POST /v1/responses": {
    ...ofAgent,
    operation: "createResponse",
    summary: "Prompt an agent as a model of Responses",
    description:
      "The work goes on if the client disconnects, unless `store` is false: `GET /v1/responses/{response_id}` takes it up.",
    body: responseBodySchema,
    reply: responseSchema,
    frames: "With `stream` true: events of Responses, then `data: [DONE]`.",
  },
  "GET /v1/responses/{response_id}": {
    ...shared,
    parameters,
    operation: "getResponse",
    summary: "A response, or its events",
    query: responseQuerySchema,
    hasOwnQuery: true,
    reply: responseSchema,
    stream: "asked",
    frames: "With `stream=true`: the events of the response after `starting_after`, then `data: [DONE]`.",
    action: "agent.read",
    errors: ["not_found", "unavailable"],
  },
  "POST /v1/responses/{response_id}/cancel": {
    ...shared,
    parameters,
    operation: "cancelResponse",
    summary: "Stop a response",
    body: emptyBodySchema,
    reply: responseSchema,
    action: "agent.abort",
    repeatable: true,
    errors: ["not_found", "unavailable"],
  },
});
