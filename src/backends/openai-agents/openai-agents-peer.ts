import { loadPeer } from "../load-peer.ts";

export type OpenAiAgentsSdk = typeof import("@openai/agents");

const loaded = new Map<string | undefined, Promise<OpenAiAgentsSdk>>();

/** Loads it once, from the project, else from beside kit. */
export function loadOpenAiAgents(projectRoot: string | undefined): Promise<OpenAiAgentsSdk> {
  let sdk = loaded.get(projectRoot);
  if (sdk === undefined) {
    sdk = load(projectRoot);
    loaded.set(projectRoot, sdk);
    // It may be installed by the next time.
    sdk.catch(() => loaded.delete(projectRoot));
  }
  return sdk;
}

async function load(projectRoot: string | undefined): Promise<OpenAiAgentsSdk> {
  const signals = ["SIGINT", "SIGTERM", "unhandledRejection", "beforeExit"];
  const source: NodeJS.EventEmitter = process;
  const before = new Map(signals.map((name) => [name, new Set(source.listeners(name))]));
  const sdk = await loadPeer<OpenAiAgentsSdk>("@openai/agents", {
    from: projectRoot,
    what: "The backend openai_agents",
    packages: ["@openai/agents"],
  });
  // For its tracing, which is off, the package ends the process on signals, before running work is put away.
  for (const name of signals) {
    for (const listener of source.listeners(name)) {
      const isIts = before.get(name)?.has(listener) === false && String(listener).includes("cleanup");
      if (isIts) source.off(name, listener as () => void);
    }
  }
  return sdk;
}
