import { readFile, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import type { LoadedConfig } from "../app/config/load-config.ts";
import { compileGlob } from "../base/glob/glob.ts";
import { isSecretName } from "../base/names.ts";
import { findFiles } from "../files/find-files.ts";
import type { Project } from "../project/project.ts";
import { createSourceCatalog } from "../project/scan/source-catalog.ts";
import { placeInOutput } from "./bundle-code.ts";
import type { BuildProblem, OutputFiles } from "./bundler.ts";

/** Folders of skills and roles: models read all files in them, whatever their type. */
const folders = [".agents/skills", ".claude/skills", ".github/skills", ".agents/roles"];
/** Single files that a server reads. */
const singleFiles = ["kit.toml", "kit.accepted.jsonl"];

export interface CollectedFiles {
  readonly files: OutputFiles;
  readonly problems: readonly BuildProblem[];
  readonly warnings: readonly string[];
}

/**
 * The project files that a server reads: current specs and guidelines, their imports, skills, roles, and files that
 * code and configuration name. Files with names of secret files are left out.
 */
export async function collectFiles(
  { project, loaded }: { readonly project: Project; readonly loaded: LoadedConfig },
  { reads, include }: { readonly reads: readonly string[]; readonly include: readonly string[] },
): Promise<CollectedFiles> {
  const { root } = project;
  const all = project.files();
  const catalog = createSourceCatalog(loaded.config);
  const included = new Set(all.filter((path) => catalog.isSource(path) || singleFiles.includes(path)));
  const warnings: string[] = [];
  for (const folder of folders) {
    const { paths } = await findFiles(root, folder, { accepts: () => true });
    for (const path of paths) included.add(path);
  }
  for (const path of reads) {
    const found = await filesAt(root, path);
    if (found.length === 0)
      warnings.push(`The code reads ${path}, which does not exist: the output does not contain it.`);
    for (const file of found) included.add(file);
  }
  for (const pattern of include) {
    const glob = compileGlob(pattern);
    const found = all.filter((path) => glob.matches(path));
    if (found.length === 0)
      warnings.push(`build.include has ${JSON.stringify(pattern)}, which matches no file.`);
    for (const path of found) included.add(path);
  }
  const files: OutputFiles = new Map();
  const problems: BuildProblem[] = [];
  const add = async (path: string): Promise<void> => {
    if (files.has(placeInOutput(path))) return;
    if (isSecretName(path)) {
      problems.push({
        path,
        message: "is a file of secrets by its name, and would be part of the output.",
        hint: "Keep it out of build.include and of the folders of skills, and give its values as variables of the target.",
      });
      return;
    }
    const bytes = await readFile(join(root, path));
    files.set(placeInOutput(path), bytes);
    for (const imported of importsOf(path, bytes)) if (all.includes(imported)) await add(imported);
  };
  for (const path of [...included].sort()) await add(path);
  return { files, problems, warnings };
}

/** A file, or those of a folder; none where nothing is. */
async function filesAt(root: string, path: string): Promise<readonly string[]> {
  const found = await stat(join(root, path)).catch(() => undefined);
  if (found?.isDirectory() !== true) return found?.isFile() === true ? [path] : [];
  const [folder, name] = [posix.dirname(path), posix.basename(path)];
  const { paths } = await findFiles(join(root, folder), name, { accepts: () => true });
  return paths.map((below) => posix.join(folder, below));
}

/** The files that a Markdown file imports as instructions do: `@docs/style.md`, from its folder or from the root. */
function importsOf(path: string, bytes: Uint8Array): readonly string[] {
  if (!/\.(md|mdc)$/.test(path)) return [];
  const references = new TextDecoder().decode(bytes).matchAll(/(?:^|\s)@([\w./-]+\.(?:md|mdc|txt))\b/g);
  return [...references].flatMap(([, name = ""]) => [
    posix.join(posix.dirname(path), name),
    posix.normalize(name),
  ]);
}
