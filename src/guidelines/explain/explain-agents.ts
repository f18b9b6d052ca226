import { folderOf } from "../folders.ts";
import { nameOf } from "../guideline-record.ts";
import type { GuidelineMatch } from "../match/guideline-matcher.ts";
import { depthOf, type ExplainRequest, type ToolView, toApplied } from "./explain-request.ts";

/** Codex stops reading instruction files after this many bytes. */
const codexByteLimit = 32 * 1024;

/**
 * AGENTS.md under both policies in use. `nearest`: the closest file to the edited one wins, as
 * agents.md says. `all`: every file from the root down, as Codex reads them, up to 32 KiB. Under both,
 * a folder has at most one file, and `AGENTS.override.md` takes the place of `AGENTS.md`.
 */
export function explainAgents(
  request: ExplainRequest,
  matches: readonly GuidelineMatch[],
  policy: "nearest" | "all",
): ToolView {
  const view: ToolView = { applied: [], shadowed: [] };
  const own = matches.filter(({ record }) => record.tool === "agents" && record.source_type !== "sample");
  const byFile = Map.groupBy(own, ({ record }) => nameOf(record));
  const files = readingFiles([...byFile.keys()], (file, override) => {
    const rule = "AGENTS.override.md takes the place of AGENTS.md in its folder.";
    shadow(view, byFile.get(file), { shadowed_by: override, rule });
  });
  const nearest = files.at(-1);
  let bytes = 0;
  for (const file of files) {
    const members = byFile.get(file) ?? [];
    if (policy === "nearest" && nearest !== undefined && file !== nearest) {
      shadow(view, members, { shadowed_by: nearest, rule: "The AGENTS.md closest to the file wins." });
      continue;
    }
    if (policy === "all" && bytes >= codexByteLimit) {
      const last = view.applied.at(-1)?.guideline.source_file ?? "";
      shadow(view, members, { shadowed_by: last, rule: "Codex stops reading after 32 KiB of instructions." });
      continue;
    }
    view.applied.push(...members.map(toApplied));
    bytes += sizeOf(request, file, members);
  }
  return view;
}

/** The files from the root down, one per folder, and those that an override replaces. */
function readingFiles(
  files: readonly string[],
  replaced: (file: string, override: string) => void,
): string[] {
  const known = new Set(files);
  const read = files.filter((file) => {
    const override = file.replace(/AGENTS\.md$/, "AGENTS.override.md");
    if (override === file || !known.has(override)) return true;
    replaced(file, override);
    return false;
  });
  return read.sort((a, b) => depthOf(folderOf(a)) - depthOf(folderOf(b)));
}

function shadow(
  view: ToolView,
  members: readonly GuidelineMatch[] | undefined,
  by: { readonly shadowed_by: string; readonly rule: string },
): void {
  for (const match of members ?? []) view.shadowed.push({ ...toApplied(match), ...by });
}

function sizeOf(request: ExplainRequest, file: string, members: readonly GuidelineMatch[]): number {
  const text = request.readText?.(file) ?? members.map(({ record }) => record.content).join("\n");
  return new TextEncoder().encode(text).length;
}
