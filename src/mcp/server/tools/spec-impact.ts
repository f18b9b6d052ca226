import { z } from "zod";
import { KitError } from "../../../base/kit-error.ts";
import { textTokens } from "../../../base/text-size.ts";
import type { readChangesSince } from "../../../project/features/changes-since.ts";
import type { readNamedSpecs } from "../../../project/features/named-specs.ts";
import type { Project, ProjectSpecs } from "../../../project/project.ts";
import { type NamedSpecs, wholeImpact } from "../../../project/query/impact.ts";
import { specEdgeKinds } from "../../../protocol/enums.ts";
import { countField, type Infer, textField } from "../../../protocol/fields.ts";
import type { AffectedSpec, ComparedSpecs, ImpactEdge } from "../../../protocol/spec-query.ts";
import { excerptOf, nextPageMark, pageOf, placeOf, toProjectPath } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { fileInput, nextCursor } from "./tool-fields.ts";

const input = z.strictObject({
  files: z.array(fileInput).max(1_000).exactOptional(),
  ids: z.array(textField(1_000)).max(1_000).exactOptional(),
  since: textField(256).exactOptional().meta({ description: "A branch, tag or commit." }),
  depth: countField(5).exactOptional().meta({ description: "How many links to follow, 1 to 5; default 2." }),
  include_obsolete: z.boolean().exactOptional(),
  expand_features: z
    .boolean()
    .exactOptional()
    .meta({ description: "Also list other specs in the feature of an affected spec." }),
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  changed: z.array(z.string()).meta({ description: "The changed files that the answer is about." }),
  total: z.int().meta({ description: "Number of affected spec blocks." }),
  affected: z.array(
    z.object({
      id: z.string(),
      title: z.string(),
      path: z.string(),
      line: z.int().exactOptional(),
      score: z.number().meta({ description: "0 to 1." }),
      because: z
        .array(z.object({ from: z.string(), to: z.string(), kind: z.enum(specEdgeKinds) }))
        .meta({ description: "The edges that led here." }),
    }),
  ),
  same_feature: z.array(z.object({ feature: z.string(), specs: z.int() })).meta({
    description: "Number of other specs in the feature of an affected spec; see expand_features.",
  }),
  obsolete: z
    .int()
    .meta({ description: "Number of obsolete specs that are not listed; see include_obsolete." }),
  tests: z.array(z.string()).meta({ description: "Test files to run." }),
  tests_cut: z.int().exactOptional(),
  files: z
    .array(z.string())
    .meta({ description: "Files that contain the affected specs or are named by them." }),
  files_cut: z.int().exactOptional(),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;
type Affected = Output["affected"][number];

const maxListedFiles = 100;

const readNamed: typeof readNamedSpecs = async (project, files) => {
  const { readNamedSpecs } = await import("../../../project/features/named-specs.ts");
  return await readNamedSpecs(project, files);
};

const readChanges: typeof readChangesSince = async (project, request) => {
  // Only a comparison of revisions loads the code that reads specs.
  const { readChangesSince } = await import("../../../project/features/changes-since.ts");
  return await readChangesSince(project, request);
};

/** `spec_impact`: what a change affects, from files, spec ids, or everything since a revision. */
export function specImpactTool(project: Project): ReadTool<Input, Output> {
  const { specs, root } = project;
  return {
    name: "spec_impact",
    title: "What a change affects",
    description:
      "Which specs, tests and files a change affects, with the links that lead there. Give changed files, spec ids, or a Git revision to compare the working tree with (`since`: main, HEAD). Call it before you finish a change, to see what to check and which tests to run.",
    input,
    output,
    run: async (input, signal) => {
      const since =
        input.since === undefined
          ? undefined
          : await readChanges({ root, specs }, { since: input.since, signal });
      const files = (input.files ?? []).map((file) => toProjectPath(file, root));
      const changed = [...new Set([...files, ...(since?.files ?? [])])];
      if (changed.length === 0 && (input.ids ?? []).length === 0 && input.since === undefined) {
        throw new KitError({ code: "invalid_request", message: "Give files, ids or since." });
      }
      const specsOfTests = await readNamed(project, changed);
      return toOutput(specs, { ...input, changed, compared: since?.compared, specsOfTests });
    },
    toText,
    shows: ({ affected }) =>
      affected.map(({ id, title, path, line }) => ({
        kind: "spec",
        id,
        file: path,
        ...(line === undefined ? {} : { line }),
        why: "named by spec_impact",
        tokens: textTokens(title),
      })),
  };
}

interface Changes {
  readonly changed: readonly string[];
  readonly compared: ComparedSpecs | undefined;
  readonly specsOfTests: NamedSpecs;
}

function toOutput(specs: ProjectSpecs, input: Input & Changes): Output {
  const { changed, compared, specsOfTests, cursor, since: _since, files: _files, ...about } = input;
  const impact = wholeImpact((page) => specs.impact(page, compared, specsOfTests), {
    ...about,
    files: changed,
  });
  const toItem = (affected: AffectedSpec): Affected => toAffected(specs, affected);
  const { items, total, next_cursor } = pageOf(impact.affected, { cursor, limit: 50, toItem });
  return {
    changed: changed.slice(0, maxListedFiles),
    total,
    affected: items,
    same_feature: impact.same_feature.slice(0, maxListedFiles),
    obsolete: impact.obsolete_count,
    tests: impact.tests.slice(0, maxListedFiles),
    ...(impact.tests.length > maxListedFiles ? { tests_cut: impact.tests.length - maxListedFiles } : {}),
    files: impact.files.slice(0, maxListedFiles),
    ...(impact.files.length > maxListedFiles ? { files_cut: impact.files.length - maxListedFiles } : {}),
    ...(next_cursor === undefined ? {} : { next_cursor }),
  };
}

function toAffected(specs: ProjectSpecs, { id, score, path }: AffectedSpec): Affected {
  const block = specs.get(id);
  const line = block?.metadata.source?.start_line;
  return {
    id,
    title: excerptOf(block?.title ?? id, 200),
    path: block?.path ?? "",
    ...(line === undefined ? {} : { line }),
    score,
    because: path,
  };
}

function toText(output: Output): string {
  const { total, affected, next_cursor } = output;
  const lines = affected.map(
    ({ id, title, path, line, score, because }) =>
      `- ${score.toFixed(2)} ${title} (${placeOf(path, line)}; id ${id})${why(because)}`,
  );
  const parts = [
    [`${total} ${total === 1 ? "spec block is" : "spec blocks are"} affected.`, ...lines].join("\n"),
    unlisted(output),
    section("Tests to run", output.tests, output.tests_cut),
    section("Files", output.files, output.files_cut),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}${nextPageMark(next_cursor)}`;
}

function unlisted({ same_feature, obsolete }: Output): string {
  const lines = same_feature.map(
    ({ feature, specs }) =>
      `${specs} more in the feature ${feature}, without a link to the change (expand_features lists them).`,
  );
  if (obsolete > 0) lines.push(`${obsolete} obsolete specs are not listed (include_obsolete lists them).`);
  return lines.join("\n");
}

function why(edges: readonly ImpactEdge[]): string {
  const first = edges[0];
  if (first === undefined) return "";
  return `\n  ${[first.from, ...edges.map(({ kind, to }) => `-${kind}-> ${to}`)].join(" ")}`;
}

function section(name: string, files: readonly string[], cut: number | undefined): string {
  if (files.length === 0) return "";
  const rest = cut === undefined ? [] : [`[cut: ${cut} more]`];
  return [`${name}:`, ...files.map((file) => `- ${file}`), ...rest].join("\n");
}
