import { atOnce, type Steps } from "../../base/steps.ts";
import { slugOf } from "../model/block-title.ts";
import type { CriteriaList } from "./list-criteria.ts";

/** Criteria by everything that a test can name them with. Values are indexes into the list. */
export interface CriteriaIndex extends CriteriaList {
  /** By `keyIn` of feature and number. */
  readonly byNumber: ReadonlyMap<string, readonly number[]>;
  /** By `keyIn` of feature and the number of the whole requirement. */
  readonly byRequirement: ReadonlyMap<string, readonly number[]>;
  /** The features that have a criterion or requirement of a number, by `toNumberKey`. */
  readonly featuresByNumber: ReadonlyMap<string, ReadonlySet<number>>;
  readonly bySpecId: ReadonlyMap<string, readonly number[]>;
  /** A feature by its label, slug or name without a leading number; null for a name of several. */
  readonly featureByName: ReadonlyMap<string, number | null>;
  /** A feature by the path of its folder or file. */
  readonly featureByPath: ReadonlyMap<string, number>;
  /** By the first word of its name: the features, with all words of their names. */
  readonly featureByWord: ReadonlyMap<string, readonly NamedFeature[]>;
}

export interface NamedFeature {
  /** Index into `features`. */
  readonly feature: number;
  /** The words of the name without a leading number: `["gift", "cards"]`. */
  readonly words: readonly string[];
}

/** One spelling per number: `1.02` is `1.2`, `FR-001` and `fr_1` are `fr-1`. */
export function toNumberKey(number: string): string {
  return number
    .toLowerCase()
    .replace(/[_ ]/g, "-")
    .replace(/^([a-z]+)(?=\d)/, "$1-")
    .replace(/(^|[.-])0+(?=\d)/g, "$1");
}

export function indexCriteria(list: CriteriaList): CriteriaIndex {
  return atOnce(indexCriteriaInSteps(list));
}

/** The same, one criterion at a time. */
export function* indexCriteriaInSteps(list: CriteriaList): Steps<CriteriaIndex> {
  const { criteria, features } = list;
  const featureByName = new Map<string, number | null>();
  const addName = (name: string, index: number): void => {
    if (name === "" || featureByName.get(name) === index) return;
    featureByName.set(name, featureByName.has(name) ? null : index);
  };
  for (const [index, { label }] of features.entries()) addName(label.toLowerCase(), index);
  const labels = new Set(featureByName.keys());
  for (const [index, { label }] of features.entries()) {
    // A short name never replaces a label with the same spelling.
    for (const name of shortNamesOf(label)) if (!labels.has(name)) addName(name, index);
  }
  const featureNames = features.map(({ label }, feature): NamedFeature => {
    return { feature, words: wordsOf(withoutNumber(label.split("/").at(-1) ?? "")) };
  });
  const byNumber = new Map<string, number[]>();
  const byRequirement = new Map<string, number[]>();
  const featuresByNumber = new Map<string, Set<number>>();
  const bySpecId = new Map<string, number[]>();
  for (const [index, { feature, number, requirement, spec_id }] of criteria.entries()) {
    addTo(byNumber, keyIn(feature, number), index);
    addTo(byRequirement, keyIn(feature, requirement), index);
    addTo(bySpecId, spec_id, index);
    for (const key of [toNumberKey(number), toNumberKey(requirement ?? number)]) {
      const having = featuresByNumber.get(key) ?? new Set();
      featuresByNumber.set(key, having.add(feature));
    }
    yield;
  }
  const featureByWord = new Map<string, NamedFeature[]>();
  for (const each of featureNames) addTo(featureByWord, each.words[0], each);
  const featureByPath = new Map(features.map(({ path }, index) => [path, index]));
  return {
    ...list,
    ...{ byNumber, byRequirement, featuresByNumber, bySpecId },
    ...{ featureByName, featureByPath, featureByWord },
  };
}

/** Words of a name or path in lower case, split at punctuation and at capitals. */
export function wordsOf(text: string): string[] {
  return (text
    .replace(/([\p{Ll}\p{N}])(?=\p{Lu})/gu, "$1 ")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? []) as string[];
}

function shortNamesOf(label: string): readonly string[] {
  const last = label.split("/").at(-1) ?? label;
  return [...new Set([slugOf(label), last.toLowerCase(), slugOf(last), slugOf(withoutNumber(last))])];
}

/** Spec Kit numbers its features: `001-gift-cards`. */
const withoutNumber = (name: string): string => name.replace(/^\d+[-_]/, "");

function keyIn(feature: number | undefined, number: string | undefined): string | undefined {
  return feature === undefined || number === undefined ? undefined : `${feature} ${toNumberKey(number)}`;
}

function addTo<Item>(groups: Map<string, Item[]>, key: string | undefined, item: Item): void {
  if (key === undefined) return;
  const members = groups.get(key);
  if (members === undefined) groups.set(key, [item]);
  else members.push(item);
}

/** The criteria that a number names in a feature: one, or all of a whole requirement. */
export function criteriaNamed(
  { byNumber, byRequirement }: CriteriaIndex,
  feature: number,
  number: string,
): readonly { readonly criterion: number; readonly isWhole: boolean }[] {
  const key = keyIn(feature, number) ?? "";
  const sameNumber = byNumber.get(key);
  const found = sameNumber ?? byRequirement.get(key) ?? [];
  return found.map((criterion) => ({ criterion, isWhole: sameNumber === undefined }));
}
