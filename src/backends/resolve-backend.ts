import { KitError } from "../base/kit-error.ts";
import { type AgentBackend, type BackendChoice, faultOfBackend } from "./contract.ts";

/** Loads a backend by its name. Returns `undefined` for `typed`, the own loop of kit; throws `invalid_request` for an unknown name. */
export function resolveBackend(choice: BackendChoice): AgentBackend | Promise<AgentBackend> | undefined {
  if (typeof choice === "object") return choice;
  switch (choice) {
    case "typed":
      return undefined;
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
