import { text as readText } from "node:stream/consumers";
import { KitError } from "../../base/kit-error.ts";
import type { PromptInput } from "../../client/agents-client.ts";
import type { WorkOptions } from "../../client/call-options.ts";
import type { KitClient } from "../../client/kit-client.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptBody } from "../../protocol/prompt.ts";
import { asText, parsePayload } from "../choices.ts";
import { openClient, urlOption } from "../client/open-client.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import {
  createEventPrinter,
  type EventPrinter,
  printBody,
  printFailure,
  printRunResult,
} from "../print/print-events.ts";
import { usageError } from "../report-error.ts";
import { createApprovalAnswers } from "../run/answer-approvals.ts";
import { safeLines } from "../text/safe-text.ts";

export const invoke: Command = defineCommand({
  arguments: [
    {
      usage: "<name>",
      description: "An agent or a workflow, as 'kit routes' lists it",
      completes: "agent or workflow",
    },
    { usage: "[id]", description: "The agent's instance, such as a thread; a workflow has none" },
  ],
  options: {
    payload: option(
      "--payload <json>",
      'The body for the route; for an agent: {"message": "…", "session"?, "model"?, "backend"?, "role"?, "thinking_level"?}',
      parsePayload,
    ),
    message: option("-m, --message <text>", "The message, without a payload; - reads it from stdin", asText),
    session: option("-s, --session <name>", "The conversation to continue; default: default", asText),
    stream: flag("--stream", "Show the work as it happens; with --json, an event per line"),
    dispatch: flag("--dispatch", "Enqueue the work, print its id, and do not wait for its end"),
    key: option(
      "--idempotency-key <key>",
      "Idempotency key: a second call with the same key gets the first call's answer",
      asText,
    ),
    url: urlOption,
  },
  examples: [
    'kit invoke reviewer pr-42 -m "Review the change."',
    'kit invoke reviewer pr-42 -m "And the tests?" --stream',
    'kit invoke reviewer pr-42 -m "Look again tonight." --dispatch',
    `kit invoke review-file --payload '{"file": "src/app.ts"}'`,
  ],
  details:
    "Asks the server that runs for this project, or the one named with --url. Keys come from KIT_API_KEY. Asks at the terminal about tool calls that need approval. A workflow run continues after this command ends.",
  run: async ({ args: [name = "", id], options }, context) => {
    const { payload = {}, stream = false, dispatch = false, key } = options;
    const message = options.message === "-" ? await readText(context.input) : options.message;
    const { session } = options;
    const body = {
      ...payload,
      ...(message === undefined ? {} : { message }),
      ...(session === undefined ? {} : { session }),
    };
    if (id === undefined && (message ?? session) !== undefined) {
      throw usageError(
        "A message goes to an instance of an agent.",
        `Name one: kit invoke ${name} <id> -m …`,
      );
    }
    if (id !== undefined) checkMessage(body);
    const call: InvokeCall = {
      client: await openClient(context, options.url),
      context,
      name,
      stream,
      dispatch,
      work: key === undefined ? {} : { idempotencyKey: key },
    };
    try {
      if (id === undefined) await invokeWorkflow(call, payload);
      else await invokeAgent(call, { ...body, id } as PromptInput);
      return 0;
    } catch (error) {
      if (context.signal.aborted) {
        context.output.note(id === undefined ? leftRun : key === undefined ? leftPrompt : leftKeyedPrompt);
        throw context.signal.reason;
      }
      return printFailure(explainUnknown(error, name), context, stream);
    }
  },
});

/** Prints what happens to the work on the server when this command is interrupted. */
const leftRun = "If the server accepted the run, it continues: 'kit runs list' shows it.";
const leftPrompt = "Stopped. The session keeps what was done so far.";
const leftKeyedPrompt = "The work continues: repeat the command to wait for its answer.";

function checkMessage({ message }: Partial<PromptBody>): void {
  if (typeof message === "string" && message.trim() !== "") return;
  throw usageError("There is no message.", "Give --message, or --payload with a message.");
}

function explainUnknown(error: unknown, name: string): unknown {
  if (!(error instanceof KitError) || error.hint !== undefined) return error;
  const { code, message, meta } = error;
  const hint = hintFor(code, name);
  return hint === undefined
    ? error
    : new KitError({ code, message, hint, cause: error, ...(meta && { meta }) });
}

const sinceStart = "A server of 'kit start' serves those that existed when it started.";

function hintFor(code: string, name: string): string | undefined {
  switch (code) {
    case "agent_not_found":
      return `'kit routes' lists the agents of this project. ${sinceStart}`;
    case "agent_not_webhook":
      return "Its file does not serve it over HTTP. 'kit run' prompts it in this terminal.";
    case "workflow_not_found":
      return `'kit routes' lists the workflows of this project. ${sinceStart} An agent takes an id: kit invoke ${name} <id>.`;
    default:
      return undefined;
  }
}

/** A request to a server. */
interface InvokeCall {
  readonly client: KitClient;
  readonly context: CommandContext;
  /** The name of the agent or the workflow. */
  readonly name: string;
  /** Show the work as it happens. */
  readonly stream: boolean;
  /** Do not wait for the end. */
  readonly dispatch: boolean;
  readonly work: WorkOptions;
}

/** Prompts an agent and prints its answer, or enqueues the message and prints the receipt. */
async function invokeAgent(call: InvokeCall, input: PromptInput): Promise<void> {
  const { client, context, name, stream, work } = call;
  const { output, json } = context;
  if (call.dispatch) {
    const { message, ...target } = input;
    const receipt = await client.agents.dispatch(name, { ...target, input: message }, work);
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
async function invokeWorkflow(call: InvokeCall, payload: Readonly<Record<string, unknown>>): Promise<void> {
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

/** Prints the events as they come, asks for approvals, and returns the result. */
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
