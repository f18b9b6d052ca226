import type { ToolCallPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Operation } from "../agent-runtime.ts";
import { CallGate } from "../approvals/call-gate.ts";
import { noApplicationCalls } from "../define/create-agent.ts";
import {
  builtInToolNames,
  type CallSettings,
  compactionOf,
  needsCompaction,
} from "../define/profile-settings.ts";
import { type NativeOutput, nativeOutput } from "../output/typed-output.ts";
import { guidelineEntries } from "../prompt/guidelines.ts";
import { keepHead } from "../prompt/turn-records.ts";
import type { LoopSession, TurnLoop } from "../turn/loop-parts.ts";
import { RunningTools } from "../turn/run-tool.ts";
import type { CallContext } from "../turn/running-call.ts";
import type { ToolRunOptions } from "../turn/tool-calls.ts";
import type { Prepared, PromptHost } from "./prepare.ts";

/** The session around the turns of a prompt. A class: each of its functions would live as long as the prompt. */
export class PromptSession implements LoopSession {
  readonly #harness: PromptHost;
  readonly #operation: Operation;
  readonly #prepared: Prepared;
  #toolRun: ToolRunOptions | undefined;

  constructor(harness: PromptHost, operation: Operation, prepared: Prepared) {
    this.#harness = harness;
    this.#operation = operation;
    this.#prepared = prepared;
    this.#toolRun = undefined;
  }

  keepHead({ prompt, tools }: TurnLoop, settings: CallSettings): string | undefined {
    const { mask } = this.#operation;
    return keepHead(this.#harness.store, { system: prompt.current.text, tools, settings, mask });
  }

  toolRun(): ToolRunOptions {
    this.#toolRun ??= toolRunOf(this.#harness, this.#operation, this.#prepared);
    return this.#toolRun;
  }

  join(): Promise<void> | undefined {
    const [harness, operation] = [this.#harness, this.#operation];
    const ids = harness.runtime.joins?.ids(operation.live.key) ?? [];
    if (ids.length === 0) return undefined;
    const model = this.#prepared.models.current;
    return import("./join-inputs.ts").then(({ joinInputs }) =>
      joinInputs(harness, operation, { ids, model }),
    );
  }

  needsRoom(reason: "threshold" | "overflow"): boolean {
    const { live, state } = this.#operation;
    const settings = compactionOf(live.profile);
    if (reason === "overflow") return settings.enabled;
    const window = this.#prepared.models.current.contextWindowTokens ?? settings.contextWindowTokens;
    return needsCompaction(state.tokens, window, settings);
  }

  async makeRoom(reason: "threshold" | "overflow"): Promise<void> {
    const { models, prompt } = this.#prepared;
    const { compactWith } = await import("../compaction/compact.ts");
    await compactWith(this.#harness, this.#operation, { reason, resolved: models.current });
    prompt.renew();
  }

  afterTools(calls: readonly ToolCallPart[]): MaybePromise<readonly SessionEntry[]> {
    const [operation, { repository, promptFiles, tools }] = [this.#operation, this.#prepared];
    if (operation.live.profile.guidelines === false || repository === undefined) return none;
    const { clock } = this.#harness.runtime;
    return guidelineEntries(repository, calls, { operation, tools, promptFiles, clock });
  }

  nativeOutput(...asked: Parameters<LoopSession["nativeOutput"]>): NativeOutput | undefined {
    return nativeOutput(this.#prepared.models.current, ...asked);
  }
}

const none: readonly never[] = [];

/** Prepares the calls of an operation's tools. */
function toolRunOf(harness: PromptHost, operation: Operation, prepared: Prepared): ToolRunOptions {
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
