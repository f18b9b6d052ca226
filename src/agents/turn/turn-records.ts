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

/** Says of the turns of a session what is in front of the model; made once for each state of its prompt. */
export class TurnRecords {
  #state: PromptState | undefined;
  #known: TurnSaid | undefined;
  /** The turns whose events have told a list, by its digest. */
  readonly #told = new Map<string, string>();

  of(loop: PromptSource, turnId: string): TurnSaid {
    const { state, prompt } = loop;
    const known = this.#known;
    const last = this.#state;
    if (
      known !== undefined &&
      last?.prompt === prompt.current &&
      last.shown === state.shown &&
      last.tools === loop.tools &&
      last.model === loop.modelName &&
      last.compactedAt === state.compactedAt &&
      isSameSettings(last.settings, loop.settings) &&
      state.turn?.receipt === known.said.receipt.digest &&
      state.turn.prefix === known.said.prefix.digest
    )
      return known;
    const made = this.#make(loop, turnId);
    const { prefix, receipt } = made.said;
    this.#state = {
      model: loop.modelName,
      settings: loop.settings,
      tools: loop.tools,
      prompt: prompt.current,
      shown: state.shown,
      compactedAt: state.compactedAt,
    };
    const { digest, items, tokens } = receipt;
    const before = items === 0 ? undefined : this.#told.get(digest);
    this.#known = {
      said: {
        prefix: { digest: prefix.digest },
        receipt: { digest, items, tokens, ...(before === undefined ? {} : { before }) },
      },
    };
    return made;
  }

  #make(loop: PromptSource, turnId: string): TurnSaid {
    const { state } = loop;
    const parts = partsOf(loop);
    const prefix = { digest: digestOf(JSON.stringify([parts, state.compactedAt])) };
    const changed = state.turn === undefined ? [] : changesOf(state.turn, { parts, state });
    const list = [...loop.prompt.current.items, ...state.shown].map(bounded);
    const digests = chainOf(list);
    const whole = { list, digests };
    const receipt = receiptOf(whole, this.#told);
    remember(this.#told, receipt.digest, turnId);
    const said = {
      prefix: changed.length === 0 ? prefix : { ...prefix, changed },
      receipt,
    };
    if (state.turn?.prefix === prefix.digest && state.turn.receipt === receipt.digest) return { said };
    const logged = receiptOf(whole, state.listed ?? nothingTold);
    return { said, logged: { turn_id: turnId, prefix: { ...said.prefix, parts }, receipt: logged } };
  }
}

const nothingTold: ReadonlyMap<string, string> = new Map();

function receiptOf(
  { list, digests }: { readonly list: readonly ReceiptItem[]; readonly digests: readonly string[] },
  told: ReadonlyMap<string, string>,
): TurnReceipt {
  const known = digests.findLastIndex((digest) => told.has(digest));
  const before = known === -1 ? undefined : told.get(digests[known] ?? "");
  const added = list.slice(known + 1, known + 1 + maxItems);
  const omitted = list.length - (known + 1) - added.length;
  return {
    digest: digests.at(-1) ?? "",
    items: list.length,
    tokens: list.reduce((sum, { tokens }) => sum + tokens, 0),
    ...(before === undefined ? {} : { before }),
    ...(added.length === 0 ? {} : { added }),
    ...(omitted === 0 ? {} : { omitted }),
  };
}

/** The digests of the list's beginnings: that of its first item, of its first two, … */
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

function partsOf({ modelName, settings, tools, prompt }: PromptSource): Readonly<Record<string, string>> {
  const { reasoning, responseFormat } = settings;
  return {
    model: modelName,
    settings: digestOf(JSON.stringify([reasoning, responseFormat])),
    tools: toolsDigest(tools),
    ...prompt.current.digests,
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
