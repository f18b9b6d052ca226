import { type Clock, isoTime } from "../../base/clock.ts";
import { textTokens } from "../../base/text-size.ts";
import type { ToolCallPart } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Operation } from "../agent-runtime.ts";
import type { ToolLookup } from "../define/tool.ts";
import { isLeftOut } from "../log/left-out-rules.ts";
import type { Repository, ShownGuideline } from "../project-context.ts";

const noteName = "guidelines_shown";

/** Characters shown of one guideline, and of all guidelines at once; further ones are only named. */
const maxGuideline = 20_000;
const maxShown = 60_000;

/** The operation whose tools touch files. */
interface GuidelineWork {
  readonly operation: Operation;
  readonly tools: ToolLookup;
  /** Files that the system prompt contains in full. */
  readonly promptFiles: ReadonlySet<string>;
  readonly clock: Clock;
}

/**
 * Creates the entries that show guidelines to the model when its tools first touch a file that they apply to: once
 * per session and guideline, and again after a compaction removed them. Undefined if the calls touch no file.
 */
export function guidelineEntries(
  repository: Repository,
  calls: readonly ToolCallPart[],
  work: GuidelineWork,
): Promise<readonly SessionEntry[]> | undefined {
  const touched = touchedPaths(calls, work);
  return touched === undefined ? undefined : entriesFor(repository, touched, work);
}

async function entriesFor(
  repository: Repository,
  touched: ReadonlySet<string>,
  work: GuidelineWork,
): Promise<readonly SessionEntry[]> {
  const paths = await pathsOf(touched, work);
  if (paths.size === 0) return [];
  const inLog = new Set(guidelineIdsInLog(work.operation));
  const rules = work.operation.rulesLeftOut;
  const fresh = new Map<string, { readonly guideline: ShownGuideline; readonly path: string }>();
  for (const path of paths) {
    for (const guideline of await repository.guidelinesFor(path)) {
      if (isLeftOut(rules, { id: guideline.rule, file: guideline.source_file })) continue;
      if (inLog.has(guideline.id) || fresh.has(guideline.id) || isInPrompt(guideline, work.promptFiles))
        continue;
      fresh.set(guideline.id, { guideline, path });
    }
  }
  if (fresh.size === 0) return [];
  const timestamp = isoTime(work.clock.now());
  const { text: listed, shows } = toText([...fresh.values()]);
  const text = `Guidelines of this repository for the files you just touched:\n\n${listed}`;
  return [
    {
      version: 1,
      type: "message",
      operation_id: work.operation.id,
      message: { role: "user", content: [{ type: "text", text }], timestamp, source: "guidelines", shows },
    },
    { version: 1, type: "note", name: noteName, value: [...fresh.keys()], timestamp },
  ];
}

/** Whether the system prompt contains the guideline's file, under any of its names. */
function isInPrompt(
  { source_file, aliases = [] }: ShownGuideline,
  promptFiles: ReadonlySet<string>,
): boolean {
  return promptFiles.has(source_file) || aliases.some((name) => promptFiles.has(name));
}

function guidelineIdsInLog(operation: Operation): readonly string[] {
  return operation.state.notes.flatMap(({ name, value }) =>
    name === noteName && Array.isArray(value) ? value.map(String) : [],
  );
}

/** The files that the calls touched, as they name them; undefined if their tools touch none. */
function touchedPaths(
  calls: readonly ToolCallPart[],
  { tools }: GuidelineWork,
): ReadonlySet<string> | undefined {
  let touched: Set<string> | undefined;
  for (const call of calls) {
    const tool = tools.get(call.tool);
    if (tool?.touches === undefined || call.invalid === true) continue;
    try {
      touched ??= new Set();
      for (const path of tool.touches(call.args)) touched.add(path);
    } catch {
      // With invalid arguments, the tool did not run and touched nothing.
    }
  }
  return touched;
}

/** The same files relative to the workspace's root. */
async function pathsOf(touched: ReadonlySet<string>, work: GuidelineWork): Promise<ReadonlySet<string>> {
  if (touched.size === 0) return touched;
  const sandbox = await work.operation.live.sandbox().catch(() => undefined);
  const paths = new Set<string>();
  for (const path of touched) {
    const resolved = sandbox === undefined ? path : await sandbox.resolve(path).catch(() => undefined);
    // A path outside of the workspace was refused and is not a file of the project.
    if (resolved !== undefined) paths.add(resolved);
  }
  return paths;
}

function toText(entries: readonly { readonly guideline: ShownGuideline; readonly path: string }[]): {
  readonly text: string;
  readonly shows: readonly ReceiptItem[];
} {
  const shows: ReceiptItem[] = [];
  const parts: string[] = [];
  const namedOnly: string[] = [];
  let length = 0;
  for (const { guideline, path } of entries) {
    const { rule: id, title, source_file, line } = guideline;
    const show = (why: string, text: string): string => {
      const location = { file: source_file, ...(line === undefined ? {} : { line }) };
      shows.push({ kind: "guideline", id, ...location, why, tokens: textTokens(text) });
      return text;
    };
    const content =
      guideline.content.length > maxGuideline
        ? `${guideline.content.slice(0, maxGuideline)}\n[cut: guidelines_for has the whole]`
        : guideline.content;
    if (length + content.length > maxShown)
      namedOnly.push(show(`named only: applies to ${path}`, `- ${title} (${source_file}), for ${path}`));
    else {
      length += content.length;
      const text = `<guideline source="${source_file}" applies-to="${path}">\n## ${title}\n\n${content}\n</guideline>`;
      parts.push(show(`applies to ${path}`, text));
    }
  }
  if (namedOnly.length > 0) parts.push(`Ask guidelines_for about these too:\n${namedOnly.join("\n")}`);
  // As in the system prompt: a guideline may have been cut through a surrogate pair.
  return { text: parts.join("\n\n").toWellFormed(), shows };
}
