import type { SourceFile } from "./discover-sources.ts";

/** The file that `kit types` writes, below the project's root. */
export const projectTypesFile = "kit.types.ts";

const header = "// Written by `kit types` and `kit dev`";

/** Whether kit has written the text of a file, so that it can overwrite the file. */
export function isProjectTypes(text: string): boolean {
  return text.startsWith(header);
}

/**
 * The source of `kit.types.ts`: the names of the agents and workflows with the modules of their files. Payloads and
 * results are inferred from these modules, so that the file changes only when a source is added, renamed or removed.
 */
export function toProjectTypes(sources: readonly SourceFile[]): string {
  return `${header}: the names of this project's agents and workflows. Commit it; do not edit it.
// new KitClient<typeof import("./${projectTypesFile}")>({ baseUrl }) then checks names, payloads and results.

${declare("agents", sources)}
${declare("workflows", sources)}`;
}

function declare(name: "agents" | "workflows", sources: readonly SourceFile[]): string {
  const sourcesOfKind = sources
    .filter(({ kind }) => `${kind}s` === name)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const lines = sourcesOfKind.map(
    (source) => `  readonly ${JSON.stringify(source.name)}: ${moduleOf(source)};\n`,
  );
  return `export declare const ${name}: {${lines.length === 0 ? "" : "\n"}${lines.join("")}};\n`;
}

/** Only the name of a JavaScript source is checked: its types are unknown unless the project's tsconfig asks for them. */
function moduleOf({ path }: SourceFile): string {
  return /\.m?ts$/.test(path) ? `typeof import(${JSON.stringify(`./${path}`)})` : "object";
}
