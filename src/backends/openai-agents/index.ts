/** `kit/backends/openai-agents`: agents of the OpenAI Agents SDK decide what agents do; kit calls the model, runs tools, stores and streams. */
import "../../base/require-node.ts";

export {
  type OpenAiAgent,
  type OpenAiAgentsOptions,
  type OpenAiAgentsWork,
  openaiAgents,
} from "./openai-agents.ts";
