import { KitError } from "../base/kit-error.ts";
import { type AgentBackend, type BackendChoice, faultOfBackend } from "./contract.ts";

/** Gives the backend that is meant; kit's own loop where none is named. Throws `invalid_request` for what is none. */
export function resolveBackend(choice: BackendChoice = "typed"): AgentBackend | Promise<AgentBackend> {
  if (typeof choice === "object") return choice;
  switch (choice) {
    case "typed":
      return typed;
    case "graph":
      return import("./graph/graph.ts").then(({ graph }) => graph());
    case "openai_agents":
      return import("./openai-agents/openai-agents.ts").then(({ openaiAgents }) => openaiAgents());
    case "google_adk":
      return import("./google-adk/google-adk.ts").then(({ googleAdk }) => googleAdk());
    default:
      throw new KitError({
        code: "invalid_request",
        message: `\`backend\` must be ${faultOfBackend(choice)}.`,
      });
  }
}

/** Kit's own loop: asks the model, runs what it asks for, and asks again until it asks for nothing more. */
const typed: AgentBackend = {
  name: "typed",
  async run(operation) {
    for (;;) {
      const [call] = (await operation.turn()).calls;
      if (call === undefined) return;
      // Whichever is asked for first, all of its turn are run.
      await operation.tool(call.id);
    }
  },
};
