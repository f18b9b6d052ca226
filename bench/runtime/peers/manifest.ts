/** A library that kit is compared with: the exact packages, and the one whose import is timed. */
export interface Peer {
  readonly label: string;
  readonly packages: Readonly<Record<string, string>>;
  readonly entry: string;
}

export type PeerName = "pi" | "ai-sdk" | "openai-agents" | "langgraph" | "mastra";

/**
 * Every peer has a separate folder below `bench/peers`, so that one that cannot be installed
 * does not affect the others. Newer versions of pi depend on packages that no registry has.
 */
export const peers: Readonly<Record<PeerName, Peer>> = {
  pi: {
    label: "pi-agent-core",
    packages: { "@earendil-works/pi-agent-core": "0.87.1", "@earendil-works/pi-ai": "0.87.1" },
    entry: "@earendil-works/pi-agent-core",
  },
  "ai-sdk": { label: "AI SDK", packages: { ai: "7.0.173" }, entry: "ai" },
  "openai-agents": {
    label: "OpenAI Agents",
    packages: { "@openai/agents": "0.20.0", zod: "4.6.7" },
    entry: "@openai/agents",
  },
  langgraph: {
    label: "LangGraph",
    packages: {
      "@langchain/core": "1.2.13",
      "@langchain/langgraph": "1.4.15",
      "@langchain/langgraph-checkpoint": "1.1.5",
      "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
      "@langchain/langgraph-sdk": "1.11.2",
      zod: "4.6.7",
    },
    entry: "@langchain/langgraph",
  },
  mastra: {
    label: "Mastra",
    packages: {
      "@mastra/core": "1.71.0",
      "@mastra/libsql": "1.23.1",
      "@mastra/memory": "1.31.0",
      zod: "4.6.7",
    },
    entry: "@mastra/core/agent",
  },
};

export const peerNames: readonly PeerName[] = Object.keys(peers) as PeerName[];
