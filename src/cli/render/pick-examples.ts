import type { Project } from "../../project/project.ts";

/** Things of this very project to try kit on; what there is none of is absent. */
export interface Examples {
  /** A source file, one that a spec names where there is one. */
  readonly file?: string;
  /** A word that a search for finds something. */
  readonly word?: string;
}

/** How many specs are looked at. */
const sampleSize = 200;
const sourceFile = /\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|cs|rb|php|swift|c|cc|cpp|h|vue|svelte)$/;

export function pickExamples(project: Project): Examples {
  const { specs } = project.specs.query({ limit: sampleSize });
  const named = specs.flatMap((spec) => spec.metadata.code_refs ?? []);
  const files = project.files();
  const file =
    named.find((path) => sourceFile.test(path)) ?? files.find((path) => sourceFile.test(path)) ?? files[0];
  const titles = specs.filter((spec) => spec.spec_type === "requirement").concat(specs);
  const words = titles.flatMap((spec) => spec.title.toLowerCase().match(/\p{L}{5,}/gu) ?? []);
  const word = words
    .filter((candidate) => !commonWords.has(candidate))
    .slice(0, 10)
    .find((candidate) => project.specs.query({ q: candidate, limit: 1 }).total_count > 0);
  return { ...(file === undefined ? {} : { file }), ...(word === undefined ? {} : { word }) };
}

/** Words of headings that say nothing about a project. */
const commonWords = new Set([
  "requirement",
  "requirements",
  "overview",
  "introduction",
  "story",
  "user",
  "cursor",
  "rule",
]);
