import { slugOf } from "../../model/slug.ts";

export type KiroDocumentKind = "requirements" | "bugfix" | "design" | "tasks";

/** What the path of a Kiro document says. */
export interface KiroDocument {
  readonly kind: KiroDocumentKind;
  /** The folder that the documents of a feature share, project-relative. */
  readonly folder: string;
  /** The feature as ids spell it; nested folders are joined by hyphens. */
  readonly feature: string;
}

const kiroPath = /(?:^|\/)\.kiro\/specs\/(?:(.*)\/)?(requirements|bugfix|design|tasks)\.md$/s;

/** The document at a path, or nothing where the path is not one of Kiro's. */
export function kiroDocumentOf(path: string): KiroDocument | undefined {
  const match = path.endsWith(".md") ? kiroPath.exec(path) : null;
  if (match === null) return undefined;
  return {
    kind: match[2] as KiroDocumentKind,
    folder: path.slice(0, path.lastIndexOf("/")),
    feature: slugOf(match[1] ?? "") || "project",
  };
}

/** The base id of the requirement with a number, in requirements.md or bugfix.md of a feature. */
export function requirementId(feature: string, number: string): string {
  return requirementTarget(feature, `req${number}`);
}

/** What a link to a requirement, to a statement with a code ("nfr-1") or to all ("*") leads to. */
export function requirementTarget(feature: string, end: string): string {
  return `fw_a-${feature}-requirements-${end}`;
}
