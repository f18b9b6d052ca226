import { posix } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findPlace, resolveInside } from "../../files/find-place.ts";
import type { PlannedFile } from "../../guidelines/sync/plan-sync.ts";
import type { McpSource, SkillSource, ToolTarget } from "../../protocol/enums.ts";
import type { SyncRecord } from "./sync-record.ts";
import { assertNotInternal, readPlacedFile } from "./write-file.ts";

export interface ToolFilesRequest {
  readonly root: string;
  readonly skills?: SkillSource | undefined;
  readonly mcp?: McpSource | undefined;
  readonly targets: readonly ToolTarget[];
  /** The servers of kit's configuration. */
  readonly servers: unknown;
}

/** A file that a sync writes for a tool, with its bytes: it need not be text. */
export interface PlannedToolFile extends PlannedFile {
  readonly bytes?: { readonly before: Uint8Array | null; readonly after?: Uint8Array | undefined };
  readonly isExecutable?: boolean;
  /** The record of the file as planned: a digest, or undefined where kit owns nothing any more. */
  readonly owned: readonly (readonly [key: string, digest: string | undefined])[];
}

/** A plan, to which several functions add. */
export interface ToolFilesPlan {
  readonly files: PlannedToolFile[];
  readonly record: SyncRecord;
  readonly readDirectly: string[];
  readonly leftOut: string[];
  /** The bytes of texts that the files show. */
  textBytes: number;
}

/** A target that is a link: what is written would change a place that the sync does not name. */
export function linkConflict(path: string, real: string) {
  const reason = `It is a link to ${real}, and kit writes only to ${path} itself. Put a plain file or folder there, or leave this target out.`;
  return { action: "conflict", reason, losses: [], owned: [] } as const;
}

interface TargetFile {
  /** Null: there is no file. */
  readonly bytes: Uint8Array | null;
  /** The real path. */
  readonly path: string;
}

/** A path of a target: its file, nothing, or why nothing can be written there. */
export async function readTarget(
  root: string,
  path: string,
): Promise<TargetFile | { readonly problem: string }> {
  try {
    const real = await resolveInside({ root, path });
    assertNotInternal(path, real);
    const read = await readPlacedFile(root, { path });
    if (read !== undefined) return read;
    // Throws where a file or a link is in the way of the folder that a new file needs.
    await (await findPlace({ root, path: posix.dirname(path), end: "folder" }))?.close();
    return { bytes: null, path: real };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { problem: `${error.message} Put a plain file or folder of the project there.` };
  }
}
