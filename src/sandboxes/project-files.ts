import { findFiles } from "../files/find-files.ts";
import { findPlace } from "../files/find-place.ts";
import { readRegularFile } from "../files/replace-file.ts";

/** Limits of one skill folder: further files, and larger files, are skipped. */
const maxSkillFiles = 500;
const maxSkillBytes = 1024 * 1024;

/** A file of the project to copy into a workspace; `path` is relative to the project root. */
export interface ProjectFile {
  readonly path: string;
  readonly content: Buffer;
}

/** Yields the files of skill folders, because models are told their paths. Skips files that cannot be read. */
export async function* readSkills(
  root: string,
  folders: readonly string[],
): AsyncGenerator<ProjectFile, void, void> {
  for (const folder of folders) {
    const { paths } = await findFiles(root, folder, { accepts: () => true });
    for (const path of paths.slice(0, maxSkillFiles)) {
      const content = await readProjectFile(root, path, maxSkillBytes).catch(() => undefined);
      if (content !== undefined) yield { path, content };
    }
  }
}

/** Reads a file below `root`; `undefined` if it is missing. Throws `payload_too_large` over `maxBytes`. */
export async function readProjectFile(
  root: string,
  path: string,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const place = await findPlace({ root, path });
  if (place === undefined) return undefined;
  try {
    const bytes = await readRegularFile(place, maxBytes);
    return bytes === undefined ? undefined : Buffer.from(bytes);
  } finally {
    await place.close();
  }
}
