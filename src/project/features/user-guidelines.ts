import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, sep } from "node:path";
import { assignGuidelineIds } from "../../guidelines/guideline-id.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import { readGuidelines } from "../../guidelines/read-guidelines.ts";
import { toolInfo } from "../../guidelines/tools/tool-reads.ts";
import type { ToolId, UserFile } from "../../guidelines/tools/tool-table.ts";
import { decodeText } from "../scan/decode-text.ts";

/** A larger file is no instruction that anybody wrote. */
const maxBytes = 1024 * 1024;

/**
 * The guidelines that a tool takes from the person's home folder, named `~/…`. Only for those who ask for
 * them: they are the person's, not the repository's.
 */
export function readUserGuidelines(tool: ToolId, home: string = homedir()): readonly GuidelineRecord[] {
  const found = toolInfo(tool).user.flatMap((file) => recordsOf(file, home));
  // Codex reads one of its two.
  const [first] = found;
  return tool === "codex" ? found.filter(({ source_file }) => source_file === first?.source_file) : found;
}

function recordsOf(file: UserFile, home: string): GuidelineRecord[] {
  if (!file.path.endsWith("/")) return read(home, file.path, file.like);
  return listed(join(home, file.path)).flatMap((name) => read(home, file.path + name, file.like + name));
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((name) => name.split(sep).join("/"))
      .sort();
  } catch {
    return [];
  }
}

function read(home: string, path: string, like: string): GuidelineRecord[] {
  try {
    const stats = statSync(join(home, path));
    if (!stats.isFile() || stats.size > maxBytes) return [];
    const { text } = decodeText(readFileSync(join(home, path)), path);
    const name = `~/${path}`;
    const { records } = readGuidelines({ path: like, text });
    return assignGuidelineIds(
      name,
      records.map(({ id: _id, source_file: _file, position: _at, ...draft }) => ({ ...draft, scope: "" })),
    );
  } catch {
    return [];
  }
}
