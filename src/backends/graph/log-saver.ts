import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  BaseCheckpointSaver,
  Checkpoint,
  CheckpointMetadata,
  CheckpointTuple,
} from "@langchain/langgraph";
import type { BackendState } from "../contract.ts";
import type { GraphPeers } from "./graph-peers.ts";

/** The value of a channel as JSON, or, for a list that grew, the length of the unchanged beginning and the new items. */
type SavedValue =
  | { readonly type: string; readonly json: string }
  | { readonly keep: number; readonly add: readonly string[] };

/** One note: a checkpoint with the changed channels, or the writes of a task. */
type SavedNote = { /** The newest message that the graph knew. */ readonly heard: string | undefined } & (
  | {
      readonly kind: "checkpoint";
      readonly ns: string;
      readonly parent: string | undefined;
      readonly checkpoint: Omit<Checkpoint, "channel_values">;
      readonly metadata: CheckpointMetadata;
      readonly channels: readonly string[];
      readonly changed: Readonly<Record<string, SavedValue>>;
    }
  | {
      readonly kind: "writes";
      readonly ns: string;
      readonly id: string;
      readonly task: string;
      readonly path: string;
      readonly writes: readonly (readonly [channel: string, type: string, json: string])[];
    }
);

interface Write {
  readonly task: string;
  readonly path: string;
  readonly at: number;
  readonly channel: string;
  readonly value: readonly [type: string, json: string];
}

/** The newest checkpoint of a graph or of a subgraph. */
interface Latest {
  readonly parent: string | undefined;
  readonly checkpoint: Omit<Checkpoint, "channel_values">;
  readonly metadata: CheckpointMetadata;
  readonly channels: ReadonlyMap<string, readonly [type: string, json: string]>;
  readonly writes: Map<string, Write>;
}

export interface LogSaver {
  readonly saver: BaseCheckpointSaver;
  /** Whether there is a checkpoint to resume from. */
  readonly hasCheckpoint: boolean;
  /** The newest message that the graph knew at that checkpoint. */
  readonly heard: string | undefined;
  /** Answers to interrupts of the newest checkpoint that the graph has not consumed. */
  answers(): number;
}

/**
 * Stores the checkpoints of one run as notes in the session's log. A note has only changes, and memory holds only the
 * newest checkpoint of a graph.
 */
