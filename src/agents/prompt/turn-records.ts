import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
} from "@ai-sdk/provider";
import { digestOf } from "../../base/id.ts";
import type { PromptPrefix, ReceiptItem, TurnReceipt, TurnRecord } from "../../protocol/receipt.ts";
import type { SessionStore } from "../../stores/contract.ts";
import {
  type ListedReceipts,
  noReceipts,
  rememberReceipt,
  type SessionState,
  turnOfReceipt,
} from "../log/session-state.ts";
import { asSent } from "../log/to-prompt.ts";
import { maskValue, type SecretMask } from "../secrets.ts";

/** The record of a turn's prompt: for its event, and for the session's log. */
export interface RecordedPrompt {
  readonly reported: { readonly prefix: PromptPrefix; readonly receipt: TurnReceipt };
  /** Absent if the log has the same record of an earlier turn. */
  readonly logged?: TurnRecord;
}

/** A system prompt, with digests and receipt items of its sections. */
export interface SystemPrompt {
  readonly text: string;
  /** A digest of each section, by its name. */
  readonly digests: Readonly<Record<string, string>>;
  readonly items: readonly ReceiptItem[];
}

/** The system prompt before the history. A compaction may replace it. */
export interface LoopPrompt {
  current: SystemPrompt;
  /** Records the composition of each turn's prompt. */
  readonly records: TurnRecords;
}

/** The sources of a turn's prompt, as `TurnLoop` has them. */
interface PromptSource {
  readonly operation: { readonly state: SessionState; readonly rulesLeftOut: ReadonlySet<string> };
  readonly resolved: { readonly name: string };
  readonly settings: Pick<LanguageModelV4CallOptions, "reasoning" | "responseFormat">;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly prompt: Pick<LoopPrompt, "current">;
}

/** The sources of a counted prompt, compared by identity: unchanged sources are not counted again. */
interface PromptState {
  readonly model: string;
  readonly settings: PromptSource["settings"];
  readonly tools: PromptSource["tools"];
  readonly prompt: SystemPrompt;
  readonly receiptItems: SessionState["receiptItems"];
  readonly compactedAt: number;
  readonly rulesLeftOut: ReadonlySet<string>;
}

/** Items that one receipt lists; further items are only counted. */
const maxItems = 200;
/** Characters of one field of an item: file and guideline names come from the repository. */
const maxField = 300;

/** The counts of a prompt state, shared by all sessions in that state. */
interface Counted {
  readonly promptState: PromptState;
  readonly parts: Readonly<Record<string, string>>;
  readonly prefix: PromptPrefix;
  readonly list: readonly ReceiptItem[];
  /** Digests of the list's prefixes: of its first item, of its first two, … */
  readonly digests: readonly string[];
  /** The names of the rules that the session leaves out. */
  readonly left_out: readonly string[];
  /** The receipt that lists every item. */
  readonly fullReceipt: TurnReceipt;
}

/** Records the prompt composition of a session's turns, computed once per state of its prompt. */
export class TurnRecords {
  #counted: Counted | undefined;
  /** The record of a turn whose state was reported before. */
  #repeated: RecordedPrompt | undefined;
  /** The receipts that events have listed in full. */
  #listed: ListedReceipts = noReceipts;

  record(loop: PromptSource, turnId: string): RecordedPrompt {
    if (this.#counted === undefined || !isSameState(this.#counted.promptState, loop)) {
      this.#counted = countedOf(loop);
      this.#repeated = undefined;
    }
    const counted = this.#counted;
    const { turn } = loop.operation.state;
    const { digest } = counted.fullReceipt;
    const isLogged = turn?.prefix === counted.prefix.digest && turn.receipt === digest;
    return isLogged && this.#repeated !== undefined
      ? this.#repeated
      : this.#recorded(counted, loop.operation, { turnId, isLogged });
  }

