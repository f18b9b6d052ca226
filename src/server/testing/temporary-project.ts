import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openProject } from "../../project/open-project.ts";
import type { OpenProjectOptions, Project } from "../../project/project.ts";

export interface TemporaryProject {
  readonly project: Project;
  readonly root: string;
  /** Closes the project and removes its files. */
  remove(): Promise<void>;
}

/** Writes files into a folder of their own and opens it as a project. */
export async function temporaryProject(
  files: Readonly<Record<string, string>>,
  options: Partial<OpenProjectOptions> = {},
): Promise<TemporaryProject> {
  const root = await mkdtemp(join(tmpdir(), "kit-project-"));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  const project = await openProject({ indexFile: ":memory:", ...options, root });
  await project.refresh();
  return {
    project,
    root,
    async remove() {
      await project.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
