import { type Clock, isoTime } from "../base/clock.ts";
import type { ToolCallPart } from "../protocol/message.ts";
import type { SessionEntry } from "../protocol/session-entry.ts";
import type { Operation } from "./agent-runtime.ts";
import type { ProjectContext, ShownGuideline } from "./project-context.ts";
import type { ToolLookup } from "./tool.ts";

const noteName = "guidelines_shown";

/**
 * Makes the entries that put guidelines before the model when its tools first touch a file that they
 * apply to: once per session and guideline. Compaction clears the note with the history, so that they
 * are shown again when the model has lost them.
 */
export function guidelineEntries(
  project: ProjectContext,
  work: {
    readonly operation: Operation;
    readonly tools: ToolLookup;
    readonly clock: Clock;
  },
): (calls: readonly ToolCallPart[]) => readonly SessionEntry[] {
  const { operation, clock } = work;
  return (calls) => {
    const shown = new Set(shownIn(operation));
    const fresh = new Map<string, { readonly guideline: ShownGuideline; readonly path: string }>();
    for (const path of touchedPaths(calls, work.tools)) {
      for (const guideline of project.guidelinesFor(path)) {
        if (!shown.has(guideline.id) && !fresh.has(guideline.id))
          fresh.set(guideline.id, { guideline, path });
      }
    }
    if (fresh.size === 0) return [];
    const timestamp = isoTime(clock.now());
    const text = [...fresh.values()].map(({ guideline, path }) => toText(guideline, path)).join("\n\n");
    return [
      {
        version: 1,
        type: "message",
        operation_id: operation.id,
        message: {
          role: "user",
          content: [
            {
              type: "text",
              text: `Guidelines of this repository for the files you just touched:\n\n${text}`,
            },
          ],
          timestamp,
          source: "guidelines",
        },
      },
      { version: 1, type: "note", name: noteName, value: [...shown, ...fresh.keys()], timestamp },
    ];
  };
}

function shownIn(operation: Operation): readonly string[] {
  const value = operation.state.notes.get(noteName);
  return Array.isArray(value) ? value.map(String) : [];
}

function touchedPaths(calls: readonly ToolCallPart[], tools: ToolLookup): Set<string> {
  const paths = new Set<string>();
  for (const call of calls) {
    const tool = tools.get(call.tool);
    if (tool?.touches === undefined || call.invalid === true) continue;
    try {
      for (const path of tool.touches(call.args)) paths.add(path);
    } catch {
      // The arguments were not what the tool takes: it was not run, and touched nothing.
    }
  }
  return paths;
}

function toText(guideline: ShownGuideline, path: string): string {
  return `<guideline source="${guideline.source_file}" applies-to="${path}">\n## ${guideline.title}\n\n${guideline.content}\n</guideline>`;
}
