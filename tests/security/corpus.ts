import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

/** Text that a case describes instead of spelling it out. */
export type Generated =
  | string
  | { readonly concat: readonly Generated[] }
  | { readonly repeat: Generated; readonly times: number }
  | { readonly repeat_index: string; readonly times: number }
  | { readonly repeat_indent: string; readonly times: number; readonly unit: string };

const times = z.int().nonnegative();

export const generated: z.ZodType<Generated> = z.lazy(() =>
  z.union([
    z.string(),
    z.strictObject({ concat: z.array(generated) }),
    z.strictObject({ repeat: generated, times }),
    z.strictObject({ repeat_index: z.string(), times }),
    z.strictObject({ repeat_indent: z.string(), times, unit: z.string() }),
  ]),
);

export function generate(value: Generated): string {
  if (typeof value === "string") return value;
  if ("concat" in value) return value.concat.map(generate).join("");
  if ("repeat" in value) return generate(value.repeat).repeat(value.times);
  const line = (index: number): string =>
    "repeat_index" in value
      ? value.repeat_index.replaceAll("{i}", String(index))
      : value.unit.repeat(index) + value.repeat_indent.replaceAll("{i}", String(index));
  return Array.from({ length: value.times }, (_, index) => line(index)).join("");
}

/** An entry that a case puts on the disk. */
export type FixtureEntry =
  | { readonly type: "file"; readonly path: string; readonly content?: string }
  | { readonly type: "dir" | "fifo"; readonly path: string }
  | { readonly type: "symlink" | "hardlink"; readonly path: string; readonly target: string };

export const fixtureEntry: z.ZodType<FixtureEntry> = z.union([
  z.strictObject({ type: z.literal("file"), path: z.string(), content: z.string().exactOptional() }),
  z.strictObject({ type: z.enum(["dir", "fifo"]), path: z.string() }),
  z.strictObject({ type: z.enum(["symlink", "hardlink"]), path: z.string(), target: z.string() }),
]);

/** The fields of every case. */
export interface AnyCase {
  readonly id: string;
  readonly class: string;
  readonly tier: "core" | "hardening" | "usability";
  readonly why: string;
  /** The values of `process.platform` that support the case; default: all. */
  readonly platform?: readonly string[];
}

const caseFields = {
  id: z.string().min(1),
  class: z.string(),
  tier: z.enum(["core", "hardening", "usability"]),
  why: z.string(),
  platform: z.array(z.string()).optional(),
};

const headFields = {
  format: z.literal("kit-security-corpus/1"),
  contract: z.array(z.string()),
  set: z.string(),
  count: z.int(),
  cases: z.array(z.looseObject({ id: z.string() })),
};

/** The allowed keys of a kind, in addition to those of every kind. */
export interface CorpusSchema {
  readonly head: z.ZodRawShape;
  readonly one: z.ZodRawShape;
}

export interface Corpus<Head, Case> {
  readonly head: Head;
  readonly cases: readonly Case[];
}

/**
 * Reads a file of this folder. Throws for a key that no test uses, for a duplicate case
 * and for a number of cases other than the head's.
 */
export function readCorpus<Head, Case extends AnyCase>(
  kind: string,
  schema: CorpusSchema & { readonly folder?: string },
): Corpus<Head, Case> {
  const { folder = import.meta.dirname } = schema;
  const text = JSON.parse(readFileSync(join(folder, `${kind}.json`), "utf8"));
  const head = z.strictObject({ ...headFields, kind: z.literal(kind), ...schema.head });
  assertShape(`${kind}.json`, head, text);
  const one = z.strictObject({ ...caseFields, ...schema.one });
  for (const value of text.cases) assertShape(`${kind}.json, case ${value.id}`, one, value);
  const ids = new Set(text.cases.map(({ id }: Case) => id));
  if (ids.size !== text.cases.length || text.count !== text.cases.length) {
    throw new Error(`${kind}.json says ${text.count} cases and has ${ids.size} of ${text.cases.length} ids.`);
  }
  return { head: text, cases: text.cases };
}

function assertShape(name: string, schema: z.ZodType, value: unknown): void {
  const { error } = schema.safeParse(value);
  if (error !== undefined) throw new Error(`${name}: ${z.prettifyError(error)}`);
}

/** Whether the case applies to this system. */
export function isForThisSystem({ platform }: AnyCase): boolean {
  return platform?.includes(process.platform) ?? true;
}
