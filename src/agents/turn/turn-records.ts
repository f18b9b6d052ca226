import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { digestOf } from "../../base/digest.ts";
import type { PromptPrefix, ReceiptItem, TurnReceipt, TurnRecord } from "../../protocol/receipt.ts";
import { remember } from "../session/remember.ts";
import type { SessionState } from "../session/session-state.ts";
import type { SystemPrompt } from "../system-prompt.ts";

/** What a turn says of its prompt, and what its session's log is to keep of that. */
export interface TurnSaid {
  readonly said: { readonly prefix: PromptPrefix; readonly receipt: TurnReceipt };
  /** Absent where the log has it of an earlier turn. */
  readonly logged?: TurnRecord;
}

/** What stands before the history. A compaction may bring another one. */
export interface LoopPrompt {
  current: SystemPrompt;
  /** Says of each turn what its prompt is made of. */
  readonly records: TurnRecords;
}

/** What the prompt of a turn is made of: a `TurnLoop` has it. */
interface PromptSource {
  readonly state: SessionState;
  readonly modelName: string;
  readonly settings: Pick<LanguageModelV4CallOptions, "reasoning" | "responseFormat">;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly prompt: Pick<LoopPrompt, "current">;
}

/** All that a prompt is made of, by identity: as long as none is another, nothing is counted again. */
interface PromptState {
  readonly model: string;
  readonly settings: PromptSource["settings"];
  readonly tools: PromptSource["tools"];
  readonly prompt: SystemPrompt;
  readonly shown: SessionState["shown"];
  readonly compactedAt: number;
}

/** Items of one receipt; of more, they are counted only. */
const maxItems = 200;
/** Characters of one field of an item: names of files and guidelines are somebody else's. */
const maxField = 300;

/** What is counted of a prompt's state, whichever sessions are in it. */
interface Counted {
  readonly parts: Readonly<Record<string, string>>;
  readonly prefix: string;
  readonly list: readonly ReceiptItem[];
  /** The digests of the list's beginnings: that of its first item, of its first two, … */
  readonly digests: readonly string[];
  readonly tokens: number;
}

/** Says of the turns of a session what is in front of the model; made once for each state of its prompt. */
export class TurnRecords {
  #state: PromptState | undefined;
  #known: TurnSaid | undefined;
  /** The turns whose events have told a list, by its digest. */
  readonly #told = new Map<string, string>();

  of(loop: PromptSource, turnId: string): TurnSaid {
    const { turn } = loop.state;
    const known = this.#known;
    if (
      known !== undefined &&
      this.#state !== undefined &&
      isSameState(this.#state, loop) &&
      turn?.receipt === known.said.receipt.digest &&
      turn.prefix === known.said.prefix.digest
    )
      return known;
    const state = toState(loop);
    const counted = countedOf(state);
    const made = this.#make(counted, { state: loop.state, turnId });
    const { digest, items, tokens } = made.said.receipt;
    const before = this.#told.get(digest);
    this.#state = state;
    this.#known = {
      said: {
        prefix: { digest: counted.prefix },
        receipt: before === undefined ? { digest, items, tokens } : { digest, items, tokens, before },
      },
    };
    return made;
  }

