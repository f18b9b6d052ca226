import type { App } from "../../app/agents/create-app.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { safeLines } from "../text/safe-text.ts";
import type { EventPrinter } from "./print-events.ts";

export interface PromptRequest {
  readonly app: App;
  readonly context: CommandContext;
  readonly printer: EventPrinter;
  readonly options: {
    readonly prompt?: string | undefined;
    readonly agent?: string | undefined;
    readonly id?: string | undefined;
    readonly session?: string | undefined;
    readonly model?: string | undefined;
    readonly role?: string | undefined;
    readonly stream?: boolean | undefined;
  };
}

/** Prompts an agent and prints its answer, or its work as it happens. */
export async function promptAgent({ app, context, options, printer }: PromptRequest): Promise<ExitCode> {
  const agent = await app.instance(options.agent ?? "default", options.id ?? "default");
  const session = agent.session(options.session ?? "default");
  const result = await session.stream(options.prompt ?? "", {
    signal: context.signal,
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.role === undefined ? {} : { role: options.role }),
  }).result;
  printer.end();
  const { output } = context;
  const { text, usage, model, metadata } = result;
  if (context.json && !options.stream) output.json({ text, usage, model, metadata });
  else if (!printer.printedText) output.line(safeLines(text));
  if (!context.json) output.note(output.noteStyle("dim", summaryOf(result)));
  return 0;
}

function summaryOf(
  result: Awaited<ReturnType<ReturnType<Awaited<ReturnType<App["instance"]>>["session"]>["prompt"]>>,
): string {
  const { usage, model, metadata } = result;
  const cost = usage.cost.total === null || usage.cost.total === 0 ? "" : `, $${usage.cost.total.toFixed(4)}`;
  const turns = metadata.turns === 1 ? "1 turn" : `${metadata.turns} turns`;
  return `${model.id}, ${turns}, ${usage.total_tokens.toLocaleString("en")} tokens${cost}, ${(metadata.duration_ms / 1000).toFixed(1)} s`;
}
