import { atOnce, type Steps } from "../../base/steps.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { slugOf } from "../model/block-title.ts";
import { type Feature, labelFeatures } from "./feature-labels.ts";

/** An acceptance criterion of the project. */
export interface Criterion {
  /** `<feature>#<number>`. */
  readonly id: string;
  /** Index into `features`. */
  readonly feature: number;
  readonly number: string;
  /** The number of the whole requirement, if the criterion is one of several: "1" of "1.2". */
  readonly requirement?: string;
  readonly spec_id: string;
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface CriteriaList {
  readonly criteria: readonly Criterion[];
  readonly features: readonly Feature[];
}

/** Documents that share a feature with the others of their folder. */
const featureDocument = /(?:^|\/)(?:requirements|bugfix|design|spec|plan|tasks)\.md$/;

/** The folder or file of the feature that a document belongs to. */
export function featurePathOf(path: string): string {
  return featureDocument.test(path) ? path.slice(0, Math.max(0, path.lastIndexOf("/"))) : path;
}

/**
 * The acceptance criteria of a project's blocks: the `ears_patterns` of its requirements and constraints, and each requirement
 * that is one sentence (`FR-003`). Leaves out obsolete blocks.
 */
export function listCriteria(blocks: Iterable<SpecBlock>): CriteriaList {
  return atOnce(listCriteriaInSteps(blocks));
}

/** The same, one block at a time. */
export function* listCriteriaInSteps(blocks: Iterable<SpecBlock>): Steps<CriteriaList> {
  const drafts: (Omit<Criterion, "id" | "feature"> & { readonly featurePath: string })[] = [];
  const featurePaths = new Set<string>();
  for (const block of blocks) {
    yield;
    if ((block.spec_type !== "requirement" && block.spec_type !== "constraint") || !isWanted(block)) continue;
    const featurePath = featurePathOf(block.path);
    for (const criterion of criteriaOf(block)) {
      featurePaths.add(featurePath);
      drafts.push({ ...criterion, featurePath });
    }
  }
  const features = labelFeatures([...featurePaths]);
  const indexOfPath = new Map(features.map(({ path }, index) => [path, index]));
  const criteria: Criterion[] = [];
  for (const { featurePath, ...draft } of drafts) {
    const feature = indexOfPath.get(featurePath) ?? 0;
    criteria.push({ ...draft, feature, id: `${features[feature]?.label ?? ""}#${draft.number}` });
    yield;
  }
  return { criteria, features };
}

/** A requirement that is gone, or that an OpenSpec change removes, needs no test. */
function isWanted({ lifecycle, metadata }: SpecBlock): boolean {
  return lifecycle !== "obsolete" && metadata.delta !== "removed";
}

function criteriaOf(block: SpecBlock): readonly Omit<Criterion, "id" | "feature">[] {
  const { ears_patterns: entries = [], story, number } = block.metadata;
  const place = { spec_id: block.id, path: block.path };
  const requirementNumber =
    typeof story === "string" ? story : typeof number === "string" ? number : slugOf(block.title);
  return entries.map((entry, index) => {
    const ownNumber = entry.number ?? String(index + 1);
    const isCode = /^[A-Za-z]/.test(ownNumber);
    // A scenario of user story 1 would otherwise have the number of a criterion of requirement 1.
    const dotted = ownNumber.includes(".") ? ownNumber : `${requirementNumber}.${ownNumber}`;
    const qualified = isCode
      ? ownNumber
      : typeof story === "string"
        ? dotted.replace(/^[^.]*/, story)
        : dotted;
    const criterion = { ...place, number: qualified, line: entry.line, text: entry.text };
    const requirement = qualified.startsWith(`${requirementNumber}.`)
      ? requirementNumber
      : qualified.slice(0, qualified.indexOf("."));
    return isCode ? criterion : { ...criterion, requirement };
  });
}
