import { z } from "zod";
import { isLeftOut } from "../../../agents/log/left-out-rules.ts";
import { textTokens } from "../../../base/text-size.ts";
import { isOnlyImports } from "../../../guidelines/guideline-imports.ts";
import type { Project } from "../../../project/project.ts";
import { explainTools } from "../../../protocol/enums.ts";
import type { Infer } from "../../../protocol/fields.ts";
import type { AppliedGuideline, Explanation } from "../../../protocol/guideline-query.ts";
import { cutMark, cutText, maxListedContent, nextPageMark, pageOf, toProjectPath } from "../bounds.ts";
import type { ReadTool } from "../read-tool.ts";
import { fileInput, nextCursor, toolInput } from "./tool-fields.ts";

const reference = { id: z.string(), title: z.string(), source_file: z.string() };

const input = z.strictObject({
  file: fileInput,
  tool: toolInput.exactOptional(),
  cursor: nextCursor.exactOptional(),
});
type Input = Infer<typeof input>;

const output = z.object({
  file: z.string(),
  tool: z.enum(explainTools).exactOptional(),
  total: z.int().meta({ description: "Number of guidelines that apply." }),
  applied: z
    .array(
      z.object({
        ...reference,
        is_sample: z
          .boolean()
          .meta({ description: "A sample from kit, because the repository has no guidelines." }),
        line: z.int(),
        reason: z.enum(["always", "pattern", "nested", "import", "manual", "auto"]),
        detail: z.string().exactOptional(),
        content: z.string(),
        content_cut: z.int().exactOptional(),
      }),
    )
    .meta({ description: "In the tool's reading order." }),
  tokens: z.int().meta({ description: "Estimated tokens of the guidelines that apply automatically." }),
  shadowed: z.array(z.object({ ...reference, shadowed_by: z.string(), rule: z.string() })),
  next_cursor: z.string().exactOptional(),
});
type Output = Infer<typeof output>;
type Applied = Output["applied"][number];

const maxShadowed = 20;

/** `guidelines_for`: the rules for one file, with the reason each applies. */
export function guidelinesForTool(
  project: Project,
  leftOut: ReadonlySet<string> = new Set(),
): ReadTool<Input, Output> {
  const isShown = ({ guideline }: AppliedGuideline): boolean =>
    !isLeftOut(leftOut, { id: project.guidelines.ruleIdOf(guideline), file: guideline.source_file });
  return {
    name: "guidelines_for",
    title: "Guidelines for a file",
    description:
      "Which coding guidelines of this repository apply to a file, and why. Call it before you write or change a file. The file need not exist yet.",
    input,
    output,
    async run({ file, tool, cursor }) {
      const path = toProjectPath(file, project.root);
      await project.ready(path);
      const explanation = project.guidelines.explain(path, tool);
      const applied = leftOut.size === 0 ? explanation.applied : explanation.applied.filter(isShown);
      return toOutput({ ...explanation, applied }, cursor);
    },
    toText,
    shows: ({ file, applied }) =>
      applied.map(({ id, source_file, line, content }) => ({
        kind: "guideline",
        id: project.guidelines.ruleIdOf({ id, source_file }),
        file: source_file,
        line,
        why: `guidelines_for ${file}`,
        tokens: textTokens(content),
      })),
  };
}

function toOutput(explanation: Explanation, cursor: string | undefined): Output {
  const { file, tool, applied, shadowed, tokens } = explanation;
  // Skip a guideline that only imports others, which are listed themselves.
  const direct = applied.filter(({ guideline }) => !isOnlyImports(guideline.content));
  const { items, total, next_cursor } = pageOf(direct, { cursor, toItem });
  return {
    file,
    ...(tool === undefined ? {} : { tool }),
    total,
    tokens,
    applied: items,
    shadowed: shadowed
      .slice(0, maxShadowed)
      .map(({ guideline: { id, title, source_file }, shadowed_by, rule }) => ({
        id,
        title,
        source_file,
        shadowed_by,
        rule,
      })),
    ...(next_cursor === undefined ? {} : { next_cursor }),
  };
}

function toItem({ guideline, line, reason, detail }: AppliedGuideline): Applied {
  const { id, title, source_file, is_sample, content } = guideline;
  return {
    id,
    title,
    source_file,
    is_sample,
    line,
    reason,
    ...(detail === undefined ? {} : { detail }),
    ...cutText(content, maxListedContent),
  };
}

const reasons: Readonly<Record<AppliedGuideline["reason"], string>> = {
  always: "always",
  pattern: "its pattern matches",
  nested: "the file is in its folder",
  import: "imported",
  manual: "only when asked for",
  auto: "when the task fits its description",
};

const samplesOnly =
  "This repository has no guidelines. The following are samples from kit, which this team has not agreed on.";

function toText({ file, total, applied, shadowed, next_cursor }: Output): string {
  const parts = [`${total} ${total === 1 ? "guideline applies" : "guidelines apply"} to ${file}.`];
  if (applied.some(({ is_sample }) => is_sample)) parts[0] = samplesOnly;
  for (const { title, source_file, line, reason, detail, content, content_cut, id } of applied) {
    const why = detail === undefined ? reasons[reason] : `${reasons[reason]}: ${detail}`;
    parts.push(
      `## ${title}\n(${source_file}:${line}; ${why}; id ${id})\n\n${content}${cutMark(content_cut, "guideline_get")}`,
    );
  }
  if (shadowed.length > 0) {
    const lines = shadowed.map(
      ({ title, source_file, shadowed_by, rule }) =>
        `- ${title} (${source_file}), by ${shadowed_by}: ${rule}`,
    );
    parts.push(`Not applied here:\n${lines.join("\n")}`);
  }
  return `${parts.join("\n\n")}${nextPageMark(next_cursor)}`;
}
