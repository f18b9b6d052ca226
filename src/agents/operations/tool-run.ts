import type { Operation } from "../agent-runtime.ts";
import { CallGate } from "../approvals/call-gate.ts";
import { noApplicationCalls } from "../define/create-agent.ts";
import { builtInToolNames } from "../define/profile-settings.ts";
import { RunningTools } from "../turn/run-tool.ts";
import type { CallContext } from "../turn/running-call.ts";
import type { ToolRunOptions } from "../turn/tool-calls.ts";
import type { Prepared, PromptHost } from "./prepare.ts";

/** The options of the calls of an operation's tools. */
export function toolRunOf(harness: PromptHost, operation: Operation, prepared: Prepared): ToolRunOptions {
  const { runtime } = harness;
  return {
    tools: prepared.tools,
    operationId: operation.id,
    signal: operation.signal,
    emit: operation.emit,
    events: operation.events,
    running: new RunningTools(operation.signal),
    validateJson: runtime.validateJson,
    causeOf: runtime.causeOf,
    gate: new CallGate(harness, operation),
    place: new OperationPlace(harness, operation),
    hooks: prepared.hooks?.ofTools,
    begin: beginOf(harness, operation),
    tracing: operation.tracing,
    mask: operation.mask,
  };
}

/** Where an operation's tools are called. Few tools call the application, so its calls are made when one does. */
class OperationPlace implements CallContext {
  readonly #host: PromptHost;
  readonly #operation: Operation;
  readonly principal: string | undefined;
  readonly rulesLeftOut: ReadonlySet<string>;
  #calls: ApplicationCalls | undefined;

  constructor(host: PromptHost, operation: Operation) {
    this.#host = host;
    this.#operation = operation;
    this.principal = host.runtime.principal?.();
    this.rulesLeftOut = operation.rulesLeftOut;
    this.#calls = undefined;
  }

  get agent(): string {
    return this.#operation.live.key.agent;
  }

  get instance(): string {
    return this.#operation.live.key.instance_id;
  }

  get session(): string {
    return this.#operation.live.key.session;
  }

  get runId(): string | undefined {
    return this.#host.run_id;
  }

  get env(): CallContext["env"] {
    return this.#host.runtime.env;
  }

  get dispatch(): CallContext["dispatch"] {
    return this.#application().dispatch;
  }

  get startRun(): CallContext["startRun"] {
    return this.#application().startRun;
  }

  get getRun(): CallContext["getRun"] {
    return this.#application().getRun;
  }

  #application(): ApplicationCalls {
    const { run_id, runtime } = this.#host;
    const { id, live } = this.#operation;
    this.#calls ??= runtime.callsOf?.(run_id, { ...live.key, operation_id: id }) ?? noApplicationCalls;
    return this.#calls;
  }
}

type ApplicationCalls = Pick<CallContext, "dispatch" | "startRun" | "getRun">;

/** Tracks writes of the user's tools; kit's own tools report theirs. */
function beginOf({ runtime }: Pick<PromptHost, "runtime">, { live }: Operation): ToolRunOptions["begin"] {
  if (runtime.sources === undefined) return undefined;
  return (tool) => {
    const isOwn =
      builtInToolNames.has(tool) || runtime.project?.tools.some(({ name }) => name === tool) === true;
    return isOwn ? undefined : runtime.sources?.begin({ ...live.key, tool });
  };
}
