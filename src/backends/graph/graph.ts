import type { RunnableConfig } from "@langchain/core/runnables";
import { KitError } from "../../base/kit-error.ts";
import type { AgentBackend, BackendOperation } from "../contract.ts";
import { GivenMessages, textIn, toLangChain } from "./graph-messages.ts";
import { type GraphWork, toGraphWork } from "./graph-model.ts";
import { type GraphPeers, loadGraphPeers } from "./graph-peers.ts";
import { createLogSaver, type LogSaver } from "./log-saver.ts";

/** A compiled graph of LangGraph, as far as the backend uses it. */
export interface CompiledGraph {
  // The author of the graph chooses the types of its input and state.
  invoke(input: never, config?: RunnableConfig): Promise<unknown>;
  getState(config: RunnableConfig): Promise<{ readonly next: readonly string[] }>;
}

/** An interrupt of a graph, with the value of its `interrupt(value)`. */
export interface GraphInterrupt {
  readonly id: string;
  readonly value: unknown;
}

export interface GraphOptions {
  /** The name of the backend in messages and errors; default "graph". */
  readonly name?: string;
  /** The graph's input; default `{ messages }`, the session's history. */
  readonly input?: (work: GraphWork & { readonly messages: readonly unknown[] }) => unknown;
  /** The answer in the state that the graph ends with; default: the text of the last of its `messages`. */
  readonly output?: (state: never) => string;
  /**
   * Returns the value that an interrupt resumes with. Default: kit waits for an approval decision, and the graph resumes
   * with it: `{ approved, reason?, by? }`. In a workflow, `ctx.waitFor` waits for a value.
   */
  readonly onInterrupt?: (interrupt: GraphInterrupt, work: GraphWork) => unknown;
}

/**
 * Creates a backend whose turns a graph of LangGraph decides: a compiled graph, or a function that builds one from the
 * operation's model and tools. Default: a model that calls tools until it is done. A compiled graph finds its model, its
 * tools and the files of the sandbox in `config.configurable.kit`.
 *
 * The session's log stores its checkpoints: an interrupted graph resumes from its last step.
 *
 * @example
 * import { createReactAgent } from "@langchain/langgraph/prebuilt";
 * import { createAgent } from "kit";
 * import { graph } from "kit/backends/graph";
 *
 * export default createAgent({ backend: graph(({ model, tools }) => createReactAgent({ llm: model, tools })) })
 */
export function graph(
  build:
    | CompiledGraph
    | ((work: GraphWork) => CompiledGraph | Promise<CompiledGraph>)
    | undefined = undefined,
  options: GraphOptions = {},
): AgentBackend {
  return {
    name: options.name ?? "graph",
    capabilities: { state: true, interrupts: true, fileTransfer: true },
    async run(operation) {
      const peers = await loadGraphPeers(operation.projectRoot);
      const given = new GivenMessages();
      const log = createLogSaver(operation.state, peers, given);
      given.begin(operation, log.heard);
      const work = toGraphWork({ operation, peers, given });
      const compiled =
        build === undefined
          ? defaultGraph(work, peers)
          : typeof build === "function"
            ? await build(work)
            : build;
      await runGraph(compiled, { operation, work, log, peers, options });
    },
  };
}

interface GraphRun {
  readonly operation: BackendOperation;
  readonly work: GraphWork;
  readonly log: LogSaver;
  readonly peers: GraphPeers;
  readonly options: GraphOptions;
}

async function runGraph(compiled: CompiledGraph, run: GraphRun): Promise<void> {
  const { operation, work, log, peers, options } = run;
  const config = {
    configurable: { thread_id: operation.operationId, __pregel_checkpointer: log.saver, kit: work },
    signal: operation.signal,
    // Kit's budget is the limit.
    recursionLimit: 10_000,
    // The next step waits until the log has the results of this one.
    durability: "sync",
    callbacks: [noTracer(peers)],
  };
  let input = log.hasCheckpoint ? null : inputOf(run);
  for (;;) {
    const state = await compiled.invoke(input as never, config as RunnableConfig);
    const waiting = interruptsIn(state);
    if (waiting.length > 0) {
      const round = log.answers();
      const answers = await Promise.all(
        waiting.map(async (interrupt) => [interrupt.id, await answerTo(interrupt, round, run)] as const),
      );
      input = new peers.graphs.Command({ resume: Object.fromEntries(answers) });
      continue;
    }
    const { next } = await compiled.getState(config as RunnableConfig);
    if (next.length === 0) {
      answer(state, operation, options);
      return;
    }
    // A breakpoint of the graph, before or after a node.
    const id = `breakpoint_${next
      .join("_")
      .replaceAll(/[^a-zA-Z0-9_-]/g, "_")
      .slice(0, 40)}_${operation.history().length}`;
    const { approved, reason } = await operation.ask({ id, name: "breakpoint", args: { next } });
    if (!approved) throw stopped(next, reason);
    input = null;
  }
}

