import { z } from "zod";
import { staleSpecs } from "../../../project/features/stale.ts";
import type { Project } from "../../../project/project.ts";
import type { Infer } from "../../../protocol/fields.ts";
import type { StaleSpec } from "../../../protocol/stale.ts";
import { excerptOf, nextPageMark, pageOf, placeOf } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { nextCursor } from "./tool-fields.ts";

const input = z.strictObject({ cursor: nextCursor.exactOptional() });
type Input = Infer<typeof input>;

const output = z.object({
  checked: z.int().meta({ description: "Number of specs that name code." }),
  total: z.int(),
  stale: z.array(
    z.object({
      id: z.string(),
      title: z.string(),
      path: z.string(),
      line: z.int(),
      files: z.array(z.string()).meta({ description: "Files that changed after the spec." }),
    }),
  ),
  notes: z.array(z.string()),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;
type Stale = Output["stale"][number];

/** `spec_stale`: specs whose code changed after them. */
export function specStaleTool(project: Project): ReadTool<Input, Output> {
  return {
    name: "spec_stale",
    title: "Stale specs",
    description:
      "Lists specs whose referenced code changed in Git after the spec. They may be wrong: update them when you work on that code.",
    input,
    output,
    run: async ({ cursor }, signal) => {
      const { stale, checked, notes } = await staleSpecs(project, { signal });
      const { items, ...rest } = pageOf(stale, { cursor, limit: 50, toItem: toStale });
      return { checked, stale: items, notes, ...rest };
    },
    toText,
  };
}

function toStale({ id, title, path, line, files }: StaleSpec): Stale {
  return { id, title: excerptOf(title, 200), path, line, files: files.slice(0, 20).map((file) => file.path) };
}

function toText({ total, checked, stale, notes, next_cursor }: Output): string {
  const lines = stale.map(
    ({ id, title, path, line, files }) =>
      `- ${title} (${placeOf(path, line)}; id ${id})\n  changed since: ${files.join(", ")}`,
  );
  const head = `${total} of ${checked} specs that name code are older than it.`;
  return `${[head, ...notes, ...lines].join("\n")}${nextPageMark(next_cursor)}`;
}
