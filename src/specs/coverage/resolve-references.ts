import type { CoverageEvidence } from "../../protocol/coverage.ts";
import { type CriteriaIndex, criteriaNamed, toNumberKey, wordsOf } from "./criteria-index.ts";
import type { TestReference } from "./test-references.ts";

/** A criterion that a line of a test names. */
export interface NamedCriterion {
  /** Index into the list of criteria. */
  readonly criterion: number;
  readonly line: number;
  readonly evidence: CoverageEvidence;
  /** True if the line names the whole requirement that the criterion is part of. */
  readonly isWhole: boolean;
}

/** A line that names a criterion which no spec has. */
export interface DanglingReference {
  readonly line: number;
  /** As it would be a key: `auth#9.9`. */
  readonly key: string;
}

export interface ResolvedReferences {
  readonly namedCriteria: readonly NamedCriterion[];
  /** Criteria that a line perhaps names: it spells the number in another way, and nothing says which feature it means. */
  readonly uncertain: readonly NamedCriterion[];
  readonly dangling: readonly DanglingReference[];
  /** The features that the file belongs to. */
  readonly features: ReadonlySet<number>;
}

/** The strength of the link between a test file and a feature: it grows with the words that their names share. */
const explicitLink = 1000;

/**
 * Finds the criteria that the references of one test file name.
 *
 * A key includes its feature. A plain number belongs to the first of these features that is unambiguous: the nearest line above
 * that names a feature (`Feature: auth`); the feature that the file belongs to most strongly, among those with the number (a spec
 * names the file, or the file names a spec or a key of the feature, else the file's path has the feature's name); for a file that
 * belongs to no feature, the only feature of the project that has the number; there a code of another spelling (`SC-5` for `SC-005`)
 * can be one of another document, and is uncertain. Otherwise the number is not a reference.
 *
 * @see decisions/2026-11-21-coverage-evidence.md
 */
export function resolveReferences(
  index: CriteriaIndex,
  file: {
    readonly path: string;
    readonly references: readonly TestReference[];
    readonly namedBy: Iterable<number>;
  },
): ResolvedReferences {
  const links = linksOf(index, file);
  const namedCriteria: NamedCriterion[] = [];
  const uncertain: NamedCriterion[] = [];
  const dangling: DanglingReference[] = [];
  let marker: number | undefined;
  for (const reference of file.references) {
    const { line, kind } = reference;
    if (kind === "feature") marker = featureNamed(index, reference.name) ?? marker;
    if (kind === "spec") {
      for (const criterion of index.bySpecId.get(trimId(index, reference.id)) ?? []) {
        const isWhole = index.criteria[criterion]?.requirement !== undefined;
        namedCriteria.push({ criterion, line, evidence: "key", isWhole });
      }
    }
    if (kind !== "key" && kind !== "number") continue;
    const feature =
      kind === "key" ? featureOfKey(index, reference.name) : (marker ?? clearest(index, links, reference));
    if (feature === undefined) continue;
    const found = criteriaNamed(index, feature, reference.number);
    const isKnownFeature = kind === "key" || marker !== undefined || links.has(feature);
    for (const each of found) {
      const isSame = isKnownFeature || isSpelled(reference.number, index.criteria[each.criterion]?.number);
      (isSame ? namedCriteria : uncertain).push({ ...each, line, evidence: kind });
    }
    if (found.length === 0 && isMeant(reference)) {
      dangling.push({ line, key: `${index.features[feature]?.label}#${reference.number}` });
    }
  }
  return { namedCriteria, uncertain, dangling, features: new Set(links.keys()) };
}

/** Whether a code has the zeros with which the spec writes it; numbers without letters have no other spelling. */
function isSpelled(written: string, number = ""): boolean {
  const digits = (text: string): string => text.replace(/^[a-z]+[-_ ]?/i, "");
  return !/^[a-z]/i.test(written) || !/^[a-z]/i.test(number) || digits(written) === digits(number);
}

/**
 * Whether a number that no criterion has is a mistake to report. Codes such as FR-1 and plain numbers also occur in fixtures; a
 * key with a number, and a dotted number below the name of a feature, are references.
 */
function isMeant({ kind, number }: { readonly kind: "key" | "number"; readonly number: string }): boolean {
  return kind === "key" ? /^(?:[A-Za-z]{1,4}-?)?\d/.test(number) : /^\d+\.\d/.test(number);
}

/** The feature that the part of a key before the `#` names. */
export function featureOfKey(index: CriteriaIndex, name: string): number | undefined {
  return featureNamed(index, name) ?? featureAt(index, name);
}

/** The feature that a plain number belongs to; `undefined` if it is ambiguous. */
function clearest(
  index: CriteriaIndex,
  links: ReadonlyMap<number, number>,
  { number }: { readonly number: string },
): number | undefined {
  const having = index.featuresByNumber.get(toNumberKey(number)) ?? new Set<number>();
  if (links.size === 0) return having.size === 1 ? [...having][0] : undefined;
  const linked = [...links].filter(([feature]) => having.has(feature));
  const strongest = Math.max(...linked.map(([, strength]) => strength));
  const [best, rival] = linked.filter(([, strength]) => strength === strongest);
  return rival === undefined ? best?.[0] : undefined;
}

function linksOf(
  index: CriteriaIndex,
  file: {
    readonly path: string;
    readonly references: readonly TestReference[];
    readonly namedBy: Iterable<number>;
  },
): ReadonlyMap<number, number> {
  const links = new Map<number, number>();
  for (const feature of file.namedBy) links.set(feature, explicitLink);
  for (const reference of file.references) {
    const feature =
      reference.kind === "path"
        ? featureAt(index, reference.path)
        : reference.kind === "key" || reference.kind === "feature"
          ? featureNamed(index, reference.name)
          : undefined;
    if (feature !== undefined) links.set(feature, explicitLink);
  }
  const pathWords = wordsOf(file.path);
  for (const [at, word] of pathWords.entries()) {
    for (const { feature, words } of index.featureByWord.get(word) ?? []) {
      if (links.has(feature) || !words.every((one, offset) => pathWords[at + offset] === one)) continue;
      links.set(feature, words.length);
    }
  }
  return links;
}

function featureNamed(index: CriteriaIndex, name: string): number | undefined {
  return index.featureByName.get(name.toLowerCase()) ?? index.featureByName.get(slugLike(name)) ?? undefined;
}

/** The feature whose folder or file a path leads to or into. */
function featureAt(index: CriteriaIndex, written: string): number | undefined {
  const path = written.replace(/^(?:\.{1,2}\/)+/, "");
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    const feature = index.featureByPath.get(path.slice(0, end));
    if (feature !== undefined) return feature;
  }
  return undefined;
}

/** Removes the full stop after an id in prose. */
function trimId(index: CriteriaIndex, id: string): string {
  return index.bySpecId.has(id) ? id : id.replace(/[.-]+$/, "");
}

const slugLike = (name: string): string => wordsOf(name).join("-");
