/** `kit/backends/graph`: graphs of LangGraph decide what agents do; kit calls the model, runs tools, stores and streams. */
import "../../base/require-node.ts";

export { type CompiledGraph, type GraphInterrupt, type GraphOptions, graph } from "./graph.ts";
export type { GraphWork } from "./graph-model.ts";
