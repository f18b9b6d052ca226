import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { loadPeer } from "../peers/install-peer.ts";
import {
  deltasPerAnswer,
  type OpenSubject,
  type Script,
  type Subject,
  toolCallsPerLoop,
} from "../subject.ts";

/** LangGraph's prebuilt agent, with its checkpointers in memory and in SQLite. */
export const langgraph: Subject = { stores: true, streams: true, open };

interface Message {
  getType(): string;
}

interface Graph {
  invoke(input: unknown, config: unknown): Promise<{ readonly messages: readonly Message[] }>;
  stream(input: unknown, config: unknown): Promise<AsyncIterable<unknown>>;
}

interface TokenListener {
  handleLLMNewToken(token: string, ...rest: readonly unknown[]): Promise<void>;
}

interface Modules {
  readonly prebuilt: { createReactAgent(options: unknown): Graph };
  readonly graph: { readonly MemorySaver: new () => unknown };
  readonly sqlite: { readonly SqliteSaver: new (database: unknown) => unknown };
  readonly models: { readonly BaseChatModel: new (options: object) => object };
  readonly messages: {
    readonly AIMessage: new (content: unknown) => unknown;
    readonly AIMessageChunk: new (content: unknown) => unknown;
  };
  readonly outputs: { readonly ChatGenerationChunk: new (fields: unknown) => unknown };
  readonly tools: { tool(execute: unknown, definition: unknown): unknown };
  readonly zod: { readonly z: { object(fields: unknown): unknown; string(): unknown } };
}

async function open({ script, file }: Parameters<Subject["open"]>[0]): Promise<OpenSubject> {
  const modules = await loadModules();
  const { z } = modules.zod;
  const echo = modules.tools.tool(async ({ text }: { readonly text: string }) => text, {
    name: "echo",
    description: "Says it again.",
    schema: z.object({ text: z.string() }),
  });
  const database = file === undefined ? undefined : openDatabase(file);
  const checkpointer =
    database === undefined ? new modules.graph.MemorySaver() : new modules.sqlite.SqliteSaver(database);
  const graph = modules.prebuilt.createReactAgent({
    llm: createModel(script, modules),
    tools: [echo],
    prompt: "You help.",
    checkpointer,
  });
  const input = { messages: [{ role: "user", content: "hi" }] };
  const config = (session: string): object => ({ configurable: { thread_id: session }, recursionLimit: 50 });
  return {
    prompt: (session) => graph.invoke(input, config(session)),
    async stream(session, onDelta) {
      const stream = await graph.stream(input, { ...config(session), streamMode: "messages" });
      for await (const _part of stream) onDelta();
    },
    close: async () => database?.close(),
  };
}

async function loadModules(): Promise<Modules> {
  const load = <Module>(specifier: string): Promise<Module> => loadPeer<Module>("langgraph", specifier);
  return {
    prebuilt: await load("@langchain/langgraph/prebuilt"),
    graph: await load("@langchain/langgraph"),
    sqlite: await load("@langchain/langgraph-checkpoint-sqlite"),
    models: await load("@langchain/core/language_models/chat_models"),
    messages: await load("@langchain/core/messages"),
    outputs: await load("@langchain/core/outputs"),
    tools: await load("@langchain/core/tools"),
    zod: await load("zod"),
  };
}

function createModel(script: Script, { models, messages, outputs }: Modules): unknown {
  let calls = 0;
  const { AIMessage, AIMessageChunk } = messages;
  return new (class extends models.BaseChatModel {
    _llmType(): string {
      return "zero";
    }
    bindTools(): this {
      return this;
    }
    async _generate(history: readonly Message[]): Promise<unknown> {
      if (script !== "tools" || resultsSinceUser(history) >= toolCallsPerLoop) {
        return { generations: [{ text: "", message: new AIMessage("Hello there.") }] };
      }
      calls += 1;
      const call = { type: "tool_call", id: `call_${calls}`, name: "echo", args: { text: "the same again" } };
      return {
        generations: [{ text: "", message: new AIMessage({ content: "", tool_calls: [call] }) }],
      };
    }
    async *_streamResponseChunks(
      _history: unknown,
      _options: unknown,
      run?: TokenListener,
    ): AsyncGenerator<unknown> {
      for (let index = 0; index < deltasPerAnswer; index += 1) {
        const chunk = new outputs.ChatGenerationChunk({
          text: "word ",
          message: new AIMessageChunk("word "),
        });
        yield chunk;
        // Models report each token themselves, from which a stream of messages is made.
        await run?.handleLLMNewToken("word ", undefined, undefined, undefined, undefined, { chunk });
      }
    }
  })({});
}

function resultsSinceUser(messages: readonly Message[]): number {
  let results = 0;
  for (let index = messages.length - 1; index >= 0 && messages[index]?.getType() !== "human"; index -= 1) {
    if (messages[index]?.getType() === "tool") results += 1;
  }
  return results;
}

interface BetterSqlite {
  close(): void;
  pragma(text: string): void;
  exec(sql: string): void;
  prepare(sql: string): {
    get(...values: unknown[]): unknown;
    all(...values: unknown[]): unknown;
    run(...values: unknown[]): unknown;
  };
  transaction(work: (rows: unknown) => void): (rows: unknown) => void;
}

/**
 * The part of better-sqlite3 that LangGraph's SQLite checkpointer calls, based on Node's SQLite: the library's
 * own code stores, and nothing has to be compiled.
 */
function openDatabase(file: string): BetterSqlite {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA synchronous = NORMAL");
  const run = (sql: string): void => database.exec(sql);
  return {
    close: () => database.close(),
    pragma: (text: string) => run(`PRAGMA ${text}`),
    exec: run,
    prepare(sql: string) {
      const statement = database.prepare(sql);
      return {
        get: (...values) => statement.get(...toValues(values)),
        all: (...values) => statement.all(...toValues(values)),
        run: (...values) => statement.run(...toValues(values)),
      };
    },
    transaction:
      (work: (rows: unknown) => void) =>
      (rows: unknown): void => {
        run("BEGIN");
        work(rows);
        run("COMMIT");
      },
  };
}

/** better-sqlite3 stores undefined as NULL; the SQLite of Node refuses it. */
function toValues(values: readonly unknown[]): SQLInputValue[] {
  return values.map((value) => (value === undefined ? null : (value as SQLInputValue)));
}
