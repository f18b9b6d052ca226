import type { ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import { isRecord } from "../../base/record.ts";
import { findChangedFile, previewChange } from "../../protocol/call-change.ts";

/** A call as its tool and its arguments say it. */
export interface CallShape {
  readonly tool: string;
  readonly args?: unknown;
}

const kinds: Readonly<Record<string, ToolKind>> = {
  read: "read",
  stat: "read",
  exists: "read",
  grep: "search",
  glob: "search",
  write: "edit",
  edit: "edit",
  mkdir: "edit",
  rm: "delete",
  bash: "execute",
  task: "think",
};

/** The longest title of a call, in characters. */
const maxTitle = 200;

/** The fields by which an editor describes a call: its title, its kind, and the file that it is about. `root` is absolute. */
export function describeCall(
  call: CallShape,
  root: string,
): {
  readonly title: string;
  readonly kind: ToolKind;
  readonly rawInput: unknown;
  readonly locations?: ToolCallLocation[];
} {
  const { tool, args } = call;
  const path = textOf(args, "path");
  const first = isRecord(args)
    ? Object.keys(args).find((name) => textOf(args, name) !== undefined)
    : undefined;
  const subject = path ?? (first && textOf(args, first));
  const words = commandOf(call) ?? [tool, subject].filter(Boolean).join(" ");
  const title = visibleLine(words);
  return {
    title: title.length > maxTitle ? `${title.slice(0, maxTitle)}…` : title,
    kind: (Object.hasOwn(kinds, tool) && kinds[tool]) || (tool.startsWith("mcp__") ? "fetch" : "other"),
    rawInput: args,
    ...(path === undefined ? {} : { locations: [{ path: absolute(path, root) }] }),
  };
}

/** The whole command of a call of `bash`, as a title may show a part of it; undefined for other calls. */
export function commandContent(call: CallShape): ToolCallContent | undefined {
  const command = commandOf(call);
  return command === undefined ? undefined : textContent(visibleText(command));
}

/** A text on one line, with escapes for the characters that hide or reorder text. */
export function visibleLine(text: string): string {
  return visibleText(text.replaceAll(/\s+/g, " ")).trim();
}

// C0 and C1 controls but tabs and line ends, other characters that end a line for some programs, byte order marks, and the marks that
// reorder text (Unicode Bidi_Control).
const unsafe = /(?!\r?\n|\t)[\p{Cc}\u2028\u2029\uFEFF\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** A text with escapes for the characters that hide or reorder text, or end its lines for some programs. */
export function visibleText(text: string): string {
  return text.replaceAll(unsafe, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function commandOf({ tool, args }: CallShape): string | undefined {
  return tool === "bash" ? (textOf(args, "command") ?? tool) : undefined;
}

/**
 * The change that a call of `write` or `edit` makes; undefined for other calls, and for an edit that does not fit. `before` is the
 * text of the file before the call, `null` where there was none; without it, the diff is of the part that an edit replaces.
 */
export function diffOf(
  call: CallShape,
  root: string,
  before: string | null | undefined,
): ToolCallContent | undefined {
  const { tool, args } = call;
  const path = findChangedFile(tool, args);
  if (path === undefined) return undefined;
  const known = before ?? (tool === "edit" ? textOf(args, "old") : "");
  const change = previewChange({ tool, args }, known ?? "");
  if (change === undefined) return undefined;
  const oldText = before === undefined && tool === "write" ? undefined : before === null ? null : known;
  return {
    type: "diff",
    path: absolute(path, root),
    ...(oldText === undefined ? {} : { oldText: oldText && visibleText(oldText) }),
    newText: visibleText(change.after),
  };
}

export function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

function absolute(path: string, root: string): string {
  return /^(?:\/|[A-Za-z]:[\\/])/.test(path) ? path : `${root}/${path.replace(/^\.\//, "")}`;
}

function textOf(args: unknown, name: string): string | undefined {
  const value = isRecord(args) && Object.hasOwn(args, name) ? args[name] : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}
