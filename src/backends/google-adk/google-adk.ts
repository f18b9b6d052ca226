import { AsyncLocalStorage } from "node:async_hooks";
import { KitError } from "../../base/kit-error.ts";
import type { AgentBackend, BackendOperation } from "../contract.ts";
import { AgentTree, toAdkTool } from "./agent-tree.ts";
import { toContent } from "./contents.ts";
import { type AdkAgent, type AdkEvent, type GoogleAdkSdk, loadGoogleAdk } from "./google-adk-sdk.ts";

/** The kit models and tools that agents are built with. */
export interface GoogleAdkWork<Tool = never> {
  /** The tools of the operation; kit runs them under its agent's policy. */
  readonly tools: Tool[];
  readonly operation: BackendOperation;
}

/** An `LlmAgent` of the package. */
export interface GoogleAdkAgent {
  readonly name: string;
  readonly subAgents: readonly object[];
  clone(overrides: never): unknown;
}

export interface GoogleAdkOptions {
  /** The agent that starts. Agents without tools get all tools of the operation. */
  readonly agent: GoogleAdkAgent;
}

/**
 * Agents of Google's Agent Development Kit decide the turns: an `LlmAgent` with those below it, or a function that builds
 * it of the operation's tools; without any, one that calls tools until it is done. Transfers are shown as tasks.
 *
 * Kit calls the model of its own agent: `model` and `generateContentConfig` of the package's agents do not count. To
 * choose among the tools in TypeScript, name their type: `googleAdk<BaseTool>(…)`.
 *
 * @example
 * import { createAgent } from "kit";
 * import { googleAdk } from "kit/backends/google-adk";
 *
 * // ({ tools }) => new LlmAgent({ name: "shop", tools, subAgents: [billing] }), of `@google/adk`
 * declare const createShop: Parameters<typeof googleAdk>[0];
 * export default createAgent({ backend: googleAdk(createShop) });
 */
export function googleAdk<Tool = never>(
  build:
    | GoogleAdkOptions
    | ((work: GoogleAdkWork<Tool>) => GoogleAdkAgent | Promise<GoogleAdkAgent>)
    | undefined = undefined,
): AgentBackend {
  return {
    name: "google_adk",
    capabilities: { handoffs: true },
    async run(operation) {
      const { sdk, untraced } = await loadGoogleAdk(operation.projectRoot);
      const inKit = AsyncLocalStorage.snapshot();
      const tools = operation.tools.map((tool) => toAdkTool(tool, { sdk, operation, inKit }));
      const tree = new AgentTree({ sdk, operation, tools, inKit, fills: typeof build === "object" });
      const root =
        build === undefined
          ? tree.plain()
          : tree.copyOf(
              typeof build === "function" ? await build({ tools: tools as Tool[], operation }) : build.agent,
            );
      const answer = await untraced(() => perform(root, { sdk, operation, tree }));
      // For instance, the reply of an agent's callback.
      if (answer !== undefined && answer !== tree.answer) operation.answer(answer);
    },
  };
}

interface Performance {
  readonly sdk: GoogleAdkSdk;
  readonly operation: BackendOperation;
  readonly tree: AgentTree;
}

/** Runs agents until nothing is left to do; gives the text of the last answer. */
async function perform(root: AdkAgent, { sdk, operation, tree }: Performance): Promise<string | undefined> {
  const current = tree.current(root);
  const names = { appName: "kit", userId: "kit" };
  const sessionService = new sdk.InMemorySessionService();
  const session = await sessionService.createSession(names);
  const contents = operation.history().map(toContent);
  const newMessage = contents.pop();
  if (newMessage === undefined) return undefined;
  for (const content of contents) {
    const author = content.role === "model" ? current.name : "user";
    await sessionService.appendEvent({ session, event: sdk.createEvent({ author, content }) });
  }
  const runner = new (class extends sdk.Runner {
    determineAgentForResumption(): AdkAgent {
      return current;
    }
  })({ ...names, agent: root, sessionService });
  const events = runner.runAsync({
    ...names,
    sessionId: session.id,
    newMessage,
    abortSignal: operation.signal,
    // Kit's budget is the limit.
    runConfig: { maxLlmCalls: 0 },
  });
  let answer: string | undefined;
  for await (const event of events) {
    if (tree.failure !== undefined) throw tree.failure.error;
    refuseFailed(event);
    if (sdk.isFinalResponse(event))
      answer = (event.content?.parts ?? []).map(({ text = "" }) => text).join("") || answer;
  }
  if (tree.failure !== undefined) throw tree.failure.error;
  operation.signal.throwIfAborted();
  return answer;
}

/** The package makes events of errors that its callbacks throw. */
function refuseFailed({ author, errorCode, errorMessage }: AdkEvent): void {
  if (errorCode === undefined && errorMessage === undefined) return;
  throw new KitError({
    code: "internal_error",
    message: `The agent "${author}" failed: ${errorMessage ?? errorCode}`,
  });
}
