import { slugOf } from "../../model/slug.ts";

/** The facts in the path of a Spec Kit document. */
export type SpeckitDocument =
  | { readonly kind: "constitution" }
  | {
      readonly kind: "spec" | "plan" | "tasks";
      /** The folder that the documents of a feature share, project-relative. */
      readonly folder: string;
      /** The folder's whole name as ids spell it; its number alone may occur twice. */
      readonly feature: string;
    };

const featurePath = /^(?:.*\/)?specs\/(\d{3}[^/]*)\/(spec|plan|tasks)\.md$/s;
const constitutionPath = /(?:^|\/)\.specify\/memory\/constitution\.md$/;
/** Folders of other tools that have a `specs` folder, too. */
const otherTools = /(?:^|\/)(?:\.kiro|openspec)\//;

/** The document at a path; undefined where the path is not one of Spec Kit's. */
export function speckitDocumentOf(path: string): SpeckitDocument | undefined {
  if (!path.endsWith(".md")) return undefined;
  if (constitutionPath.test(path)) return { kind: "constitution" };
  const [, name = "", kind] = featurePath.exec(path) ?? [];
  if (kind !== "spec" && kind !== "plan" && kind !== "tasks") return undefined;
  if (otherTools.test(path)) return undefined;
  return { kind, folder: path.slice(0, path.lastIndexOf("/")), feature: slugOf(name) };
}

export function storyId(feature: string, number: string): string {
  return `fw_d-${feature}-us${number}`;
}

/** The base id of a numbered statement, such as FR-001 or T012. */
export function statementId(feature: string, code: string): string {
  return `fw_d-${feature}-${code.toLowerCase()}`;
}