export function createLogSaver(
  state: BackendState,
  { graphs }: GraphPeers,
  given: { readonly newest: string | undefined },
): LogSaver {
  const latest = new Map<string, Latest>();
  const decoder = new TextDecoder();

  class Saver extends graphs.BaseCheckpointSaver {
    async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
      const { thread_id, checkpoint_ns: ns = "", checkpoint_id } = config.configurable ?? {};
      const found = latest.get(String(ns));
      if (found === undefined || (checkpoint_id !== undefined && checkpoint_id !== found.checkpoint.id))
        return undefined;
      const channel_values: Record<string, unknown> = {};
      for (const [channel, [type, json]] of found.channels)
        channel_values[channel] = await this.serde.loadsTyped(type, json);
      const writes = [...found.writes.values()].sort(byPlace);
      const pendingWrites = await Promise.all(
        writes.map(async ({ task, channel, value: [type, json] }) => [
          task,
          channel,
          await this.serde.loadsTyped(type, json),
        ]),
      );
      const configOf = (id: string): RunnableConfig => ({
        configurable: { thread_id, checkpoint_ns: ns, checkpoint_id: id },
      });
      return {
        config: configOf(found.checkpoint.id),
        checkpoint: { ...structuredClone(found.checkpoint), channel_values },
        metadata: structuredClone(found.metadata),
        pendingWrites: pendingWrites as NonNullable<CheckpointTuple["pendingWrites"]>,
        ...(found.parent === undefined ? {} : { parentConfig: configOf(found.parent) }),
      };
    }

    async *list(config: RunnableConfig): AsyncGenerator<CheckpointTuple> {
      const tuple = await this.getTuple(config);
      if (tuple !== undefined) yield tuple;
    }

    async put(
      ...[config, { channel_values, ...checkpoint }, metadata, newVersions]: Parameters<
        BaseCheckpointSaver["put"]
      >
    ): Promise<RunnableConfig> {
      const { thread_id, checkpoint_ns: ns = "", checkpoint_id: parent } = config.configurable ?? {};
      const before = latest.get(String(ns))?.channels;
      const changed: Record<string, SavedValue> = {};
      for (const [channel, value] of Object.entries(channel_values)) {
        if (before?.has(channel) === true && !Object.hasOwn(newVersions, channel)) continue;
        changed[channel] = difference(before?.get(channel), await this.#dump(value));
      }
      const note: SavedNote = {
        kind: "checkpoint",
        heard: given.newest,
        ns: String(ns),
        parent,
        checkpoint,
        metadata,
        channels: Object.keys(channel_values),
        changed,
      };
      take(note);
      await state.save(note);
      return { configurable: { thread_id, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
    }

    async putWrites(
      ...[config, writes, task, path = ""]: Parameters<BaseCheckpointSaver["putWrites"]>
    ): Promise<void> {
      const { checkpoint_ns: ns = "", checkpoint_id: id } = config.configurable ?? {};
      const dumped = await Promise.all(
        writes.map(async ([channel, value]) => [channel, ...(await this.#dump(value))] as const),
      );
      const note: SavedNote = {
        kind: "writes",
        heard: given.newest,
        ns: String(ns),
        id: String(id),
        task,
        path,
        writes: dumped,
      };
      take(note);
      await state.save(note);
    }

    async deleteThread(): Promise<void> {
      latest.clear();
    }

    async #dump(value: unknown): Promise<readonly [type: string, json: string]> {
      const [type, data] = await this.serde.dumpsTyped(value);
      if (type === "json") return [type, decoder.decode(data)];
      // Channels are stored as JSON, like every entry of the log.
      const [, json] = await this.serde.dumpsTyped([...data]);
      return ["json", decoder.decode(json)];
    }
  }

  function take(note: SavedNote): void {
    const before = latest.get(note.ns);
    if (note.kind === "checkpoint") {
      const channels = new Map<string, readonly [type: string, json: string]>();
      for (const channel of note.channels) {
        const saved = note.changed[channel];
        const old = before?.channels.get(channel);
        const value = saved === undefined ? old : patched(old, saved);
        if (value !== undefined) channels.set(channel, value);
      }
      const { parent, checkpoint, metadata } = note;
      latest.set(note.ns, { parent, checkpoint, metadata, channels, writes: new Map() });
      return;
    }
    if (before === undefined || before.checkpoint.id !== note.id) return;
    note.writes.forEach(([channel, type, json], index) => {
      const at = special.get(channel) ?? index;
      const { task, path } = note;
      before.writes.set(`${task} ${at}`, { task, path, at, channel, value: [type, json] });
    });
  }

  const saved = state.load() as readonly SavedNote[];
  for (const note of saved) take(note);
  const hasCheckpoint = latest.has("");
  return {
    saver: new Saver() as BaseCheckpointSaver,
    hasCheckpoint,
    heard: saved.at(-1)?.heard,
    answers() {
      let answers = 0;
      for (const { writes } of latest.values())
        for (const { channel, value } of writes.values()) {
          if (channel !== "__resume__") continue;
          const given: unknown = JSON.parse(value[1]);
          answers += Array.isArray(given) ? given.length : 1;
        }
      return answers;
    },
  };
}

/** Special writes, one of each per task, at the same indexes as in the savers of LangGraph. */
const special: ReadonlyMap<string, number> = new Map([
  ["__error__", -1],
  ["__scheduled__", -2],
  ["__interrupt__", -3],
  ["__resume__", -4],
  ["__error_source_node__", -5],
]);

function byPlace(one: Write, other: Write): number {
  if (one.path !== other.path) return one.path < other.path ? -1 : 1;
  if (one.task !== other.task) return one.task < other.task ? -1 : 1;
  return one.at - other.at;
}

/** A list of messages grows, so each item is saved once. */
function difference(
  before: readonly [type: string, json: string] | undefined,
  [type, json]: readonly [type: string, json: string],
): SavedValue {
  const old = before === undefined ? undefined : itemsOf(before[1]);
  const now = itemsOf(json);
  if (old === undefined || now === undefined) return { type, json };
  let common = 0;
  while (common < old.length && common < now.length && old[common] === now[common]) common += 1;
  return common === 0 ? { type, json } : { keep: common, add: now.slice(common) };
}

function patched(
  before: readonly [type: string, json: string] | undefined,
  saved: SavedValue,
): readonly [string, string] {
  if ("json" in saved) return [saved.type, saved.json];
  const kept = (itemsOf(before?.[1] ?? "[]") ?? []).slice(0, saved.keep);
  return ["json", `[${[...kept, ...saved.add].join(",")}]`];
}

function itemsOf(json: string): readonly string[] | undefined {
  if (!json.startsWith("[")) return undefined;
  const value: unknown = JSON.parse(json);
  return Array.isArray(value) ? value.map((item) => JSON.stringify(item)) : undefined;
}
