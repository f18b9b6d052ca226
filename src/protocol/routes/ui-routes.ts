import {
  uiBodySchema,
  uiChunkSchema,
  uiMessagesQuerySchema,
  uiMessagesSchema,
  uiStopBodySchema,
  uiStoppedSchema,
  uiStreamQuerySchema,
} from "../ui.ts";
import { defineRoutes } from "./route.ts";

const chat = {
  tag: "chat pages",
  errors: ["agent_not_found", "agent_not_webhook", "not_found", "unavailable", "store_unavailable"],
  hasPlainErrors: true,
} as const;
const parameters = { name: "The agent's name.", id: "The instance's id, chosen by the client." } as const;
const ofSession = { ...parameters, session: "The chat's id, which is the session." } as const;
const frames =
  "Server-sent events of the AI SDK's UI message stream, version 1. `data` of each is a UiChunk, of the last one `[DONE]`; `id` is a position for `Last-Event-ID`. A stream that breaks off without `[DONE]` goes on at `GET /agents/{name}/{id}/ui/{session}/stream`.";

/** Chat pages with `useChat` of the AI SDK. */
export const uiRoutes = defineRoutes({
  "POST /agents/{name}/{id}/ui": {
    ...chat,
    parameters,
    operation: "sendUiMessage",
    summary: "Send the newest message of a chat page, and stream the answer",
    description:
      "A user's message prompts the agent; the same message again, with the same id, streams the same answer. An assistant's message with answers to approvals decides them, and the stream goes on. A client that disconnects stops nothing.",
    body: uiBodySchema,
    bodyBytes: 16 * 1024 * 1024,
    reply: uiChunkSchema,
    stream: "always",
    frames,
    action: "agent.prompt",
    itemAction: "agent.approve",
  },
  "GET /agents/{name}/{id}/ui/{session}/stream": {
    ...chat,
    parameters: ofSession,
    operation: "resumeUiStream",
    summary: "Take up the answer that runs in a chat",
    description: "204 if none runs, or if it waits for the page to decide about a call.",
    headers: ["Last-Event-ID"],
    query: uiStreamQuerySchema,
    reply: uiChunkSchema,
    stream: "always",
    frames,
    hasEnd: true,
    action: "agent.read",
  },
  "GET /agents/{name}/{id}/ui/{session}/messages": {
    ...chat,
    parameters: ofSession,
    operation: "listUiMessages",
    summary: "The messages with which a chat page starts",
    query: uiMessagesQuerySchema,
    reply: uiMessagesSchema,
    action: "agent.read",
  },
  "POST /agents/{name}/{id}/ui/{session}/stop": {
    ...chat,
    parameters: ofSession,
    operation: "stopUiAnswer",
    summary: "Stop an answer",
    body: uiStopBodySchema,
    reply: uiStoppedSchema,
    action: "agent.abort",
    repeatable: true,
  },
});
