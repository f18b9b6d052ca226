import { setTimeout as sleep } from "node:timers/promises";
import type { KitClient } from "../../client/kit-client.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { decisionSignal, type SpecTaskProgress } from "../../protocol/spec-run.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { canAsk, type Style } from "../print/output.ts";
import { formatLocation } from "../print/table.ts";
import { safeLine, safeLines, truncate } from "../text/safe-text.ts";
import { askPerson } from "./terminal-approvals.ts";

interface SpecTasksOptions {
  readonly client: KitClient;
  readonly context: CommandContext;
  readonly runId: string;
  /** Whether only the result is printed. */
  readonly isQuiet: boolean;
}

/** The columns of the word that says how a task ended, with the gap behind it. */
const wordWidth = 9;
/** How often kit looks whether the run has nothing left to do but to wait, in ms. */
const pollMs = 300;

/** Shows the tasks of a run, and asks the person at the terminal about those that wait. */
export class SpecTasks {
  readonly #options: SpecTasksOptions;
  readonly #waiting = new Map<string, SpecTaskProgress>();
  readonly #lastKey = new Map<string, string>();
  readonly #closing = new AbortController();
  #questions: Promise<void> = Promise.resolve();
  /** When this terminal began to look, in ms since 1970. */
  readonly since: number = Date.now();
  /** Whether the command ended before the run, which waits for a person. */
  isLeft = false;

  constructor(options: SpecTasksOptions) {
    this.#options = options;
  }

  /** The events of a run to its end, or until it only waits for a person who cannot be asked here. */
  async *until(events: AsyncIterable<KitEvent>): AsyncGenerator<KitEvent, void> {
    const iterator = events[Symbol.asyncIterator]();
    let next = iterator.next();
    try {
      for (;;) {
        const first = this.#mayLeave ? await Promise.race([next, this.#idle()]) : await next;
        if (first === "left") {
          this.isLeft = true;
          return;
        }
        if (first === "idle") continue;
        if (first.done === true) return;
        yield first.value;
        next = iterator.next();
      }
    } finally {
      this.#closing.abort();
      // Nothing waits for what the stream gives from now on.
      next.catch(() => undefined);
      void iterator.return?.()?.catch(() => undefined);
    }
  }

  /** Resolves after a moment: `left` if the run waits, and no terminal can be asked. */
  async #idle(): Promise<"idle" | "left"> {
    const { client, runId } = this.#options;
    await sleep(pollMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    if (this.#closing.signal.aborted) return "idle";
    const { status } = await client.runs.get(runId);
    return status === "waiting" ? "left" : "idle";
  }

  get #mayLeave(): boolean {
    return this.#waiting.size > 0 && !this.#canAsk;
  }

  get #canAsk(): boolean {
    const { input, output, json } = this.#options.context;
    return canAsk({ input, output }) && !json;
  }

  onTask(task: SpecTaskProgress): void {
    if (task.state === "waiting") this.#waiting.set(task.task, task);
    else this.#waiting.delete(task.task);
    if (!this.#options.isQuiet) this.#show(task);
    if (task.state === "waiting" && this.#canAsk) {
      this.#questions = this.#questions.then(() => this.#ask(task)).catch(() => undefined);
    }
  }

  /** Says how to answer, for a run that waits after this command has ended. */
  printLeft(): ExitCode {
    const { output, json } = this.#options.context;
    const { runId } = this.#options;
    const waiting = [...this.#waiting.values()].map((task) => ({ ...task, signal: signalOf(task) }));
    if (json) output.json({ run_id: runId, waiting });
    for (const { task, signal } of waiting) {
      output.note(output.noteStyle("yellow", `The task ${safeLine(task)} waits for a person. To accept it:`));
      output.note(`  kit runs signal ${runId} '${safeLine(signal)}' --payload '{"approved": true}'`);
    }
    output.note(
      `Without accepting: '{"approved": false, "comment": "what is missing"}'. Then run the same command again.`,
    );
    return 3;
  }

  #show(task: SpecTaskProgress): void {
    const { output } = this.#options.context;
    const { task: number, title, state, attempt, verdict, reason, commit, work_tree } = task;
    const name = `${safeLine(number)}  ${safeLine(title)}`;
    const key = `${state} ${attempt} ${verdict?.tree ?? ""} ${verdict?.end ?? ""}`;
    if (this.#lastKey.get(number) === key) return;
    this.#lastKey.set(number, key);
    switch (state) {
      case "closed":
        this.#line(["green", state], name, suffix(attempt, commit));
        break;
      case "refused":
      case "denied":
      case "skipped":
        this.#line(["red", state], name);
        if (reason !== undefined && reason !== "" && state !== "refused")
          output.note(`  ${safeLines(reason)}`);
        if (work_tree !== undefined) output.note(`  Its files are in ${safeLine(work_tree)}`);
        break;
      case "waiting":
        this.#line(["yellow", state], name);
        this.#reasons(task);
        break;
      default:
        if (state === "working" && verdict !== undefined && attempt > 0 && verdict.end !== "closed") {
          this.#line(["yellow", "again"], name, ` (attempt ${attempt} refused)`);
          this.#reasons(task);
        }
        output.progress(
          `${name}: ${state === "judging" ? "kit runs the tests" : `attempt ${Math.max(attempt, 1)}`} …`,
        );
    }
  }

  /** The word, then as much of the name as the line has room for. */
  #line([style, word]: readonly [Style, string], name: string, after = ""): void {
    const { output } = this.#options.context;
    const room = output.width - wordWidth - after.length;
    output.line(`${output.style(style, word.padEnd(wordWidth))}${truncate(name, room)}${after}`);
  }

  #reasons({ verdict }: SpecTaskProgress): void {
    const { output } = this.#options.context;
    for (const { check, message, path, line } of verdict?.reasons ?? []) {
      const at = path === undefined ? "" : `  ${safeLine(formatLocation(path, line))}`;
      output.note(`  ${output.noteStyle("yellow", check)}${at}`);
      output.note(`  ${safeLine(message)}`);
    }
  }

  async #ask(task: SpecTaskProgress): Promise<void> {
    const { client, context, runId } = this.#options;
    const { output, input } = context;
    if (this.#waiting.get(task.task)?.verdict?.tree !== task.verdict?.tree) return;
    output.progress("");
    for (const line of (task.diff ?? "").split("\n"))
      output.note(output.noteStyle(diffStyle(line), safeLine(line)));
    const answer = await askPerson(
      { input, output, question: `Accept the task ${safeLine(task.task)}? [y/N, or say what is missing]` },
      this.#closing.signal,
    );
    if (answer === undefined) return;
    const { approved, reason: comment } = answer;
    const payload = comment === undefined ? { approved } : { approved, comment };
    await client.runs.signal(runId, { name: signalOf(task), payload });
  }
}

function signalOf({ task, verdict }: SpecTaskProgress): string {
  return decisionSignal(task, verdict?.tree ?? "");
}

function suffix(attempt: number, commit: string | undefined): string {
  const facts = [
    ...(attempt > 1 ? [`${attempt} attempts`] : []),
    ...(commit === undefined ? [] : [commit.slice(0, 10)]),
  ];
  return facts.length === 0 ? "" : `  (${facts.join(", ")})`;
}

function diffStyle(line: string): Style {
  if (/^(?:\+\+\+|---|diff|index)/.test(line)) return "bold";
  return line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
}
