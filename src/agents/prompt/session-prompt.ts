import { type Clock, isoTime } from "../../base/clock.ts";
import { digestOf } from "../../base/digest.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { AnyTool } from "../define/tool.ts";
import { keptPlaceNote, type SessionState } from "../log/session-state.ts";
import { isSamePlace, placeSections, type Surroundings } from "./system-prompt.ts";
import { TurnRecords } from "./turn-records.ts";

/** The logged note about a working place that changed during a session. */
interface KeptPlace {
  /** The place that the system prompt still describes; only in the first note since the last compaction. */
  readonly kept?: {
    readonly text: string;
    readonly files: Surroundings["instructions"]["files"];
    readonly working_folder: string;
    readonly is_indexed: boolean;
    readonly commands: string;
  };
  /** A digest of each section as the model last saw it. */
  readonly told: Readonly<Record<string, string>>;
}

/** The working place of a session's system prompt, and the entries that report its changes. */
export interface PlacedPrompt {
  readonly place: Surroundings;
  readonly news: readonly SessionEntry[];
}

/**
 * Keeps the beginning of a session's prompts stable, because providers charge less for a cached beginning. Changes
 * around a session are appended to its history, until a compaction rebuilds the prompt anyway.
 */
export class SessionPrompt {
  readonly records: TurnRecords = new TurnRecords();
  #place: Surroundings | undefined;
  /** The place of the last operation: most operations have the same. */
  #found: { readonly place: Surroundings; readonly digests: PlaceDigests } | undefined;
  /** Log position of the compaction that this state starts from. */
  #since = 0;
  /** Created on first use: most sessions have no sourced tools. */
  #tools: Map<string, AnyTool> | undefined;

  /** The place for the system prompt, given that `current` is the actual one. */
  placed(
    current: Surroundings,
    session: { readonly state: SessionState; readonly operationId: string; readonly clock: Clock },
  ): PlacedPrompt {
    const { state } = session;
    this.#resetAfterCompaction(state);
    const notes = state.notes.length === 0 ? none : state.notes.filter(({ name }) => name === keptPlaceNote);
    this.#place ??= restored(notes, current) ?? current;
    const place = this.#place;
    // The model has only seen what the log has.
    const last = notes.at(-1)?.value as KeptPlace | undefined;
    if (last === undefined && isSamePlace(place, current)) return { place, news: none };
    const lastDigests = last?.told ?? digestsOf(place);
    const digests = this.#digestsOf(current);
    const changed = Object.keys(digests).filter((name) => digests[name] !== lastDigests[name]);
    return {
      place,
      news:
        changed.length === 0
          ? []
          : newsOf(changed, { place, current, digests, isKept: last !== undefined, ...session }),
    };
  }

  /** Resets the state after a compaction. */
  #resetAfterCompaction({ compactedAt }: SessionState): void {
    if (compactedAt === this.#since) return;
    this.#since = compactedAt;
    this.#place = undefined;
    this.#tools = undefined;
  }

  #digestsOf(place: Surroundings): PlaceDigests {
    if (this.#found === undefined || !isSamePlace(this.#found.place, place))
      this.#found = { place, digests: digestsOf(place) };
    return this.#found.digests;
  }

  /**
   * Sourced tools in a stable order: new ones come last, and a tool whose source is unavailable keeps its place.
   * `isAvailable` is false for such a tool.
   */
  inOrder(
    now: readonly AnyTool[],
    state: SessionState,
  ): { readonly tools: readonly AnyTool[]; readonly isAvailable: (name: string) => boolean } {
    this.#resetAfterCompaction(state);
    if (now.length === 0 && this.#tools === undefined) return noTools;
    this.#tools ??= new Map();
    const found = new Map(now.map((tool) => [tool.name, tool]));
    for (const [name, tool] of found) this.#tools.set(name, tool);
    return { tools: [...this.#tools.values()], isAvailable: (name) => found.has(name) };
  }
}

const noTools: ReturnType<SessionPrompt["inOrder"]> = { tools: [], isAvailable: () => false };

const none: readonly never[] = [];

type PlaceDigests = Readonly<Record<string, string>>;

/** The place that the system prompt still describes, from the note of this or an earlier process. */
function restored(notes: SessionState["notes"], current: Surroundings): Surroundings | undefined {
  for (const { value } of notes) {
    const { kept } = value as KeptPlace;
    if (kept === undefined) continue;
    return {
      instructions: { text: kept.text, files: kept.files, sources: current.instructions.sources },
      workingFolder: kept.working_folder,
      isIndexed: kept.is_indexed,
      commands: kept.commands,
    };
  }
  return undefined;
}

function digestsOf(place: Surroundings): Readonly<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const [name, section] of Object.entries(placeSections(place)))
    digests[name] = section === undefined ? "" : digestOf(section.text);
  return digests;
}

const titles: Readonly<Record<string, string>> = {
  project_instructions: "Project instructions",
  working_folder: "Working folder",
  specs: "Specs and guidelines",
  commands: "Commands",
};

const nothingMore = "What was said here before no longer applies.";

/** The message that reports changes to the model, and the note of what the system prompt still says. */
function newsOf(
  changed: readonly string[],
  from: {
    readonly place: Surroundings;
    readonly current: Surroundings;
    readonly digests: Readonly<Record<string, string>>;
    readonly isKept: boolean;
    readonly operationId: string;
    readonly clock: Clock;
  },
): readonly SessionEntry[] {
  const { place, current, digests: seen, isKept, operationId, clock } = from;
  const sections = placeSections(current);
  const texts = changed.map((name) => sections[name]?.text ?? `# ${titles[name] ?? name}\n\n${nothingMore}`);
  const text = `Your instructions have changed since this conversation began. This replaces what was said under the same headings before:\n\n${texts.join("\n\n")}`;
  const shows: ReceiptItem[] = changed
    .flatMap((name) => sections[name]?.items ?? [])
    .map((item) => ({ ...item, why: `${item.why}, as they have changed since` }));
  const timestamp = isoTime(clock.now());
  const value: KeptPlace = { ...(isKept ? {} : { kept: toKept(place) }), told: seen };
  return [
    {
      version: 1,
      type: "message",
      operation_id: operationId,
      message: {
        role: "user",
        content: [{ type: "text", text: text.toWellFormed() }],
        timestamp,
        source: "instructions",
        ...(shows.length === 0 ? {} : { shows }),
      },
    },
    { version: 1, type: "note", name: keptPlaceNote, value, timestamp },
  ];
}

function toKept({
  instructions,
  workingFolder,
  isIndexed,
  commands,
}: Surroundings): NonNullable<KeptPlace["kept"]> {
  const { text, files } = instructions;
  return { text, files, working_folder: workingFolder, is_indexed: isIndexed, commands };
}
