import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Agent } from "../agents/harness.ts";
import type { PromptOptions, PromptResult } from "../agents/operations/options.ts";
import {
  checkOutput,
  type OutputSchema,
  type TypedOutputAsked,
  type TypedOutputAttempt,
  TypedOutputError,
} from "../agents/output/typed-output.ts";
import type { Session } from "../agents/session/session.ts";
import type { ToolRunOptions } from "../agents/turn/tool-calls.ts";
import { KitError } from "../base/kit-error.ts";
import { defined } from "../base/record.ts";
import { isStandardSchema } from "../base/standard-schema.ts";
import type { RunContext } from "../engine/contract.ts";
import type { KitEvent } from "../protocol/event.ts";
import { partialResults } from "../protocol/read-records.ts";

/** The journal that records the operations of a run's agents. */
export interface AgentJournal {
  readonly step: RunContext["step"];
  readonly validateJson: ToolRunOptions["validateJson"];
}

/**
 * Wraps an agent so that its operations are steps of a run: each returns its recorded result in a replay. Reads (history,
 * files) are not recorded, and neither is Python, whose variables are part of the process.
 */
export function journalAgent(agent: Agent, journal: AgentJournal): Agent {
  const { sessions } = agent;
  const wrap = (name: string): Session => journalSession(agent.session(name), agent.name, journal);
  const record = <Value>(what: string, name: string, work: () => Promise<Value>): Promise<Value> =>
    journal.step(`${what} ${agent.name}/${name}`, work);
  return {
    name: agent.name,
    id: agent.id,
    profile: agent.profile,
    approvals: agent.approvals,
    get busy() {
      return agent.busy;
    },
    session: (name = "default") => wrap(name),
    sessions: {
      async create(name) {
        await record("create session", name, async () => {
          await sessions.create(name);
          return null;
        });
        return wrap(name);
      },
      async get(name) {
        const known = await record(
          "look for session",
          name,
          async () => (await sessions.get(name)) !== undefined,
        );
        return known ? wrap(name) : undefined;
      },
      list: () => journal.step(`list sessions ${agent.name}`, () => sessions.list()),
      async delete(name) {
        await record("delete session", name, async () => {
          await sessions.delete(name);
          return null;
        });
      },
    },
    onEvent: (listener) => agent.onEvent(listener),
    close: (options) => agent.close(options),
  };
}

/** Options that a journaled operation gets in addition to those of the caller. */
interface OperationSettings {
  /** The same in each attempt, so that an interrupted operation resumes. */
  readonly operationId: string;
  readonly signal: AbortSignal;
}

/**
 * Wraps a session so that its operations are steps of a run. An operation takes its position in the journal when it is
 * called, so that parallel calls keep their order in every replay.
 */
