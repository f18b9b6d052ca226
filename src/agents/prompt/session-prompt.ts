import { type Clock, isoTime } from "../../base/clock.ts";
import { digestOf } from "../../base/digest.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { AnyTool } from "../define/tool.ts";
import { keptPlaceNote, type SessionState } from "../log/session-state.ts";
import { isSamePlace, placeSections, type Surroundings } from "./system-prompt.ts";
import { TurnRecords } from "./turn-records.ts";

/** What the log keeps of a place that has changed under a session. */
interface KeptPlace {
  /** As the system prompt goes on to say it; only in the first note since the history was shortened. */
  readonly kept?: {
    readonly text: string;
    readonly files: Surroundings["instructions"]["files"];
    readonly working_folder: string;
    readonly is_indexed: boolean;
    readonly commands: string;
  };
  /** A digest of each section as it was told last. */
  readonly told: Readonly<Record<string, string>>;
}

/** A place of work as the system prompt of a session tells it, and what has to be told of it behind the history. */
export interface PlacedPrompt {
  readonly place: Surroundings;
  readonly news: readonly SessionEntry[];
}

/**
 * Keeps the beginning of a session's prompts as it is: providers charge a part for what they have read before. What
 * changes around a session is told behind its history, until that is shortened and the prompt begins anew anyway.
 */
export class SessionPrompt {
  readonly records: TurnRecords = new TurnRecords();
  #place: Surroundings | undefined;
  /** The place that was found last: most operations find the same. */
  #found: { readonly place: Surroundings; readonly digests: PlaceDigests } | undefined;
  /** Where the log has the compaction since which all this holds. */
  #since = 0;
  /** Made when there are any: most sessions have none of others. */
  #tools: Map<string, AnyTool> | undefined;

  /** The place to tell in the system prompt where `current` is the one that is found now. */
  placed(
    current: Surroundings,
    session: { readonly state: SessionState; readonly operationId: string; readonly clock: Clock },
  ): PlacedPrompt {
    const { state } = session;
    this.#begin(state);
    const notes = state.notes.length === 0 ? none : state.notes.filter(({ name }) => name === keptPlaceNote);
    this.#place ??= restored(notes, current) ?? current;
    const place = this.#place;
    // What the log does not have was not told, whoever was about to.
    const last = notes.at(-1)?.value as KeptPlace | undefined;
    if (last === undefined && isSamePlace(place, current)) return { place, news: none };
    const told = last?.told ?? digestsOf(place);
    const digests = this.#digestsOf(current);
    const changed = Object.keys(digests).filter((name) => digests[name] !== told[name]);
    return {
      place,
      news:
        changed.length === 0
          ? []
          : newsOf(changed, { place, current, told: digests, isKept: last !== undefined, ...session }),
    };
  }

  /** Begins anew where the history was shortened. */
  #begin({ compactedAt }: SessionState): void {
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
   * The tools of others in an order that stays: new ones come last, and one that is away for now keeps its place.
   * `isThere` tells the one from the other.
   */
  inOrder(
    now: readonly AnyTool[],
    state: SessionState,
  ): { readonly tools: readonly AnyTool[]; readonly isThere: (name: string) => boolean } {
    this.#begin(state);
    if (now.length === 0 && this.#tools === undefined) return noTools;
    this.#tools ??= new Map();
    const found = new Map(now.map((tool) => [tool.name, tool]));
    for (const [name, tool] of found) this.#tools.set(name, tool);
    return { tools: [...this.#tools.values()], isThere: (name) => found.has(name) };
  }
}

const noTools: ReturnType<SessionPrompt["inOrder"]> = { tools: [], isThere: () => false };

const none: readonly never[] = [];

type PlaceDigests = Readonly<Record<string, string>>;

/** The place that the system prompt goes on to tell, as another process, or this one in an earlier life, has noted it. */
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

/** What tells the model that its place has changed, and the log what the system prompt still says. */
function newsOf(
  changed: readonly string[],
  from: {
    readonly place: Surroundings;
    readonly current: Surroundings;
    readonly told: Readonly<Record<string, string>>;
    readonly isKept: boolean;
    readonly operationId: string;
    readonly clock: Clock;
  },
): readonly SessionEntry[] {
  const { place, current, told, isKept, operationId, clock } = from;
  const sections = placeSections(current);
  const texts = changed.map((name) => sections[name]?.text ?? `# ${titles[name] ?? name}\n\n${nothingMore}`);
  const text = `Your instructions have changed since this conversation began. This replaces what was said under the same headings before:\n\n${texts.join("\n\n")}`;
  const shows: ReceiptItem[] = changed
    .flatMap((name) => sections[name]?.items ?? [])
    .map((item) => ({ ...item, why: `${item.why}, as they have changed since` }));
  const timestamp = isoTime(clock.now());
  const value: KeptPlace = { ...(isKept ? {} : { kept: toKept(place) }), told };
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
