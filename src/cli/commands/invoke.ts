import { text as readText } from "node:stream/consumers";
import { KitError } from "../../base/kit-error.ts";
import type { PromptInput } from "../../client/agents-client.ts";
import type { KitClient } from "../../client/kit-client.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { openClient, urlOption } from "../remote/open-client.ts";
import { usageError } from "../report-error.ts";
import { parsePayload } from "../run/parse-payload.ts";
import { createEventPrinter } from "../run/print-events.ts";
import { printBody } from "../run/print-outcome.ts";
import { safeLines } from "../text/safe-text.ts";
import { asText } from "../values.ts";

export const invoke: Command = defineCommand({
  arguments: [
    { usage: "<agent>", description: "An agent, as 'kit routes' lists it" },
    { usage: "<id>", description: "Its instance, such as a thread or a pull request" },
  ],
  options: {
    payload: option(
      "--payload <json>",
      'What the route takes: {"message": "…", "session"?, "model"?, "role"?, "thinking_level"?}',
      parsePayload,
    ),
    message: option("-m, --message <text>", "The message alone; - reads it from stdin", asText),
    session: option("-s, --session <name>", "The conversation to continue; default: default", asText),
    stream: flag("--stream", "Show the work as it happens; with --json, an event per line"),
    dispatch: flag("--dispatch", "Hand it over, and do not wait for the answer"),
    key: option(
      "--idempotency-key <key>",
      "The same key again gives the same answer, worked on once",
      asText,
    ),
    url: urlOption,
  },
  examples: [
    'kit invoke reviewer pr-42 --payload \'{"message": "Review the change."}\'',
    'kit invoke reviewer pr-42 -m "And the tests?" --stream',
    'kit invoke reviewer pr-42 -m "Look again tonight." --dispatch',
  ],
  details:
    "Asks the server that runs for this project, or the one named with --url. Keys come from KIT_API_KEY.",
  run: async ({ args: [agent = "", id = ""], options }, context) => {
    const message = options.message === "-" ? await readText(process.stdin) : options.message;
    const body = { ...options.payload, ...(message === undefined ? {} : { message }) };
    if (typeof body.message !== "string" || body.message.trim() === "") {
      throw usageError("There is no message.", "Give --message, or --payload with a message.");
    }
    const client = await openClient(context, options.url);
    const hinting = <Value>(asked: Promise<Value>): Promise<Value> => asked.catch(explainUnknown);
    const input = {
      ...body,
      id,
      ...(options.session === undefined ? {} : { session: options.session }),
    } as PromptInput;
    const work = options.key === undefined ? {} : { idempotencyKey: options.key };
    if (options.dispatch === true) {
      const { message: said, session } = input;
      const given = { id, input: said, ...(session === undefined ? {} : { session }) };
      const receipt = await hinting(client.agents.dispatch(agent, given, work));
      if (context.json) context.output.json(receipt);
      else context.output.line(receipt.dispatch_id);
    } else if (options.stream === true) await hinting(stream({ client, agent, input, context, work }));
    else {
      const result = await hinting(client.agents.invoke(agent, input, work));
      if (context.json) printBody({ result }, context, false);
      else context.output.line(safeLines(result.text));
    }
    return 0;
  },
});

function explainUnknown(error: unknown): never {
  if (!(error instanceof KitError) || error.code !== "agent_not_found") throw error;
  throw new KitError({
    code: error.code,
    message: error.message,
    hint: "'kit routes' lists the agents of this project.",
    cause: error,
  });
}

async function stream(call: {
  readonly client: KitClient;
  readonly agent: string;
  readonly input: PromptInput;
  readonly context: CommandContext;
  readonly work: { readonly idempotencyKey?: string };
}): Promise<void> {
  const { client, agent, input, context, work } = call;
  const printer = createEventPrinter(context, { stream: true, answers: true });
  const events = client.agents.stream(agent, input, work);
  try {
    for await (const event of events) printer.onEvent(event);
    const result = await events.result();
    printer.end();
    if (context.json) printBody({ result }, context, true);
    else if (printer.printedText === "") context.output.line(safeLines(result.text));
  } finally {
    printer.end();
  }
}
