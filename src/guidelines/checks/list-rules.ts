import { suggest } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { slugOf } from "../../specs/model/block-title.ts";
import { type GuidelineRecord, ruleIdOf } from "../guideline-record.ts";
import { createGuidelineMatcher } from "../match/match-guidelines.ts";

/** A guideline by the name that people give it in the configuration. */
export interface Rule {
  /** The id of the guideline. */
  readonly id: string;
  /** `ruleIdOf`. */
  readonly name: string;
  readonly title: string;
  /** Relative to the project root. */
  readonly path: string;
  readonly line: number;
}

/** The guidelines of a project as rules, in their order. */
export function listRules(records: readonly GuidelineRecord[]): readonly Rule[] {
  return records.map((record) => ({
    id: record.id,
    name: ruleIdOf(record),
    title: record.title,
    path: record.source_file,
    line: record.span.start_line,
  }));
}

/**
 * The rules of a name: one section, or all of a file. Throws `invalid_request` with the nearest names for one that no rule has.
 *
 * @param realPath The file that a path leads to: a link is another name of its target.
 */
export function findRules(
  name: string,
  rules: readonly Rule[],
  realPath: (path: string) => string,
): readonly Rule[] {
  const [, given = name, heading] = /^(.*)#([^#]*)$/s.exec(name) ?? [];
  const file = realPath(given.replace(/^(?:\.\/)+/, ""));
  const inFile = rules.filter(({ path }) => path === file);
  const plainName = heading === undefined ? file : `${file}#${slugOf(heading)}`;
  const found = heading === undefined ? inFile : inFile.filter((rule) => rule.name === plainName);
  if (found.length > 0) return found;
  const near = suggest(plainName, [...rules.map((rule) => rule.name), ...rules.map(({ path }) => path)]);
  const others = inFile.map((rule) => rule.name).filter((other) => other !== near);
  throw new KitError({
    code: "invalid_request",
    message: `guidelines.check: no rule ${JSON.stringify(name.slice(0, 200))} was found${near === undefined ? "." : `; did you mean ${near}?`}`,
    hint:
      others.length > 0
        ? `${file} has ${others.slice(0, 10).join(", ")}.`
        : 'A rule is a file, or a file and a heading: "AGENTS.md#money". kit guidelines list shows all rules.',
  });
}

/**
 * The rules that no check covers: those that apply to some files without being asked for, or all. A copy of a rule, such as one that a sync
 * wrote for another tool, is the same rule.
 */
export function listUnchecked(
  records: readonly GuidelineRecord[],
  checked: ReadonlySet<string>,
  files?: readonly string[],
): readonly Rule[] {
  const matcher = createGuidelineMatcher(records);
  const applying = files?.flatMap((path) => matcher.match(path)) ?? [];
  const isAsked = new Set(
    applying.filter(({ reason }) => reason !== "manual" && reason !== "auto").map(({ record }) => record.id),
  );
  const textOf = ({ title, content }: GuidelineRecord): string => `${title}\n${content}`;
  const seen = new Set(records.filter(({ id }) => checked.has(id)).map(textOf));
  const rules = listRules(records);
  return records.flatMap((record, index) => {
    const rule = rules[index];
    if (rule === undefined || seen.has(textOf(record)) || (files !== undefined && !isAsked.has(rule.id)))
      return [];
    seen.add(textOf(record));
    return [rule];
  });
}
