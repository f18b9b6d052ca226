import type {
  AgentBackend,
  BackendMessage,
  BackendOperation,
  BackendQuestion,
  BackendState,
  BackendTool,
  BackendTurn,
  TurnRequest,
} from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { AssistantMessage, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { BackendWork } from "../agent-runtime.ts";
import { notRun } from "../log/operation-log.ts";
import { type AsideNote, asideNote } from "../log/past-operation.ts";
import { maskValue } from "../secrets.ts";
import { CallWatch } from "../turn/call-model.ts";
import { type TurnLoop, toEntry, toolRunOf } from "../turn/loop-parts.ts";
import { runTools } from "../turn/run-tools.ts";
import { callsOf, emitTurnFailed, runModelTurn } from "../turn/turn-loop.ts";
import {
  BackendNotes,
  endNote,
  fingerprintOf,
  noteEntry,
  stateNote,
  toRequestLoop,
  valueIn,
  withAnswered,
} from "./backend-request.ts";
import { concludingAnswer, noAnswer, ownMessage, requestDecision } from "./backend-steps.ts";
import {
  callId,
  handled,
  Lane,
  locationOfCall,
  messageId,
  type OpenTurn,
  operationEnded,
  type PastTurn,
  PastTurns,
  requestNote,
  storedResult,
  Turn,
  toBackendCalls,
  toBackendMessages,
  unknownCall,
} from "./backend-turn.ts";

/** Runs the operation's backend to its end and returns the operation's answer. */
export async function runBackend(loop: TurnLoop, backend: AgentBackend): Promise<AssistantMessage> {
  using run = new BackendRun(loop, backend);
  return await run.perform();
}

/**
 * The view of an operation that a backend works with. Each turn appends only new entries. However the run ends (answer,
 * error or abort), every tool call in the history has a result, so that the next operation can continue from it.
 */
class BackendRun implements BackendOperation, Disposable {
  readonly run: number;
  readonly #loop: TurnLoop;
  readonly #work: BackendWork;
  readonly #backend: AgentBackend;
  readonly #watch: CallWatch;
  #tools: readonly BackendTool[] | undefined;
  #state: BackendState | undefined;
  #newest: OpenTurn | undefined;
  #past: PastTurns | undefined;
  #answer: AssistantMessage | undefined;
  #answerText: string | undefined;
  /** The first failure; the operation does nothing after it. */
  #failure: { readonly error: unknown } | undefined;
  /** The operation has its answer; late calls of the backend are refused. */
  #isOver = false;
  readonly #lane = new Lane();

  constructor(loop: TurnLoop, backend: AgentBackend) {
    this.#loop = loop;
    this.#backend = backend;
    this.#work = loop.work;
    this.run = loop.work.runs;
    this.#watch = new CallWatch(loop.operation.signal, loop.idleTimeoutMs);
  }

  get state(): BackendState {
    this.#state ??= this.#toState();
    return this.#state;
  }

  get files(): BackendOperation["files"] {
    const sandbox = () => this.#loop.operation.live.sandbox();
    return {
      upload: async (path, content) => (await sandbox()).upload(path, content),
      download: async (path) => (await sandbox()).download(path),
    };
  }

  get operationId(): string {
    return this.#loop.operation.id;
  }

  get projectRoot(): string | undefined {
    return this.#work.projectRoot;
  }

  get system(): string {
    return this.#loop.prompt.current.text;
  }

  get signal(): AbortSignal {
    return this.#loop.operation.signal;
  }

  get tools(): readonly BackendTool[] {
    this.#tools ??= this.#loop.tools.map(({ name, description = "", inputSchema }) => ({
      name,
      description,
      schema: inputSchema as BackendTool["schema"],
    }));
    return this.#tools;
  }

  history(): readonly BackendMessage[] {
    return toBackendMessages(this.#loop.operation.state);
  }

  turn(request?: TurnRequest): Promise<BackendTurn> {
    return handled(
      request?.aside === true
        ? this.#lane.beside(() => this.#guarded(() => this.#aside(request)))
        : this.#lane.run(() => this.#guarded(() => this.#next(request))),
    );
  }

  tool(id: string): Promise<ToolResultPart> {
    return handled(this.#guarded(() => this.#resultOf(id)));
  }

  call(tool: string, args: Readonly<Record<string, unknown>>): Promise<ToolResultPart> {
    return handled(this.#lane.run(() => this.#guarded(() => this.#callOwn(tool, args))));
  }

  ask(question: BackendQuestion): Promise<ApprovalDecision> {
    return handled(this.#guarded(() => requestDecision(this.#loop, question)));
  }

  answer(text: string): void {
    this.#answerText = text;
  }

  /** Runs the backend; returns the newest answer in the log. */
  async perform(): Promise<AssistantMessage> {
    const { signal } = this.#loop.operation;
    let thrown: { readonly error: unknown } | undefined;
    try {
      await this.#backend.run(this);
    } catch (error) {
      thrown = { error: signal.aborted ? signal.reason : error };
    }
    this.#failure ??= thrown;
    // Calls that the backend did not wait for end before the operation does.
    await this.#lane.quiet();
    if (this.#failure !== undefined) throw this.#failure.error;
    this.#isOver = true;
    await this.#closeCalls();
    const answer = await this.#conclude();
    if (answer === undefined) throw noAnswer(this.#backend);
    this.#work.runs += 1;
    return answer;
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]();
  }

  async #next(request: TurnRequest | undefined): Promise<BackendTurn> {
    let asking: string | undefined;
    try {
      const fingerprint = fingerprintOf(request);
      let loop = fingerprint === undefined ? this.#loop : this.#requestLoop(request ?? {}, fingerprint);
      for (;;) {
        const open = this.#newest;
        if (open !== undefined && open.results === undefined) await this.#runCalls(open);
        let turn = this.#past?.next(fingerprint);
        if (turn === undefined) {
          loop.operation.spending.check();
          if (loop.sent === undefined && loop.session.needsRoom("threshold"))
            await loop.session.makeRoom("threshold");
          asking = createId("turn");
          const message = await runModelTurn(loop, asking, this.#watch);
          turn = this.#registerAnswer(message, loop, asking);
          asking = undefined;
        }
        const { message, position } = turn;
        this.#answer = message;
        const calls = callsOf(message);
        const existingCalls = toBackendCalls(calls, position, toolRunOf(loop).tools);
        if (calls.length === 0 || existingCalls.length > 0) {
          const backendTurn = new Turn(messageId(position), message, existingCalls);
          if (request?.schema !== undefined)
            backendTurn.value = await valueIn(message, request.schema, this.#loop);
          return backendTurn;
        }
        if (this.#newest?.position === position) await this.#runCalls(this.#newest);
        loop = withAnswered(loop, message);
      }
    } catch (error) {
      if (asking !== undefined) emitTurnFailed(this.#loop.operation, asking, 0);
      throw error;
    }
  }

  /** Registers a new answer of the model, whose calls have not run yet. */
  #registerAnswer(message: AssistantMessage, loop: TurnLoop, turnId: string): PastTurn {
    const position = loop.operation.state.positions.at(-1) ?? 0;
    const calls = callsOf(message);
    this.#newest =
      calls.length === 0
        ? undefined
        : { loop, turnId, position, calls, running: undefined, results: undefined };
    if (calls.length === 0) loop.operation.emit({ type: "turn_end", tool_calls: 0 }, turnId);
    return { message, position };
  }

  async #aside(request: TurnRequest): Promise<BackendTurn> {
    const fingerprint = fingerprintOf(request) ?? "";
    const turn = this.#past?.next(fingerprint);
    const message = turn?.message ?? (await this.#callModelAside(this.#requestLoop(request, fingerprint)));
    const backendTurn = new Turn(`a${fingerprint}`, message, []);
    if (request.schema !== undefined) backendTurn.value = await valueIn(message, request.schema, this.#loop);
    return backendTurn;
  }

  async #callModelAside(loop: TurnLoop): Promise<AssistantMessage> {
    loop.operation.spending.check();
    const turnId = createId("turn");
    using watch = new CallWatch(loop.operation.signal, loop.idleTimeoutMs);
    try {
      const message = await runModelTurn(loop, turnId, watch);
      loop.operation.emit({ type: "turn_end", tool_calls: 0 }, turnId);
      return message;
    } catch (error) {
      emitTurnFailed(loop.operation, turnId, 0);
      throw error;
    }
  }

  #requestLoop(request: TurnRequest, fingerprint: string): TurnLoop {
    const loop = toRequestLoop(this.#loop, request);
    const toEntries = (entry: SessionEntry, message: AssistantMessage): readonly SessionEntry[] => {
      if (request.aside !== true) return [entry, noteEntry(this.#loop, requestNote, fingerprint)];
      const note: AsideNote = { message, request: fingerprint };
      return [noteEntry(this.#loop, asideNote, note)];
    };
    return { ...loop, toEntries };
  }

  async #resultOf(id: string): Promise<ToolResultPart> {
    const location = locationOfCall(id);
    const open = this.#newest;
    if (open?.position === location.position && open.results === undefined) await this.#runCalls(open);
    const log = { state: this.#loop.operation.state, past: this.#loop.operation.past };
    const result =
      open?.position === location.position ? open.results?.[location.at] : storedResult(log, location);
    if (result === undefined) throw unknownCall(id);
    return { ...result, tool_call_id: id };
  }

  /** Runs the calls of a turn once, however many callers ask. */
  #runCalls(open: OpenTurn): Promise<void> {
    open.running ??= this.#lane.beside(() => this.#runOpen(open));
    return open.running;
  }

  async #runOpen(open: OpenTurn): Promise<void> {
    const { loop, calls, turnId } = open;
    try {
      open.results = await runTools(loop, calls, { turnId });
    } catch (error) {
      emitTurnFailed(loop.operation, turnId, calls.length);
      throw error;
    }
    loop.operation.emit({ type: "turn_end", tool_calls: calls.length }, turnId);
    if (loop.operation.signal.aborted) throw loop.operation.signal.reason;
  }

  async #callOwn(tool: string, args: Readonly<Record<string, unknown>>): Promise<ToolResultPart> {
    const loop = this.#loop;
    const { mask } = loop.operation;
    const part: ToolCallPart = {
      type: "tool_call",
      tool_call_id: createId("call"),
      tool,
      args: mask === undefined ? args : maskValue(args, mask),
    };
    if (this.#newest !== undefined && this.#newest.results === undefined) await this.#runCalls(this.#newest);
    const done = this.#past?.call(part);
    if (done !== undefined) {
      const result = storedResult(
        { state: loop.operation.state, past: this.#loop.operation.past },
        { ...done, at: 0 },
      );
      if (result !== undefined) return { ...result, tool_call_id: callId(done.position, 0) };
    }
    await this.#loop.operation.log.commit([toEntry(loop, ownMessage(loop, [part]))]);
    const position = loop.operation.state.positions.at(-1) ?? 0;
    const turnId = createId("turn");
    const open: OpenTurn = { loop, turnId, position, calls: [part], running: undefined, results: undefined };
    this.#newest = open;
    await this.#runCalls(open);
    const [result] = open.results ?? [];
    if (result === undefined) throw unknownCall(tool);
    return { ...result, tool_call_id: callId(position, 0) };
  }

  #toState(): BackendState {
    const { past } = this.#loop.operation;
    const notes = new BackendNotes({ backend: this.#backend.name, run: this.run });
    return {
      load: () => {
        const { saved, position } = notes.read(past);
        if (past !== undefined && position > 0) this.#past = new PastTurns(past, position);
        return saved;
      },
      save: (value) =>
        handled(
          this.#guarded(async () => {
            await this.#loop.operation.log.commit([noteEntry(this.#loop, stateNote, notes.toNote(value))]);
          }),
        ),
    };
  }

  /** Adds results to calls that the backend never ran. */
  async #closeCalls(): Promise<void> {
    const open = this.#newest;
    if (open === undefined || open.results !== undefined) return;
    const { loop, calls, turnId } = open;
    const content = calls.map((call) => notRun(call, "The call was not run: the agent had ended by then."));
    await this.#loop.operation.log.commit([
      toEntry(loop, { role: "tool", content, timestamp: isoTime(loop.clock.now()) }),
    ]);
    loop.operation.emit({ type: "turn_end", tool_calls: calls.length }, turnId);
  }

  /** Determines the answer and makes it the last message of the log. */
  async #conclude(): Promise<AssistantMessage | undefined> {
    const { mask, emit } = this.#loop.operation;
    const end = this.#backend.capabilities?.state === true ? [noteEntry(this.#loop, endNote, this.run)] : [];
    const words = this.#answerText === undefined ? undefined : (mask?.(this.#answerText) ?? this.#answerText);
    const { message, isNew } = concludingAnswer(this.#loop, { words, newest: this.#answer });
    if (message === undefined) return undefined;
    if (!isNew) {
      if (end.length > 0) await this.#loop.operation.log.commit(end);
      return message;
    }
    const turnId = createId("turn");
    if (words !== undefined) emit({ type: "text_delta", text: words }, turnId);
    await this.#loop.operation.log.commit([toEntry(this.#loop, message), ...end]);
    emit({ type: "turn_end", tool_calls: 0 }, turnId);
    return message;
  }

  /** The first failure ends the operation: what the backend asks for after it is refused. */
  async #guarded<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#isOver) throw operationEnded();
      return await work();
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }
}
