import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { LanguageModelV4Message, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { OpenSubject, Subject } from "../subject.ts";
import { createZeroModel } from "../zero-model.ts";

/**
 * The same work written by hand, with nothing else: call the model, read its stream, run the
 * tool, append a row for each message. The cost of an agent library is its time beyond this.
 */
export const floor: Subject = { stores: true, streams: true, open };

type Append = (position: number, message: LanguageModelV4Message) => void;

async function open({ script, file }: Parameters<Subject["open"]>[0]): Promise<OpenSubject> {
  const model = createZeroModel(script);
  const log = file === undefined ? undefined : openLog(file);
  const sessions = new Map<string, Conversation>();
  const converse = async (name: string, onDelta?: () => void): Promise<void> => {
    let conversation = sessions.get(name);
    if (conversation === undefined) {
      conversation = { messages: [{ role: "system", content: "You help." }], append: log?.appender(name) };
      sessions.set(name, conversation);
    }
    await loop(model, conversation, onDelta);
    if (log !== undefined && sessions.size > 1_000) sessions.clear();
  };
  return {
    prompt: (name) => converse(name),
    stream: converse,
    listen: converse,
    reopen: async (name) => log?.read(name) ?? 0,
    close: async () => log?.close(),
  };
}

interface Conversation {
  readonly messages: LanguageModelV4Message[];
  readonly append: Append | undefined;
}

async function loop(
  model: ReturnType<typeof createZeroModel>,
  { messages, append }: Conversation,
  onDelta?: () => void,
): Promise<void> {
  const print = (message: LanguageModelV4Message): void => {
    messages.push(message);
    append?.(messages.length, message);
  };
  print({ role: "user", content: [{ type: "text", text: "hi" }] });
  for (;;) {
    const { stream } = await model.doStream({ prompt: messages });
    const reader = stream.getReader();
    let text = "";
    const calls: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>[] = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (value.type === "text-delta") {
        text += value.delta;
        onDelta?.();
      } else if (value.type === "tool-call") calls.push(value);
    }
    if (calls.length === 0) {
      print({ role: "assistant", content: [{ type: "text", text }] });
      return;
    }
    const inputs = calls.map((call) => ({ ...call, input: JSON.parse(call.input) as { text: string } }));
    print({
      role: "assistant",
      content: inputs.map(({ toolCallId, toolName, input }) => ({
        type: "tool-call",
        toolCallId,
        toolName,
        input,
      })),
    });
    print({
      role: "tool",
      content: inputs.map(({ toolCallId, toolName, input }) => ({
        type: "tool-result",
        toolCallId,
        toolName,
        output: { type: "text", value: input.text },
      })),
    });
  }
}

interface Log {
  appender(name: string): Append;
  read(name: string): number;
  close(): void;
}

/** Writes a row for each message, each in a separate transaction, synced like kit's store by default. */
function openLog(file: string): Log {
  const database = new DatabaseSync(file);
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
     CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
     CREATE TABLE IF NOT EXISTS entries (session_id INTEGER NOT NULL, position INTEGER NOT NULL, data TEXT NOT NULL,
       PRIMARY KEY (session_id, position)) STRICT, WITHOUT ROWID;`,
  );
  const create: StatementSync = database.prepare("INSERT INTO sessions (name) VALUES (?)");
  const find = database.prepare("SELECT id FROM sessions WHERE name = ?");
  const insert = database.prepare("INSERT INTO entries VALUES (?, ?, ?)");
  const read = database.prepare("SELECT data FROM entries WHERE session_id = ? ORDER BY position");
  read.setReturnArrays(true);
  return {
    appender(name) {
      const id = create.run(name).lastInsertRowid;
      return (position, message) => {
        insert.run(id, position, JSON.stringify(message));
      };
    },
    read(name) {
      const id = Number(find.get(name)?.id);
      const rows: unknown[] = read.all(id);
      return rows.map((row) => JSON.parse(String((row as unknown[])[0])) as unknown).length;
    },
    close: () => database.close(),
  };
}
