import { text as readText } from "node:stream/consumers";
import type { Agent } from "../../agents/harness.ts";
import type { PromptResult } from "../../agents/operations/prompt-options.ts";
import type { FileInput } from "../../agents/prompt/input-files.ts";
import type { Session } from "../../agents/session/session.ts";
import type { App } from "../../app/service/app.ts";
import { createUlid } from "../../base/id.ts";
import type { BackendName } from "../../protocol/enums.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { usageError } from "../report-error.ts";
import { safeLines } from "../text/safe-text.ts";
import { span } from "../text/times.ts";
import type { EventPrinter } from "./print-events.ts";
import { printBody } from "./print-outcome.ts";
import { readFiles } from "./read-files.ts";

export interface PromptRequest {
  readonly app: App;
  readonly context: CommandContext;
  readonly printer: EventPrinter;
  readonly options: {
    readonly prompt?: string | undefined;
    readonly skill?: string | undefined;
    readonly payload?: Readonly<Record<string, unknown>> | undefined;
    readonly agent?: string | undefined;
    readonly id?: string | undefined;
    readonly session?: string | undefined;
    readonly continue?: boolean | undefined;
    readonly model?: readonly string[] | undefined;
    readonly backend?: BackendName | undefined;
    readonly role?: string | undefined;
    readonly file?: readonly string[] | undefined;
    readonly stream?: boolean | undefined;
  };
}

/** Prompts an agent, or has it run a skill, and prints its answer, or its work as it happens. */
export async function promptAgent(request: PromptRequest): Promise<ExitCode> {
  const { app, context, options, printer } = request;
  const files = options.file === undefined ? undefined : await readFiles(options.file, context.cwd);
  const payload = options.skill === undefined ? options.payload : undefined;
  const agent = await app.instance(options.agent ?? "default", options.id ?? "default", payload);
  const session = agent.session(
    options.continue === true ? await lastUsed(agent) : (options.session ?? newName(new Date())),
  );
  const stop = agent.subscribe(printer.onEvent);
  try {
    const result = await ask(session, request, files);
    printer.end();
    const { text, usage, model, metadata } = result;
    const { output, json } = context;
    // Only a skill with an output schema has a value: its text is how the model wrote it down.
    const typed = result.result === undefined ? {} : { result: result.result };
    if (json)
      printBody({ result: { text, ...typed, usage, model, metadata } }, context, options.stream === true);
    else {
      if (printer.printedText === "") {
        if (result.result === undefined) output.line(safeLines(text));
        else output.json(result.result);
      }
      output.note(output.noteStyle("dim", summaryOf(result, session.name)));
    }
    return 0;
  } finally {
    stop();
  }
}

/** The name of a session that this line begins: its time, and four letters because two lines may begin at once. */
function newName(now: Date): string {
  const time = now.toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  return `${time}-${createUlid().slice(-4).toLowerCase()}`;
}

/** How many of the newest sessions are looked at to find the one that was used last. */
const mostSessions = 20;

async function lastUsed(agent: Agent): Promise<string> {
  const own = (await agent.sessions.list()).filter(({ parent }) => parent === undefined);
  const uses = await Promise.all(
    own.slice(-mostSessions).map(async ({ session, created_at }) => {
      const last = (await agent.session(session).history()).at(-1);
      return { session, at: last?.timestamp ?? created_at };
    }),
  );
  const [latest] = uses.sort((a, b) => (a.at < b.at ? 1 : -1));
  if (latest !== undefined) return latest.session;
  throw usageError(
    `There is no session of the agent ${agent.name} to continue.`,
    "Without --continue a prompt begins one; --session names one.",
  );
}

async function ask(
  session: Session,
  { options, context }: PromptRequest,
  files: readonly FileInput[] | undefined,
): Promise<PromptResult<unknown>> {
  const call = {
    signal: context.signal,
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.backend === undefined ? {} : { backend: options.backend }),
    ...(files === undefined ? {} : { files }),
    ...(options.role === undefined ? {} : { role: options.role }),
  };
  if (options.skill !== undefined) {
    return session.skill<unknown>(options.skill, {
      ...call,
      ...(options.payload === undefined ? {} : { args: options.payload }),
    });
  }
  const prompt = options.prompt === "-" ? await readText(context.input) : (options.prompt ?? "");
  if (prompt.trim() === "")
    throw usageError("The prompt is empty.", options.prompt === "-" ? "Nothing came on stdin." : undefined);
  return session.stream<unknown>(prompt, call).result;
}

function summaryOf({ usage, model, metadata }: PromptResult<unknown>, session: string): string {
  const { total } = usage.cost;
  return [
    model.id,
    metadata.turns === 1 ? "1 turn" : `${metadata.turns} turns`,
    `${usage.total_tokens.toLocaleString("en")} tokens`,
    ...(total === null || total === 0 ? [] : [`$${total.toFixed(4)}`]),
    span(metadata.duration_ms),
    `session ${session} (--continue goes on with it)`,
  ].join(" · ");
}