function inputOf({ operation, work, peers, options }: GraphRun): unknown {
  const messages = toLangChain(operation.history(), peers);
  return options.input === undefined ? { messages } : options.input({ ...work, messages });
}

async function answerTo(interrupt: GraphInterrupt, round: number, run: GraphRun): Promise<unknown> {
  const { onInterrupt } = run.options;
  if (onInterrupt !== undefined) return await onInterrupt(interrupt, run.work);
  const id = `${interrupt.id}_${round}`.slice(-64);
  return run.operation.ask({ id, ...questionIn(interrupt.value) });
}

/** An interrupt in LangChain's form names an action; any other value is itself the question. */
function questionIn(value: unknown): { readonly name: string; readonly args: unknown } {
  const request = (
    value as { readonly action_request?: { readonly action?: unknown; readonly args?: unknown } } | null
  )?.action_request;
  return typeof request?.action === "string"
    ? { name: request.action, args: request.args ?? {} }
    : { name: "interrupt", args: value };
}

function interruptsIn(state: unknown): readonly GraphInterrupt[] {
  const found = (state as { readonly __interrupt__?: readonly GraphInterrupt[] } | null)?.__interrupt__ ?? [];
  return found.map(({ id, value }) => ({ id, value }));
}

/** Answers with the result of the graph, unless it is the newest answer of the model, which the log already has. */
function answer(state: unknown, operation: BackendOperation, { output }: GraphOptions): void {
  if (output !== undefined) {
    operation.answer(output(state as never));
    return;
  }
  const { messages } = (state ?? {}) as { readonly messages?: readonly Parameters<typeof textIn>[0][] };
  const last = messages?.at(-1);
  if (last === undefined) operation.answer(typeof state === "string" ? state : JSON.stringify(state ?? null));
  else if (last.id === undefined || last.id !== operation.history().at(-1)?.id)
    operation.answer(textIn(last));
}

function stopped(next: readonly string[], reason = "it was not approved"): KitError {
  return new KitError({
    code: "forbidden",
    message: `The graph must not continue with ${next.join(", ")}: ${reason}.`,
  });
}

/** A model that calls tools until it is done. */
function defaultGraph({ model, tools }: GraphWork, { graphs, prebuilt }: GraphPeers): CompiledGraph {
  const bound = model.bindTools?.(tools) ?? model;
  return new graphs.StateGraph(graphs.MessagesAnnotation)
    .addNode("model", async ({ messages }, config) => ({ messages: [await bound.invoke(messages, config)] }))
    .addNode("tools", new prebuilt.ToolNode(tools, { handleToolErrors: false }))
    .addEdge(graphs.START, "model")
    .addConditionalEdges("model", prebuilt.toolsCondition)
    .addEdge("tools", "model")
    .compile() as unknown as CompiledGraph;
}

/** Replaces LangSmith's tracer, which the environment can enable: kit sends no data without configuration. */
function noTracer({ callbacks }: GraphPeers) {
  class NoTracer extends callbacks.BaseCallbackHandler {
    readonly name = "langchain_tracer";
    override ignoreLLM = true;
    override ignoreChain = true;
    override ignoreAgent = true;
    override ignoreRetriever = true;
    override ignoreCustomEvent = true;

    updateFromRunTree(): void {
      // The graph has no trace to follow.
    }

    /** Passes on the context that LangChain keeps in addition to traces. */
    getRunTreeWithTracingConfig(): object {
      return { tracingEnabled: false };
    }

    copyWithTracingConfig(): this {
      return this;
    }
  }
  return new NoTracer();
}
