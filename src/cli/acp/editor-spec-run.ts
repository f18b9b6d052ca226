import { setTimeout as sleep } from "node:timers/promises";
import type {
  PermissionOption,
  RequestPermissionOutcome,
  SessionUpdate,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { onAbort, raceSignal } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import type { KitClient } from "../../client/kit-client.ts";
import {
  commandContent,
  diffOf,
  textContent,
  visibleLine,
  visibleText,
} from "../../interfaces/acp/call-view.ts";
import { toOptions, toVerdict } from "../../interfaces/acp/permission.ts";
import {
  callIdOf,
  contentOfTask,
  describeTaskCall,
  type PlannedTask,
  SpecRunFold,
  taskOfCall,
} from "../../interfaces/acp/spec-run-fold.ts";
import type { KitEvent } from "../../protocol/event.ts";
import {
  decisionSignal,
  type SpecRunBody,
  type SpecTaskProgress,
  specRunResultSchema,
  specTaskOf,
} from "../../protocol/spec-run.ts";
import { failureOf, findOrStart } from "../run/run-spec.ts";

/** The editor, as a spec run uses it. */
export interface RunEditor {
  /** The path of the project in its repository: `""`, or it ends with a slash. */
  readonly prefix: string;
  send(updates: readonly SessionUpdate[]): void;
  /** Asks the person; undefined if the editor gives no answer. */
  ask(
    toolCall: ToolCallUpdate,
    options: PermissionOption[],
    signal: AbortSignal,
  ): Promise<RequestPermissionOutcome | undefined>;
}

/** How a person ends a prompt: a stop is about the run, and whoever leaves has decided nothing. */
export interface PromptSignals {
  readonly stop: AbortSignal;
  readonly leave: AbortSignal;
}

type ApprovalRequested = Extract<KitEvent, { type: "approval_request" }>;

const taskOptions: PermissionOption[] = [
  { optionId: "accept", name: "Accept the task", kind: "allow_once" },
  { optionId: "deny", name: "Do not accept it", kind: "reject_once" },
];

const pageSize = 1_000;
/** The longest time between the answers of an editor that stops a run and its stop, in ms. */
const graceMs = 300;

/** A spec run in a conversation of an editor: shows its tasks, and asks the person about those that wait and about calls of their agents. */
export class EditorSpecRun {
  readonly #client: KitClient;
  readonly #editor: RunEditor;
  readonly #fold = new SpecRunFold();
  /** Open questions, by the task or the waiting call that they are about. */
  readonly #questions = new Map<string, AbortController>();
  /** Tasks and calls that wait in what has been read of the run. */
  readonly #waiting = new Map<string, SpecTaskProgress | ApprovalRequested>();
  /** The folders of the tasks, by task. */
  readonly #workTrees = new Map<string, string>();
  /** Ends the reading of the run, and the questions. */
  readonly #leaving = new AbortController();
  #runId = "";
  #hasPlan = false;

  constructor(client: KitClient, editor: RunEditor) {
    this.#client = client;
    this.#editor = editor;
  }

  /**
   * Works through the tasks until the run ends, or a task waits without an answer. A stop cancels the run; without it, the run stays
   * open. Throws what made the run fail.
   */
  async toEnd(body: SpecRunBody, { stop, leave }: PromptSignals): Promise<void> {
    const ended = AbortSignal.any([stop, leave]);
    const { runId, isOld } = await findOrStart(this.#client, body, ended);
    this.#runId = runId;
    if (isOld) {
      // The person has not seen this run, so the stop is not about it.
      if (ended.aborted) this.#send(`The run ${runId} is left as it was.`);
      ended.throwIfAborted();
      this.#send(`Goes on with the run ${runId}, as it was begun.`);
    }
    let cancelling: Promise<string | undefined> | undefined;
    const endings = [
      onAbort(stop, () => {
        cancelling = this.#cancel();
      }),
      onAbort(leave, () => this.#leaving.abort()),
    ];
    try {
      await this.#follow(await this.#catchUp());
      ended.throwIfAborted();
      if (!this.#leaving.signal.aborted) await this.#end();
    } catch (error) {
      if (!ended.aborted) throw error;
      if (cancelling !== undefined)
        this.#send(
          (await cancelling) ??
            `Stopped. Closed tasks stay closed, and \`/spec ${visibleLine(body.feature)}\` begins with those that are left.`,
        );
      throw ended.reason;
    } finally {
      for (const remove of endings) remove();
      await cancelling;
      this.#leaving.abort();
      this.#editor.send(this.#fold.endOpen());
    }
  }

  /** Returns why the run was not cancelled. */
  async #cancel(): Promise<string | undefined> {
    // Editors answer their questions as cancelled, which is no answer to them.
    for (const question of this.#questions.values()) question.abort();
    try {
      const isCancelled = await this.#client.runs.cancel(this.#runId);
      return isCancelled ? undefined : `The run ${this.#runId} had already ended.`;
    } catch (error) {
      return `The run ${this.#runId} was not stopped, and can go on: ${visibleLine(thrownText(error))} \`kit runs cancel ${this.#runId}\` ends it.`;
    } finally {
      this.#leaving.abort();
    }
  }

  /** Shows what has happened before, and returns the index of the last event. */
  async #catchUp(): Promise<number | undefined> {
    let after: number | undefined;
    for (;;) {
      const page = await this.#client.runs.events(this.#runId, { after, limit: pageSize });
      for (const event of page.events) await this.#show(event);
      after = page.events.at(-1)?.index ?? after;
      if (page.next_after === undefined) break;
    }
    for (const key of this.#waiting.keys()) this.#ask(key);
    return after;
  }

  async #follow(after: number | undefined): Promise<void> {
    const { signal } = this.#leaving;
    const from = after === undefined ? {} : { after };
    const events = this.#client.runs.stream(this.#runId, from)[Symbol.asyncIterator]();
    try {
      for (;;) {
        // A stream in this process does not end while its next event is waited for.
        const next = events.next();
        next.catch(() => undefined);
        const { done, value } = await raceSignal(next, signal);
        if (done === true) return;
        const key = await this.#show(value);
        if (key !== undefined) this.#ask(key);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      void events.return?.()?.catch(() => undefined);
    }
  }

  /** Returns the key of what waits since this event. */
  async #show(event: KitEvent): Promise<string | undefined> {
    const task = specTaskOf(event);
    if (task?.work_tree !== undefined) this.#workTrees.set(task.task, task.work_tree);
    if (task !== undefined && !this.#hasPlan) {
      this.#hasPlan = true;
      this.#editor.send(this.#fold.plan(await this.#plan()));
    }
    this.#editor.send(this.#fold.push(event));
    if (task !== undefined) return this.#note(task.task, task.state === "waiting" ? task : undefined);
    if (event.type === "approval_request") return this.#note(event.approval_id, event);
    if (event.type === "approval") this.#note(event.approval_id, undefined);
    return undefined;
  }

  /** Replaces what waits under a key, and ends the question about it. Returns the key of a new question. */
  #note(key: string, waits: SpecTaskProgress | ApprovalRequested | undefined): string | undefined {
    const before = this.#waiting.get(key);
    // A run that goes on repeats what it had not recorded.
    if (before !== undefined && waits !== undefined && questionOf(before) === questionOf(waits))
      return undefined;
    this.#questions.get(key)?.abort();
    this.#questions.delete(key);
    if (waits === undefined) this.#waiting.delete(key);
    else this.#waiting.set(key, waits);
    return waits && key;
  }

  /** The tasks of the first step of the run. */
  async #plan(): Promise<readonly PlannedTask[]> {
    const { entries } = await this.#client.runs.journal(this.#runId, { limit: 1 });
    const value = entries[0]?.value;
    const tasks: unknown = isRecord(value) ? value.tasks : undefined;
    return (Array.isArray(tasks) ? tasks : []).flatMap((task: unknown) =>
      isRecord(task) && typeof task.number === "string" && typeof task.title === "string"
        ? [{ task: task.number, title: task.title }]
        : [],
    );
  }

  #ask(key: string): void {
    const waits = this.#waiting.get(key);
    if (waits === undefined || this.#leaving.signal.aborted) return;
    const question = new AbortController();
    this.#questions.set(key, question);
    const signal = AbortSignal.any([question.signal, this.#leaving.signal]);
    const asked = "approval_id" in waits ? this.#askCall(waits, signal) : this.#askTask(waits, signal);
    asked.catch((error: unknown) => {
      if (signal.aborted) return;
      this.#send(`The answer did not arrive: ${visibleLine(thrownText(error))}`);
    });
  }

  async #askTask(task: SpecTaskProgress, signal: AbortSignal): Promise<void> {
    const name = decisionSignal(task.task, task.verdict?.tree ?? "");
    const toolCallId = `${this.#runId} ${name}`;
    const title = visibleLine(`Accept the task ${task.task} ${task.title}?`);
    const call = { toolCallId, title, kind: "other", content: contentOfTask(task) } as const;
    this.#editor.send([{ sessionUpdate: "tool_call", status: "pending", ...call }]);
    const outcome = await this.#answer(call, taskOptions, signal);
    const choice = outcome?.outcome === "selected" ? outcome.optionId : undefined;
    const approved = choice === "accept";
    const status = approved ? "completed" : "failed";
    this.#editor.send([{ sessionUpdate: "tool_call_update", toolCallId, status }]);
    if (signal.aborted) return;
    if (!approved && choice !== "deny") {
      this.#send(`The task ${visibleLine(task.task)} waits. The same command asks again.`);
      return this.#leaving.abort();
    }
    await this.#client.runs.signal(this.#runId, { name, payload: { approved } });
  }

  async #answer(
    call: Omit<ToolCallUpdate, "status">,
    options: PermissionOption[],
    signal: AbortSignal,
  ): Promise<RequestPermissionOutcome | undefined> {
    const outcome = await this.#editor.ask({ ...call, status: "pending" }, options, signal);
    // An editor that stops the run or closes also answers its questions, and the answer can come first.
    if (outcome?.outcome !== "selected") await sleep(graceMs, undefined, { signal }).catch(() => undefined);
    return outcome;
  }

  async #askCall(event: ApprovalRequested, signal: AbortSignal): Promise<void> {
    const { approval_id, agent = "", instance_id: id } = event;
    if (event.kind === "question") {
      const reason = "An editor shows no forms.";
      return await this.#client.agents.approve(agent, { id, approval_id, approved: false, reason });
    }
    const choices = await this.#client.agents
      .allowRules(agent, { id, approval_id })
      .catch(() => ({ choices: [] }));
    const workTree = this.#workTrees.get(taskOfCall(event));
    const root = workTree && `${workTree}/${this.#editor.prefix}`.replace(/\/$/, "");
    const content =
      commandContent(event) ??
      // Without its folder, the difference would seem to be one of the editor's file.
      (root === undefined ? undefined : diffOf(event, root, undefined)) ??
      textContent(visibleText(JSON.stringify(event.args ?? {})));
    const call = { toolCallId: callIdOf(event), ...describeTaskCall(event), content: [content] };
    const outcome = await this.#answer(call, toOptions(choices), signal);
    if (signal.aborted) return;
    const { approved, rule } = toVerdict(outcome, choices);
    if (rule !== undefined)
      await this.#client.agents
        .allow(agent, { id, approval_id, rule })
        .catch((error: unknown) => this.#send(`${thrownText(error)} It is allowed once.`));
    const reason = approved ? {} : { reason: "Denied in the editor." };
    await this.#client.agents.approve(agent, { id, approval_id, approved, ...reason });
  }

  async #end(): Promise<void> {
    const { status, result, error } = await this.#client.runs.get(this.#runId);
    if (status !== "completed") throw failureOf(this.#runId, error);
    this.#editor.send(this.#fold.end(specRunResultSchema.parse(result)));
  }

  #send(text: string): void {
    this.#editor.send([
      { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `${text}\n\n` } },
    ]);
  }
}

/** The call or the judged tree that a question is about. */
function questionOf(waits: SpecTaskProgress | ApprovalRequested): string | undefined {
  return "approval_id" in waits ? waits.approval_id : waits.verdict?.tree;
}

/** Reads the words after `/spec`: a feature, and the numbers of tasks. Throws `invalid_request` without a feature. */
export function toSpecRunBody(words: string): Pick<SpecRunBody, "feature" | "tasks"> {
  const [feature, ...tasks] = words.split(/[\s,]+/).filter((word) => word !== "");
  if (feature === undefined)
    throw new KitError({
      code: "invalid_request",
      message: "/spec takes the feature whose open tasks are to be done.",
      hint: "Such as /spec checkout, or /spec checkout 3 1.2 for these tasks only.",
    });
  return tasks.length === 0 ? { feature } : { feature, tasks };
}
