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
import { commandContent, diffOf, textContent, visibleLine } from "../../interfaces/acp/call-view.ts";
import { toOptions, toVerdict } from "../../interfaces/acp/permission.ts";
import {
  callIdOf,
  contentOfTask,
  describeTaskCall,
  type PlannedTask,
  SpecRunFold,
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
  /** The folder of the session, as the editor names it. */
  readonly folder: string;
  send(updates: readonly SessionUpdate[]): void;
  /** Asks the person; undefined if the editor gives no answer. */
  ask(
    toolCall: ToolCallUpdate,
    options: PermissionOption[],
    signal: AbortSignal,
  ): Promise<RequestPermissionOutcome | undefined>;
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
  /** Ends the reading of the run. */
  readonly #leaving = new AbortController();
  #runId = "";
  #hasPlan = false;

  constructor(client: KitClient, editor: RunEditor) {
    this.#client = client;
    this.#editor = editor;
  }

  /**
   * Works through the tasks until the run ends, or a task waits without an answer. The signal cancels the run. Throws what made the
   * run fail.
   */
  async toEnd(body: SpecRunBody, signal: AbortSignal): Promise<void> {
    const { runId, isOld } = await findOrStart(this.#client, body);
    this.#runId = runId;
    if (isOld) this.#send(`Goes on with the run ${runId}, as it was begun.`);
    let cancelling: Promise<void> | undefined;
    const stop = onAbort(signal, () => {
      cancelling = this.#cancel();
    });
    try {
      await this.#follow(await this.#catchUp());
      if (signal.aborted) throw signal.reason;
      if (!this.#leaving.signal.aborted) await this.#end();
    } catch (error) {
      if (!signal.aborted) throw error;
      this.#send(
        `Stopped. Closed tasks stay closed, and \`/spec ${visibleLine(body.feature)}\` begins with those that are left.`,
      );
      throw signal.reason;
    } finally {
      stop();
      await cancelling;
      this.#endQuestions();
      this.#editor.send(this.#fold.endOpen());
    }
  }

  #endQuestions(): void {
    for (const question of this.#questions.values()) question.abort();
  }

  async #cancel(): Promise<void> {
    // Editors answer their questions as cancelled, which is no answer to them.
    this.#endQuestions();
    await this.#client.runs.cancel(this.#runId).catch(() => undefined);
    this.#leaving.abort();
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
    if (waits === undefined) return;
    const question = new AbortController();
    this.#questions.set(key, question);
    const { signal } = question;
    const asked = "approval_id" in waits ? this.#askCall(waits, signal) : this.#askTask(waits, signal);
    asked.catch((error: unknown) => {
      if (signal.aborted || this.#leaving.signal.aborted) return;
      this.#send(`The answer did not arrive: ${visibleLine(thrownText(error))}`);
    });
  }

  async #askTask(task: SpecTaskProgress, signal: AbortSignal): Promise<void> {
    const name = decisionSignal(task.task, task.verdict?.tree ?? "");
    const toolCallId = `${this.#runId} ${name}`;
    const title = visibleLine(`Accept the task ${task.task} ${task.title}?`);
    const call = { toolCallId, title, kind: "other", content: contentOfTask(task) } as const;
    this.#editor.send([{ sessionUpdate: "tool_call", status: "pending", ...call }]);
    const outcome = await this.#editor.ask({ ...call, status: "pending" }, taskOptions, signal);
    const choice = outcome?.outcome === "selected" ? outcome.optionId : undefined;
    // An editor that stops the run also answers its questions, and the answer can come first.
    if (choice === undefined) await sleep(graceMs, undefined, { signal }).catch(() => undefined);
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

  async #askCall(event: ApprovalRequested, signal: AbortSignal): Promise<void> {
    const { approval_id, agent = "", instance_id: id } = event;
    const { folder } = this.#editor;
    if (event.kind === "question") {
      const reason = "An editor shows no forms.";
      return await this.#client.agents.approve(agent, { id, approval_id, approved: false, reason });
    }
    const choices = await this.#client.agents
      .allowRules(agent, { id, approval_id })
      .catch(() => ({ choices: [] }));
    const content =
      commandContent(event) ?? diffOf(event, folder, undefined) ?? textContent(JSON.stringify(event.args));
    const call = { toolCallId: callIdOf(event), ...describeTaskCall(event), content: [content] };
    const outcome = await this.#editor.ask({ ...call, status: "pending" }, toOptions(choices), signal);
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