function journalSession(session: Session, agent: string, journal: AgentJournal): Session {
  const step = <Value>(
    kind: string,
    { signal }: { readonly signal?: AbortSignal | undefined },
    work: (given: OperationSettings) => Promise<Value>,
  ): Promise<Value> =>
    journal
      .step(`${kind} ${agent}/${session.name}`, (given) =>
        work({
          operationId: toOperationId(given.idempotencyKey),
          signal: signal === undefined ? given.signal : AbortSignal.any([given.signal, signal]),
        }).catch((error: unknown) => {
          throw toRecorded(signal?.aborted === true ? toAborted(error) : error);
        }),
      )
      .catch((error: unknown) => {
        throw fromRecorded(error);
      });

  const operate = async <Result>(
    kind: string,
    options: PromptOptions<Result>,
    run: (given: PromptOptions<Result>) => Promise<PromptResult<Result>>,
  ): Promise<PromptResult<Result>> => {
    const { result: schema } = options;
    let live: PromptResult<Result> | undefined;
    const recorded = await step(kind, options, async (given) => {
      live = await run({ ...options, ...given });
      // The schema may return a value that is not JSON: the journal records the answer's text, and parses it in a replay.
      return isStandardSchema(schema) ? { ...live, result: undefined } : live;
    });
    if (live !== undefined) return live;
    const result = isStandardSchema(schema)
      ? await readAgain(recorded.text, schema, journal.validateJson)
      : recorded.result;
    return { ...recorded, result: result as Result };
  };

  return {
    name: session.name,
    prompt: (text, options = {}) => operate("prompt", options, (given) => session.prompt(text, given)),
    stream(text, options = {}) {
      const begun = Promise.withResolvers<AsyncIterable<KitEvent> | undefined>();
      const result = operate("stream", options, (given) => {
        const live = session.stream(text, given);
        begun.resolve(live);
        return live.result;
      });
      // A replay has only the result, or its error: readers got the events before.
      const over = (): void => begun.resolve(undefined);
      result.then(over, over);
      const events = {
        async *[Symbol.asyncIterator](): AsyncGenerator<KitEvent, void> {
          const live = await begun.promise;
          if (live === undefined) await result;
          else yield* live;
        },
      };
      return { ...events, result, partialResults: () => partialResults(events) };
    },
    skill: (skill, options = {}) =>
      operate("skill", options, (given) => session.skill(skill, { ...options, ...given })),
    task: (text, options = {}) =>
      operate("task", options, (given) => session.task(text, { ...options, ...given })),
    shell: (command, options = {}) =>
      step("shell", options, (given) => session.shell(command, { ...options, ...given })),
    compact: (options = {}) => step("compact", options, (given) => session.compact({ ...options, ...given })),
    runPython: (code, options) => session.runPython(code, options),
    registerPythonDataclass: (dataclass: never) => session.registerPythonDataclass(dataclass),
    dumpPython: () => session.dumpPython(),
    loadPython: (dump) => session.loadPython(dump),
    abort: () => session.abort(),
    history: () => session.history(),
    fs: () => session.fs(),
  };
}

/** The caller's signal may abort an operation with any reason: the journal records `aborted`. */
function toAborted(error: unknown): unknown {
  if (error instanceof KitError) return error;
  return new KitError({
    code: "aborted",
    message: "The operation was aborted.",
    ...(error instanceof Error ? { hint: error.message } : {}),
    cause: error,
  });
}

/** A schema may return a value that JSON cannot hold, such as a date: it parses the recorded answer again. */
async function readAgain<Result>(
  text: string,
  schema: StandardSchemaV1<unknown, Result>,
  validateJson: AgentJournal["validateJson"],
): Promise<Result> {
  const check = await checkOutput<Result>(text, schema satisfies OutputSchema<Result>, validateJson);
  if (check.ok) return check.value;
  throw new KitError({
    code: "replay_mismatch",
    message: "The recorded answer of the run does not match the schema any more.",
    hint: `A started run needs the schema that it started with: ${check.issues.join("; ")}.`,
  });
}

/** Converts the key of a step to an operation id, in the characters that ids allow. */
function toOperationId(key: string): string {
  return `op_${key.replaceAll(/[^A-Za-z0-9]+/g, "_")}`;
}

type Recorded = TypedOutputAsked & { readonly attempts?: readonly TypedOutputAttempt[] };

/** A journal keeps an error's code, texts and `meta`: the invalid answers are added to `meta`. */
function toRecorded(error: unknown): unknown {
  if (!(error instanceof TypedOutputError)) return error;
  const { code, message, hint, attempts, meta } = error;
  const recorded = { code, message, meta: { ...meta, attempts } };
  return new KitError(hint === undefined ? recorded : { ...recorded, hint });
}

/** Restores the error that the operation threw, so that a replay throws the same one. */
function fromRecorded(error: unknown): unknown {
  if (!(error instanceof KitError) || error.code !== "typed_output") return error;
  // Only `toRecorded` adds these fields.
  const { attempts, agent, skill } = (error.meta ?? {}) as Recorded;
  if (attempts === undefined) return error;
  return new TypedOutputError(attempts, defined({ agent, skill }));
}
