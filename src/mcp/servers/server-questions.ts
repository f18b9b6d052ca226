import type { ElicitResult, InputRequiredResult } from "@modelcontextprotocol/client";
import type { AskPerson } from "../../agents/define/question.ts";
import { maskSecrets, maskValue } from "../../agents/secrets.ts";
import { linkSignals } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { cleanLine, cleanText, visibleText } from "../clean-text.ts";
import { limits } from "../limits.ts";
import { SchemaFault } from "../schemas/normalize-schema.ts";
import { checkSize } from "../schemas/vet-schema.ts";
import { ServerFailure } from "./server-failure.ts";
import type { ServerSettings } from "./server-settings.ts";

/**
 * Asks a person for a server, with the parameters of `elicitation/create`, which are not checked yet. The signal withdraws the
 * question. Rejects with `ServerFailure` if no person can be asked that.
 */
export type AskForServer = (params: unknown, signal?: AbortSignal) => Promise<ElicitResult>;

/** Creates the questions of one call: a server asks the person of the call, and at most `limits.questions` times. */
export function createServerQuestions(
  { name, secrets }: Pick<ServerSettings, "name" | "secrets">,
  ask: AskPerson,
): AskForServer {
  let asked = 0;
  return async (params, signal) => {
    asked += 1;
    if (asked > limits.questions)
      throw refused(`It asked a person more than ${limits.questions} questions in one call.`);
    const { message, schema } = toForm(params, (text) => maskSecrets(text, secrets));
    try {
      const answer = await ask({ message: `The MCP server "${name}" asks: ${message}`, schema, signal });
      if (answer.action !== "accept") return { action: answer.action };
      return { action: "accept", content: answer.value as NonNullable<ElicitResult["content"]> };
    } catch (error) {
      if (error instanceof TypeError) throw unusable(error.message);
      if (error instanceof KitError && error.code === "unavailable") throw noPerson();
      throw error;
    }
  };
}

/** Types that a form can have a field for; a list is one of choices. */
const fieldTypes: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "array"]);

/** The text and the schema of a question, without what a person cannot see. */
function toForm(
  params: unknown,
  mask: (text: string) => string,
): { readonly message: string; readonly schema: Readonly<Record<string, unknown>> } {
  if (!isRecord(params)) throw unusable("it is not an object.");
  const { mode = "form", message, requestedSchema } = params;
  if (mode === "url") throw refused("It asks a person to open an address, which agents do not support.");
  if (mode !== "form" || typeof message !== "string") throw unusable("it is not a form with a message.");
  if (
    !isRecord(requestedSchema) ||
    requestedSchema.type !== "object" ||
    !isRecord(requestedSchema.properties)
  )
    throw unusable("its schema is not that of an object with properties.");
  const wrong = Object.entries(requestedSchema.properties).find(
    ([, field]) => !isRecord(field) || !fieldTypes.has(field.type),
  );
  if (wrong !== undefined)
    throw unusable(
      `its field "${cleanLine(wrong[0], 100)}" is no text, number, yes or no, or list of choices.`,
    );
  try {
    checkSize(requestedSchema);
    const schema = maskValue(requestedSchema, (text) => mask(visibleText(text)));
    // A line of its own could seem to come from kit.
    const text = mask(cleanText(message, limits.questionChars)).replaceAll("\n", "\n> ");
    if (text === "") throw unusable("its message is empty.");
    return { message: text, schema };
  } catch (error) {
    if (error instanceof SchemaFault) throw unusable(`its schema ${error.message}.`);
    // Nested so deeply that the stack overflows.
    if (error instanceof RangeError) throw unusable("its schema is nested too deeply.");
    throw error;
  }
}

function refused(message: string): ServerFailure {
  return new ServerFailure(message, { outcome: "refused" });
}

function unusable(why: string): ServerFailure {
  return refused(`It asked a question that no person can answer: ${why}`);
}

/** The failure of a question where no person can be asked. */
function noPerson(): ServerFailure {
  return refused("It asks for input from a person, which this call does not have.");
}

/** Answers what a server of the protocol from 2026 asks before it answers a call. Returns the parameters to call it again with. */
export async function answerInputs(
  { inputRequests, requestState }: InputRequiredResult,
  ask: AskForServer,
): Promise<Record<string, unknown>> {
  const answers = await Promise.all(
    Object.entries(isRecord(inputRequests) ? inputRequests : {}).map(async ([key, request]) => {
      const method = isRecord(request) ? request.method : undefined;
      if (!isRecord(request) || method !== "elicitation/create")
        throw refused(`It asks for ${cleanLine(String(method), 100)}, which agents do not support.`);
      return [key, await ask(request.params)] as const;
    }),
  );
  return {
    ...(answers.length === 0 ? {} : { inputResponses: Object.fromEntries(answers) }),
    ...(requestState === undefined ? {} : { requestState }),
  };
}

/** A call that a server is working on. */
interface OpenCall {
  readonly ask: AskForServer | undefined;
  /** Stops the time limit of the call during a question. */
  readonly pause: <Value>(question: Promise<Value>) => Promise<Value>;
}

/** The open calls of a connection with the protocol from before 2026, in which a question does not name its call. */
export class OpenCalls {
  readonly #calls = new Set<OpenCall>();

  /** Makes a call within `ms` milliseconds, without those in which a person is asked. */
  async run<Value>(
    limit: {
      readonly ask: AskForServer | undefined;
      readonly ms: number;
      readonly signal: AbortSignal;
      /** The reason with which the signal of the call ends it. */
      readonly onTimeout: () => unknown;
    },
    call: (signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const link = linkSignals([limit.signal]);
    let leftMs = limit.ms;
    let since = 0;
    let timer: NodeJS.Timeout | undefined;
    let questions = 0;
    const start = (): void => {
      since = performance.now();
      timer = setTimeout(() => link.abort(limit.onTimeout()), Math.max(0, leftMs));
    };
    const stop = (): void => {
      clearTimeout(timer);
      leftMs -= performance.now() - since;
    };
    const open: OpenCall = {
      ask: limit.ask,
      pause: async (question) => {
        if (questions === 0) stop();
        questions += 1;
        try {
          return await question;
        } finally {
          questions -= 1;
          if (questions === 0 && this.#calls.has(open)) start();
        }
      },
    };
    this.#calls.add(open);
    start();
    try {
      return await call(link.signal);
    } finally {
      this.#calls.delete(open);
      clearTimeout(timer);
      link.unlink();
    }
  }

  /** Asks the person of the only open call. */
  async ask(params: unknown, signal: AbortSignal): Promise<ElicitResult> {
    const [call, other] = this.#calls;
    if (call?.ask === undefined) throw noPerson();
    if (other !== undefined)
      throw refused("It asks a person while several calls are open, and does not say which of them asks.");
    return await call.pause(call.ask(params, signal));
  }
}