  /** A function of its own: most turns repeat a record, and V8 compiles `record` early. */
  #recorded(
    counted: Counted,
    { state }: PromptSource["operation"],
    { turnId, isLogged }: { readonly turnId: string; readonly isLogged: boolean },
  ): RecordedPrompt {
    const { turn, listed } = state;
    const { digest } = counted.fullReceipt;
    const changed = turn === undefined ? [] : changesOf(turn, { parts: counted.parts, state });
    const prefix = changed.length === 0 ? counted.prefix : { ...counted.prefix, changed };
    const receipt = receiptOf(counted, this.#listed);
    this.#listed = rememberReceipt(this.#listed, digest, turnId);
    if (!isLogged) {
      const logged = { turn_id: turnId, prefix, parts: counted.parts, receipt: receiptOf(counted, listed) };
      return { reported: { prefix, receipt }, logged };
    }
    const before = turnOfReceipt(this.#listed, digest);
    const { added: _, omitted: __, ...again } = counted.fullReceipt;
    const receiptAgain = before === undefined ? counted.fullReceipt : { ...again, before };
    this.#repeated = { reported: { prefix: counted.prefix, receipt: receiptAgain } };
    return { reported: { prefix, receipt } };
  }
}

function isSameState(
  previous: PromptState,
  { operation: { state, rulesLeftOut }, prompt, tools, resolved, settings }: PromptSource,
): boolean {
  return (
    previous.rulesLeftOut === rulesLeftOut &&
    previous.prompt === prompt.current &&
    previous.receiptItems === state.receiptItems &&
    previous.tools === tools &&
    previous.model === resolved.name &&
    previous.compactedAt === state.compactedAt &&
    (previous.settings === settings ||
      (previous.settings.reasoning === settings.reasoning &&
        previous.settings.responseFormat === settings.responseFormat))
  );
}

/** The newest counts per system prompt: thousands of sessions may share one. */
const lastCounts = new WeakMap<SystemPrompt, Counted>();

function countedOf(loop: PromptSource): Counted {
  const last = lastCounts.get(loop.prompt.current);
  return last !== undefined && isSameState(last.promptState, loop) ? last : countAgain(loop);
}

function countAgain(loop: PromptSource): Counted {
  const { prompt, tools, resolved, settings } = loop;
  const { state, rulesLeftOut } = loop.operation;
  const { receiptItems, compactedAt } = state;
  const promptState = {
    prompt: prompt.current,
    tools,
    model: resolved.name,
    settings,
    receiptItems,
    compactedAt,
    rulesLeftOut,
  };
  const parts = partsOf(promptState);
  const list = [...promptState.prompt.items, ...receiptItems].map(bounded);
  const left_out = [...rulesLeftOut].slice(0, maxItems).map(cut);
  const digests = chainOf(list, left_out);
  const fullReceipt = receiptFrom({ list, digests, left_out }, 0);
  const prefix = { digest: digestOf(JSON.stringify([parts, compactedAt])) };
  const counted = { promptState, parts, prefix, list, digests, left_out, fullReceipt };
  lastCounts.set(prompt.current, counted);
  return counted;
}

function receiptOf(counted: Counted, listed: ListedReceipts = noReceipts): TurnReceipt {
  const { digests, fullReceipt: whole } = counted;
  if (listed.length === 0) return whole;
  const last = digests.findLastIndex((digest) => turnOfReceipt(listed, digest) !== undefined);
  const before = turnOfReceipt(listed, digests[last] ?? "");
  return before === undefined ? whole : { ...receiptFrom(counted, last + 1), before };
}

/** Lists the items of a receipt from an index on. */
function receiptFrom(
  { list, digests, left_out }: Pick<Counted, "list" | "digests" | "left_out">,
  from: number,
): TurnReceipt {
  const added = list.slice(from, from + maxItems);
  const omitted = list.length - from - added.length;
  return {
    digest: digests.at(-1) ?? "",
    items: list.length,
    tokens: list.reduce((sum, { tokens }) => sum + tokens, 0),
    ...(added.length === 0 ? {} : { added }),
    ...(omitted === 0 ? {} : { omitted }),
    ...(left_out.length === 0 ? {} : { left_out: [...left_out] }),
  };
}

function chainOf(list: readonly ReceiptItem[], leftOut: readonly string[]): readonly string[] {
  let digest = leftOut.length === 0 ? "" : digestOf(JSON.stringify(leftOut));
  return list.map((item) => {
    digest = digestOf(digest + JSON.stringify(item));
    return digest;
  });
}

function bounded(item: ReceiptItem): ReceiptItem {
  const { id, file = "", why } = item;
  if (id.length <= maxField && file.length <= maxField && why.length <= maxField) return item;
  return { ...item, id: cut(id), ...(item.file === undefined ? {} : { file: cut(file) }), why: cut(why) };
}

function cut(text: string): string {
  return text.slice(0, maxField).toWellFormed();
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
  const names = before.parts === now.parts ? [] : Object.keys({ ...before.parts, ...now.parts });
  const changed = names.filter((name) => before.parts[name] !== now.parts[name]);
  return before.compactedAt === now.state.compactedAt ? changed : ["compaction", ...changed];
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

/** The stored parts of a model request besides its messages: texts by their digests. */
export interface PromptHead {
  readonly system: string;
  readonly tools: string;
  /** Temperature, reasoning and the like, as JSON. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The messages after the system prompt, if they are not those of the session: the request of a compaction. */
  readonly messages?: string | undefined;
}

/** Larger texts are not stored: instructions are shorter. */
const maxText = 4_194_304;

/** A stored text is stored again after this time, so that retention does not delete texts in use. */
const freshMs = 3_600_000;
const maxFresh = 2_000;

/** When each store last got a text, by the text's name. */
const freshTexts = new WeakMap<SessionStore, Map<string, number>>();

interface HeadSource {
  readonly system: string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly settings: Omit<LanguageModelV4CallOptions, "prompt" | "tools">;
  readonly mask: SecretMask | undefined;
  /** Default: the messages of the session's log. */
  readonly messages?: readonly LanguageModelV4Message[] | undefined;
}

/**
 * Stores the parts of a request besides its messages, each text once. Returns the name under which `readHead` finds them;
 * `undefined` if the store keeps no texts. While the store is unavailable, texts are lost, but the work continues.
 */
export function keepHead(store: SessionStore, source: HeadSource): string | undefined {
  if (store.keepText === undefined) return undefined;
  const { system, mask } = source;
  const kept = source.messages === undefined ? keptHeads.get(store) : undefined;
  if (
    kept !== undefined &&
    kept.source.tools === source.tools &&
    kept.source.system === system &&
    kept.source.mask === mask &&
    (kept.source.settings === source.settings || isSameRecord(kept.source.settings, source.settings)) &&
    Date.now() < kept.until
  )
    return kept.name;
  const tools = toolsText(source.tools, mask);
  const { headers: _, abortSignal: __, ...settings } = source.settings;
  const messages = source.messages && keepMessages(store, source.messages, mask);
  const head: PromptHead = {
    system: textName(system),
    tools: textName(tools),
    settings: mask === undefined ? settings : maskValue(settings, mask),
    messages,
  };
  const text = JSON.stringify(head);
  const name = textName(text);
  for (const [part, content] of [
    [head.system, system],
    [head.tools, tools],
    [name, text],
  ] as const)
    keepText(store, part, content);
  if (source.messages === undefined) keptHeads.set(store, { source, name, until: Date.now() + freshMs });
  return name;
}

/** The newest head of each store: successive turns of sessions that share a profile have the same. */
const keptHeads = new WeakMap<
  SessionStore,
  { readonly source: HeadSource; readonly name: string; readonly until: number }
>();

/** Whether two records have the same values, compared by identity. */
function isSameRecord(one: object, other: object): boolean {
  for (const key in one) if (Reflect.get(one, key) !== Reflect.get(other, key)) return false;
  for (const key in other) if (!(key in one)) return false;
  return true;
}

/**
 * Stores messages that are in no log, such as those of a compaction. Returns the name of the text; `undefined` if the store
 * keeps no texts.
 */
export function keepMessages(
  store: SessionStore,
  messages: readonly LanguageModelV4Message[],
  mask: SecretMask | undefined,
): string | undefined {
  if (store.keepText === undefined) return undefined;
  const text = `[${(mask === undefined ? messages : maskValue(messages, mask)).map(asSent).join()}]`;
  // The text is long and unique, so its digest is not cached.
  const name = digestOf(text);
  keepText(store, name, text);
  return name;
}

function keepText(store: SessionStore, name: string, text: string): void {
  let fresh = freshTexts.get(store);
  if (fresh === undefined) {
    fresh = new Map();
    freshTexts.set(store, fresh);
  }
  const now = Date.now();
  if (now - (fresh.get(name) ?? 0) < freshMs || text.length > maxText) return;
  if (fresh.size >= maxFresh) fresh.clear();
  fresh.set(name, now);
  const forget = (): void => {
    fresh.delete(name);
    keptHeads.delete(store);
  };
  try {
    const storing = store.keepText?.(name, text);
    if (storing instanceof Promise) storing.catch(forget);
  } catch {
    forget();
  }
}

const textNames = new Map<string, string>();

/** The digest of a text; those of the newest long texts are cached, since each turn needs them again. */
function textName(text: string): string {
  const cached = textNames.get(text);
  if (cached !== undefined) return cached;
  const name = digestOf(text);
  if (text.length < 1_000) return name;
  if (textNames.size >= 50) textNames.clear();
  textNames.set(text, name);
  return name;
}

const toolTexts = new WeakMap<readonly LanguageModelV4FunctionTool[], string>();

function toolsText(tools: readonly LanguageModelV4FunctionTool[], mask: SecretMask | undefined): string {
  let text = toolTexts.get(tools);
  if (text === undefined) {
    text = JSON.stringify(
      tools.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema })),
    );
    toolTexts.set(tools, text);
  }
  return mask === undefined ? text : mask(text);
}
