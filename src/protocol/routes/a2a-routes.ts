import { z } from "zod";
import { a2aBodySchema, a2aCardSchema } from "../a2a.ts";
import { defineRoutes } from "./route.ts";

const a2a = { tag: "other agents", errors: ["agent_not_found"] } as const;
const name = "The agent's name.";

/** Agents of others, over the Agent2Agent protocol 1.0. */
export const a2aRoutes = defineRoutes({
  "POST /a2a/{name}": {
    ...a2a,
    operation: "sendA2aRequest",
    summary: "A request of an agent that speaks A2A 1.0",
    description:
      "JSON-RPC, with the header `A2A-Version: 1.0`. A task is a dispatch of the sender. `SendStreamingMessage` and `SubscribeToTask` are answered by server-sent events. A client that disconnects stops nothing.",
    parameters: { name },
    body: a2aBodySchema,
    bodyBytes: 16 * 1024 * 1024,
    reply: z.looseObject({}).meta({ id: "A2aReply", description: "The result, or the error." }),
    stream: "asked",
    frames: "`data` of each frame is a reply of JSON-RPC whose result is a task or an update of it.",
    hasRpcErrors: "a2a",
    errors: ["agent_not_found", "unavailable", "store_unavailable"],
    action: "agent.list",
  },
  "GET /a2a/{name}/.well-known/agent-card.json": {
    ...a2a,
    operation: "getAgentCard",
    summary: "The A2A card of an agent",
    description: 'Needs a key, unless `server.a2a.cards` is "public".',
    parameters: { name },
    reply: a2aCardSchema,
    hasOwnReply: true,
    action: "agent.list",
  },
  "GET /.well-known/agent-card.json": {
    ...a2a,
    operation: "getMainAgentCard",
    summary: "The A2A card of the agent that this server has for others",
    description:
      "That of `server.a2a.agent`; without this setting that of the default agent, or of the only one that the sender may see.",
    reply: a2aCardSchema,
    hasOwnReply: true,
    itemAction: "agent.list",
  },
});