  #make(
    counted: Counted,
    { state, turnId }: { readonly state: SessionState; readonly turnId: string },
  ): TurnSaid {
    const { parts, prefix: digest } = counted;
    const changed = state.turn === undefined ? [] : changesOf(state.turn, { parts, state });
    const prefix = changed.length === 0 ? { digest } : { digest, changed };
    const receipt = receiptOf(counted, this.#told);
    if (receipt.items > 0) remember(this.#told, receipt.digest, turnId);
    const said = { prefix, receipt };
    if (state.turn?.prefix === digest && state.turn.receipt === receipt.digest) return { said };
    const listed = receiptOf(counted, state.listed ?? nothingTold);
    return { said, logged: { turn_id: turnId, prefix: { ...prefix, parts }, receipt: listed } };
  }
}

function toState({ state, prompt, tools, modelName, settings }: PromptSource): PromptState {
  const { shown, compactedAt } = state;
  return { prompt: prompt.current, tools, model: modelName, settings, shown, compactedAt };
}

function isSameState(
  known: PromptState,
  { state, prompt, tools, modelName, settings }: PromptSource,
): boolean {
  return (
    known.prompt === prompt.current &&
    known.shown === state.shown &&
    known.tools === tools &&
    known.model === modelName &&
    known.compactedAt === state.compactedAt &&
    isSameSettings(known.settings, settings)
  );
}

/** What was counted last for a system prompt: thousands of sessions may begin with the same. */
const lastCounts = new WeakMap<SystemPrompt, { readonly state: PromptState; readonly counted: Counted }>();

function countedOf(state: PromptState): Counted {
  const last = lastCounts.get(state.prompt);
  if (
    last !== undefined &&
    last.state.shown === state.shown &&
    last.state.tools === state.tools &&
    last.state.model === state.model &&
    last.state.compactedAt === state.compactedAt &&
    isSameSettings(last.state.settings, state.settings)
  )
    return last.counted;
  const parts = partsOf(state);
  const list = [...state.prompt.items, ...state.shown].map(bounded);
  const counted = {
    parts,
    prefix: digestOf(JSON.stringify([parts, state.compactedAt])),
    list,
    digests: chainOf(list),
    tokens: list.reduce((sum, { tokens }) => sum + tokens, 0),
  };
  lastCounts.set(state.prompt, { state, counted });
  return counted;
}

const nothingTold: ReadonlyMap<string, string> = new Map();

function receiptOf({ list, digests, tokens }: Counted, told: ReadonlyMap<string, string>): TurnReceipt {
  const known = told.size === 0 ? -1 : digests.findLastIndex((digest) => told.has(digest));
  const before = told.get(digests[known] ?? "");
  const from = known + 1;
  const isWhole = from === 0 && list.length <= maxItems;
  const added = isWhole ? list : list.slice(from, from + maxItems);
  const omitted = list.length - from - added.length;
  return {
    digest: digests.at(-1) ?? "",
    items: list.length,
    tokens,
    ...(before === undefined ? undefined : { before }),
    ...(added.length === 0 ? undefined : { added }),
    ...(omitted === 0 ? undefined : { omitted }),
  };
}

function chainOf(list: readonly ReceiptItem[]): readonly string[] {
  let digest = "";
  return list.map((item) => {
    digest = digestOf(digest + JSON.stringify(item));
    return digest;
  });
}

function bounded(item: ReceiptItem): ReceiptItem {
  const { id, file = "", why } = item;
  if (id.length <= maxField && file.length <= maxField && why.length <= maxField) return item;
  const cut = (text: string): string => text.slice(0, maxField).toWellFormed();
  return { ...item, id: cut(id), ...(item.file === undefined ? {} : { file: cut(file) }), why: cut(why) };
}

function partsOf({ model, settings, tools, prompt }: PromptState): Readonly<Record<string, string>> {
  const { reasoning, responseFormat } = settings;
  return {
    model,
    settings: digestOf(JSON.stringify([reasoning, responseFormat])),
    tools: toolsDigest(tools),
    ...prompt.digests,
  };
}

function changesOf(
  before: NonNullable<SessionState["turn"]>,
  now: { readonly parts: Readonly<Record<string, string>>; readonly state: SessionState },
): readonly string[] {
  const names = new Set([...Object.keys(before.parts), ...Object.keys(now.parts)]);
  const changed = [...names].filter((name) => before.parts[name] !== now.parts[name]);
  return before.compactedAt === now.state.compactedAt ? changed : ["compaction", ...changed];
}

function isSameSettings(left: PromptSource["settings"], right: PromptSource["settings"]): boolean {
  return (
    left === right || (left.reasoning === right.reasoning && left.responseFormat === right.responseFormat)
  );
}

const listDigests = new WeakMap<readonly LanguageModelV4FunctionTool[], string>();
const toolDigests = new WeakMap<LanguageModelV4FunctionTool, string>();

function toolsDigest(tools: readonly LanguageModelV4FunctionTool[]): string {
  let digest = listDigests.get(tools);
  if (digest === undefined) {
    digest = digestOf(tools.map(toolDigest).join());
    listDigests.set(tools, digest);
  }
  return digest;
}

function toolDigest(tool: LanguageModelV4FunctionTool): string {
  let digest = toolDigests.get(tool);
  if (digest === undefined) {
    digest = digestOf(JSON.stringify(tool));
    toolDigests.set(tool, digest);
  }
  return digest;
}
