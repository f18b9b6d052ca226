import { agUiBodySchema, agUiEventSchema } from "../ag-ui.ts";
import { defineRoutes } from "./route.ts";

const shared = {
  tag: "agent front ends",
  parameters: { name: "The agent's name.", id: "The instance's id, chosen by the client." },
  errors: ["agent_not_found", "agent_not_webhook", "not_found", "unavailable", "store_unavailable"],
  hasPlainErrors: true,
  body: agUiBodySchema,
  bodyBytes: 16 * 1024 * 1024,
  reply: agUiEventSchema,
  stream: "always",
  frames: "`data` of each frame is an event of AG-UI 1.0, without `id` and `event`.",
} as const;

/** Front ends that speak AG-UI. */
export const agUiRoutes = defineRoutes({
  "POST /agents/{name}/{id}/agui": {
    ...shared,
    operation: "runAgUi",
    summary: "Run an agent for a front end that speaks AG-UI",
    description:
      "The newest message of the user prompts the agent; `resume` and results of the front end's tools go on with the run that waits for them. The same run again streams the same work. A client that disconnects stops nothing.",
    action: "agent.prompt",
    itemAction: "agent.approve",
  },
  "POST /agents/{name}/{id}/agui/connect": {
    ...shared,
    operation: "connectAgUi",
    summary: "What a thread has, and the run that goes on in it",
    action: "agent.read",
  },
});
