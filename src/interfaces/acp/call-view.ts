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
  const words = tool === "bash" ? subject : [tool, subject].filter(Boolean).join(" ");
  const title = (words ?? tool).replaceAll(/\s+/g, " ").slice(0, maxTitle);
  return {
    title,
    kind: (Object.hasOwn(kinds, tool) && kinds[tool]) || (tool.startsWith("mcp__") ? "fetch" : "other"),
    rawInput: args,
    ...(path === undefined ? {} : { locations: [{ path: absolute(path, root) }] }),
  };
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
    ...(oldText === undefined ? {} : { oldText }),
    newText: change.after,
  };
}

/** A text as the content of a call. */
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
