import { type KitSetup, kitLabels } from "./kit-setups.ts";
import type { PeerName } from "./peers/manifest.ts";
import { peers } from "./peers/manifest.ts";
import type { Subject } from "./subject.ts";

export type SubjectName = "floor" | KitSetup | PeerName;

export const labels: Readonly<Record<SubjectName, string>> = {
  floor: "floor",
  ...kitLabels,
  pi: peers.pi.label,
  "ai-sdk": peers["ai-sdk"].label,
  "openai-agents": peers["openai-agents"].label,
  langgraph: peers.langgraph.label,
  mastra: peers.mastra.label,
};

/** Loads one subject only, so that imports of the others do not affect its measurement. */
export async function loadSubject(name: SubjectName): Promise<Subject> {
  switch (name) {
    case "floor":
      return (await import("./subjects/floor.ts")).floor;
    case "kit":
    case "kit-repository":
    case "kit-plain":
      return (await import("./subjects/kit.ts")).createKit(name);
    case "pi":
      return (await import("./subjects/pi.ts")).pi;
    case "ai-sdk":
      return (await import("./subjects/ai-sdk.ts")).aiSdk;
    case "openai-agents":
      return (await import("./subjects/openai-agents.ts")).openaiAgents;
    case "langgraph":
      return (await import("./subjects/langgraph.ts")).langgraph;
    case "mastra":
      return (await import("./subjects/mastra.ts")).mastra;
  }
}
