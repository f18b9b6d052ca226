import type { PromptInput } from "../../client/agents-client.ts";
import type { WorkOptions } from "../../client/call-options.ts";
import type { KitClient } from "../../client/kit-client.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { CommandContext } from "../command.ts";
import { createEventPrinter, type EventPrinter } from "../run/print-events.ts";
import { printBody, printRunResult } from "../run/print-outcome.ts";
import { safeLines } from "../text/safe-text.ts";
import { createApprovalAnswers } from "./answer-approvals.ts";

/** What is asked of a server. */
export interface InvokeCall {
  readonly client: KitClient;
  readonly context: CommandContext;
  /** Of the agent or the workflow. */
  readonly name: string;
  /** Show the work as it happens. */
  readonly stream: boolean;
  /** Do not wait for the end. */
  readonly dispatch: boolean;
  readonly work: WorkOptions;
}

/** Prompts an agent and prints its answer, or hands the message over and prints the receipt. */
export async function invokeAgent(call: InvokeCall, input: PromptInput): Promise<void> {
  const { client, context, name, stream, work } = call;
  const { output, json } = context;
  if (call.dispatch) {
    const { message, ...given } = input;
    const receipt = await client.agents.dispatch(name, { ...given, input: message }, work);
    if (json) output.json(receipt);
    else output.line(receipt.dispatch_id);
    return;
  }
  const printer = createEventPrinter(context, { stream, answers: true });
  const result = await watch(call, printer, client.agents.stream(name, input, work));
  if (json) printBody({ result }, context, stream);
  else if (printer.printedText === "") output.line(safeLines(result.text));
}

/** Runs a workflow and prints its result, or starts it and prints the run's id. */
export async function invokeWorkflow(
  call: InvokeCall,
  payload: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { client, context, name, stream, work } = call;
  if (call.dispatch) {
    const receipt = await client.workflows.start(name, payload, work);
    if (context.json) context.output.json(receipt);
    else context.output.line(receipt.run_id);
    return;
  }
  const printer = createEventPrinter(context, { stream, answers: context.output.isTerminal });
  const body = await watch(call, printer, client.workflows.stream(name, payload, work));
  printRunResult(body, { context, stream, printer });
}

/** Prints the events as they come, has approvals asked about, and gives the result. */
async function watch<Result>(
  { client, context }: InvokeCall,
  printer: EventPrinter,
  events: AsyncIterable<KitEvent> & { result(): Promise<Result> },
): Promise<Result> {
  const approvals = createApprovalAnswers({ client, context, printer });
  try {
    for await (const event of events) {
      printer.onEvent(event);
      approvals.onEvent(event);
    }
    return await events.result();
  } finally {
    approvals.close();
    printer.end();
    context.output.progress("");
  }
}
