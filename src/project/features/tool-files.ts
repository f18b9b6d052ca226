import { posix } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findPlace } from "../../files/find-place.ts";
import type { PlannedFile } from "../../guidelines/sync/plan-sync.ts";
import type { McpSource, SkillSource, ToolTarget } from "../../protocol/enums.ts";
import type { SyncRecord } from "./sync-record.ts";
import { readPlacedFile } from "./write-file.ts";

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
}

/** A path of a target: its file, nothing, or why nothing can be written there. */
export async function readTarget(
  root: string,
  path: string,
): Promise<{ readonly bytes: Uint8Array | null; readonly path?: string } | { readonly problem: string }> {
  try {
    const read = await readPlacedFile(root, { path });
    if (read !== undefined) return read;
    // Throws where a file or a link is in the way of the folder that a new file needs.
    await (await findPlace({ root, path: posix.dirname(path), end: "folder" }))?.close();
    return { bytes: null };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { problem: `${error.message} Put a plain file or folder of the project there.` };
  }
}
