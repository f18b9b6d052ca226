import { loadPeer, oncePerProject } from "../load-peer.ts";

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

/** Loads the packages from the project, else from kit's dependencies. */
export const loadGraphPeers: (projectRoot: string | undefined) => Promise<GraphPeers> = oncePerProject(
  async (projectRoot): Promise<GraphPeers> => {
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
  },
);
