import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import { digestOf } from "../../base/digest.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { maskValue, type SecretMask } from "../secrets.ts";

/** The parts of a model request besides its messages, as the store keeps them: texts by their digests. */
export interface PromptHead {
  readonly system: string;
  readonly tools: string;
  /** Temperature, reasoning and the like, as JSON. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The messages below the system prompt, where they are not those of the session: to shorten its history. */
  readonly messages?: string | undefined;
}

/** How a prompt that a backend or a hook composed differs from the session's own: what lies between equal ends. */
export interface ComposedPrompt {
  readonly turn_id: string;
  /** How many messages at the beginning, the system prompt included, and at the end are the session's own. */
  readonly head: number;
  readonly tail: number;
  readonly messages: readonly unknown[];
  /** Set where the messages are too large to be kept. */
  readonly omitted?: true;
}

/** The note with the prompt of a turn that a backend or a hook composed: a `ComposedPrompt`. */
export const composedNote = "composed_prompt";

/** Characters of JSON that one such note holds. */
const maxComposed = 1_048_576;

/** A larger text is not kept: it would be no instructions. */
const maxText = 4_194_304;

/** How long a text that was kept counts as kept: it is then kept again, so that retention spares what is in use. */
const freshMs = 3_600_000;
const maxFresh = 2_000;

/** When each store was last given a text, by its name. */
const freshTexts = new WeakMap<SessionStore, Map<string, number>>();

interface HeadSource {
  readonly system: string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly settings: Omit<LanguageModelV4CallOptions, "prompt" | "tools">;
  readonly mask: SecretMask | undefined;
  /** Default: the session's log has them. */
  readonly messages?: readonly LanguageModelV4Message[] | undefined;
}

/**
 * Keeps what a request consists of besides its messages, each text once in a store. Gives the name under which
 * `readHead` finds it; undefined where the store keeps no texts. A store that cannot be reached loses the texts, and no work.
 */
export function keepHead(store: SessionStore, source: HeadSource): string | undefined {
  if (store.keepText === undefined) return undefined;
  const { system, mask } = source;
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
  return name;
}

/**
 * Keeps messages that no log holds, such as those that shorten a history. Gives the name of the text; undefined where the store
 * keeps none.
 */
export function keepMessages(
  store: SessionStore,
  messages: readonly LanguageModelV4Message[],
  mask: SecretMask | undefined,
): string | undefined {
  if (store.keepText === undefined) return undefined;
  const text = `[${(mask === undefined ? messages : maskValue(messages, mask)).map(asSent).join()}]`;
  // Such a text comes once and is long, so its digest is not remembered.
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
  };
  try {
    const kept = store.keepText?.(name, text);
    if (kept instanceof Promise) kept.catch(forget);
  } catch {
    forget();
  }
}

const textNames = new Map<string, string>();

/** The digest of a text; those of the newest long texts are remembered, since each turn asks again. */
function textName(text: string): string {
  const known = textNames.get(text);
  if (known !== undefined) return known;
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

/** The note about a prompt that is not the session's own; undefined for one that is. */
export function composedEntry(
  turn: {
    readonly id: string;
    readonly operationId: string;
    readonly now: number;
    readonly mask: SecretMask | undefined;
  },
  own: LanguageModelV4Prompt,
  sent: LanguageModelV4Prompt,
): SessionEntry | undefined {
  const before = own.map(asSent);
  const after = sent.map(asSent);
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  if (head + tail === before.length && before.length === after.length) return undefined;
  const texts = after.slice(head, after.length - tail);
  const size = texts.reduce((sum, text) => sum + text.length, 0);
  const messages: readonly unknown[] =
    size > maxComposed ? [] : texts.map((text): unknown => JSON.parse(text));
  const value: ComposedPrompt = {
    turn_id: turn.id,
    head,
    tail,
    messages: turn.mask === undefined ? messages : maskValue(messages, turn.mask),
    ...(size > maxComposed ? { omitted: true } : {}),
  };
  return {
    version: 1,
    type: "note",
    name: composedNote,
    value,
    timestamp: isoTime(turn.now),
    operation_id: turn.operationId,
  };
}

/** A message without the marks for its provider's cache, as JSON. */
function asSent(message: LanguageModelV4Message): string {
  return JSON.stringify(message, (key, value: unknown) => (key === "providerOptions" ? undefined : value));
}
