import { loadPeer } from "../load-peer.ts";

/** The parts of LangChain and LangGraph that the backend works with. */
export interface GraphPeers {
  readonly graphs: typeof import("@langchain/langgraph");
  readonly prebuilt: typeof import("@langchain/langgraph/prebuilt");
  readonly messages: typeof import("@langchain/core/messages");
  readonly models: typeof import("@langchain/core/language_models/chat_models");
  readonly tools: typeof import("@langchain/core/tools");
  readonly runnables: typeof import("@langchain/core/runnables");
  readonly schemas: typeof import("@langchain/core/utils/json_schema");
  readonly callbacks: typeof import("@langchain/core/callbacks/base");
}

const loaded = new Map<string | undefined, Promise<GraphPeers>>();

/** Loads the packages once, from the project, else from kit's dependencies. */
export function loadGraphPeers(projectRoot: string | undefined): Promise<GraphPeers> {
  let peers = loaded.get(projectRoot);
  if (peers === undefined) {
    peers = load(projectRoot);
    loaded.set(projectRoot, peers);
    // The next call tries again: they may be installed by then.
    peers.catch(() => loaded.delete(projectRoot));
  }
  return peers;
}

async function load(projectRoot: string | undefined): Promise<GraphPeers> {
  const use = {
    from: projectRoot,
    what: "The backend graph",
    packages: ["@langchain/langgraph", "@langchain/core"],
  };
  const peer = <Module>(name: string): Promise<Module> => loadPeer<Module>(name, use);
  const [graphs, prebuilt, messages, models, tools, runnables, schemas, callbacks] = await Promise.all([
    peer<GraphPeers["graphs"]>("@langchain/langgraph"),
    peer<GraphPeers["prebuilt"]>("@langchain/langgraph/prebuilt"),
    peer<GraphPeers["messages"]>("@langchain/core/messages"),
    peer<GraphPeers["models"]>("@langchain/core/language_models/chat_models"),
    peer<GraphPeers["tools"]>("@langchain/core/tools"),
    peer<GraphPeers["runnables"]>("@langchain/core/runnables"),
    peer<GraphPeers["schemas"]>("@langchain/core/utils/json_schema"),
    peer<GraphPeers["callbacks"]>("@langchain/core/callbacks/base"),
  ]);
  return { graphs, prebuilt, messages, models, tools, runnables, schemas, callbacks };
}
