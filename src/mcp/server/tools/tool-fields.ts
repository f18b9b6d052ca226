import { z } from "zod";
import { conversionFormatOf, sourceTypeOf } from "../../../guidelines/tools/tool-table.ts";
import { conversionFormats, explainTools, frameworks, sourceTypes } from "../../../protocol/enums.ts";
import { cursorField, textField } from "../../../protocol/fields.ts";
import type { ConversionFormat, SourceType } from "../../../protocol/guideline.ts";
import type { ExplainTool } from "../../../protocol/guideline-query.ts";
import type { Framework } from "../../../protocol/spec-block.ts";
import { frameworkInfos, frameworkOf } from "../../../specs/frameworks.ts";

const frameworkNames = frameworkInfos.flatMap(({ aliases }) => aliases);
const frameworkList = frameworkInfos.map(({ id, label }) => `${id} = ${label}`).join(", ");

/** Accepts a framework's id or name and returns the id. */
export const frameworkInput: z.ZodType<Framework> = namedEnum(
  [...frameworks, ...frameworkNames],
  frameworkOf,
).meta({ description: `The tool a spec was written for: ${frameworkList}.` });

export const sourceInput: z.ZodType<SourceType> = namedEnum(
  [...sourceTypes, "kiro", "cursor", "claude"],
  sourceTypeOf,
).meta({
  description:
    "Where a guideline comes from: claude = CLAUDE.md, cursor = .cursor/rules, kiro = steering, agents = AGENTS.md.",
});

export const formatInput: z.ZodType<ConversionFormat> = namedEnum(
  [...conversionFormats, "kiro", "cursor", "claude"],
  conversionFormatOf,
).meta({ description: "claude = CLAUDE.md section, cursor = .cursorrules section, kiro = steering file." });

export const toolInput: z.ZodType<ExplainTool> = namedEnum(
  [...explainTools, "kiro", "cursor", "claude"],
  (name) => {
    const framework = frameworkOf(name) ?? name;
    return explainTools.find((tool) => tool === framework);
  },
).meta({ description: "Only guidelines that this coding tool reads; default: all that apply." });

export const nextCursor: z.ZodType<string> = cursorField.meta({
  description: "`next_cursor` of the previous answer, to continue where it was cut.",
});

export const fileInput: z.ZodType<string> = textField(4_096).meta({
  description: "A file of the project: relative to its root, or absolute.",
});

export const guidelineIdInput: z.ZodType<string> = textField(128)
  .min(1)
  .meta({ description: "The guideline's id, from the other tools." });

/** A page size from 1 to `max`. */
export function limitInput(max: number): z.ZodInt {
  return z.int().min(1).max(max);
}

// The schema lists all names for the model; the parsed value is the id.
function namedEnum<Value extends string>(
  names: readonly string[],
  resolve: (name: string) => Value | undefined,
): z.ZodType<Value> {
  return z.enum(names).transform((name, context) => {
    const value = resolve(name);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: `must be one of: ${names.join(", ")}` });
    return z.NEVER;
  });
}
