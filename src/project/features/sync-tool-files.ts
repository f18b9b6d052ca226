import { stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findFiles } from "../../files/find-files.ts";
import { resolveInside } from "../../files/find-place.ts";
import { toolSettings } from "../../guidelines/settings/tool-settings.ts";
import { allowedToolsOf } from "../../guidelines/skills/skill-format.ts";
import { type SkillSource, type ToolTarget, toolTargets } from "../../protocol/enums.ts";
import { digestOf, readRecord } from "./sync-record.ts";
import { planServers } from "./sync-servers.ts";
import { linkConflict, readTarget, type ToolFilesPlan, type ToolFilesRequest } from "./tool-files.ts";
import { readPlacedFile } from "./write-file.ts";

/** The tools of which a project has a folder or a file. */
export async function presentTools(root: string): Promise<readonly ToolTarget[]> {
  const found = await Promise.all(
    toolTargets.map(async (target) => {
      const { path, skills } = toolSettings[target];
      const own = target === "codex" ? [path] : [path, skills, posix.dirname(skills)];
      const signs = target === "copilot" ? [path, skills, ".github/copilot-instructions.md"] : own;
      const there = signs.map((sign) =>
        stat(join(root, sign)).then(
          () => true,
          () => false,
        ),
      );
      return (await Promise.all(there)).includes(true) ? [target] : [];
    }),
  );
  return found.flat();
}

/**
 * Plans the copies of skills and the settings of MCP servers. kit changes a file, or a server in a file, only if it is as kit wrote
 * it, which `kit.synced.json` remembers.
 *
 * @see decisions/2026-12-01-skills-and-settings.md
 */
export async function planToolFiles(request: ToolFilesRequest): Promise<ToolFilesPlan> {
  const record = await readRecord(request.root);
  const plan: ToolFilesPlan = { files: [], record, readDirectly: [], leftOut: [], textBytes: 0 };
  if (request.skills !== undefined) await planSkills(plan, request, request.skills);
  if (request.mcp !== undefined) await planServers(plan, request, request.mcp);
  return plan;
}

/** More files are hardly the text and the scripts of skills. */
const maxFiles = 5_000;

/** The bytes of all files. */
const maxTotalMiB = 32;

/** The bytes of all texts in one plan, which is one reply. */
const maxTextBytes = 16 * 1024 * 1024;

/** Folders that tools fill, and files of systems. */
const ofMachines = new Set(["node_modules", ".git", ".venv", "__pycache__", ".DS_Store"]);

async function planSkills(
  draft: ToolFilesPlan,
  { root, targets }: ToolFilesRequest,
  source: SkillSource,
): Promise<void> {
  const folder = source === "agents" ? ".agents/skills" : toolSettings[source].skills;
  const realFolder = await resolveInside({ root, path: folder });
  const files = await readSkills(draft, root, realFolder);
  if (files.size === 0)
    throw new KitError({
      code: "invalid_request",
      message: `There is no skill in ${folder}, so there is nothing to copy.`,
      hint: "A skill is a folder with a SKILL.md. Name the tool that has them: --with skills=claude.",
    });
  const written: string[] = [];
  for (const target of toolTargets.filter((each) => targets.includes(each))) {
    const { label, skills, readsSkills } = toolSettings[target];
    const real = await resolveInside({ root, path: skills });
    if (real === realFolder && skills !== folder) {
      const reason = `${skills} is a link to ${realFolder}, which is the source.`;
      draft.files.push({ path: skills, format: target, action: "unchanged", reason, losses: [], owned: [] });
      continue;
    }
    if (real !== skills) {
      draft.files.push({ path: skills, format: target, ...linkConflict(skills, real) });
      continue;
    }
    const read = [skills, ...readsSkills].find((each) => each === folder || written.includes(each));
    if (read !== undefined) draft.readDirectly.push(`${label} reads ${read} itself.`);
    else written.push(skills);
    if (real === realFolder) continue;
    const desired = read === undefined ? files : new Map<string, SkillFile>();
    for (const [path, file] of desired)
      await planCopy(draft, { root, target, skills, path: `${skills}/${path}`, file });
    for (const path of draft.record.written.keys()) {
      const isOwn = path.startsWith(`${skills}/`) && !path.split("/").includes("..");
      if (!isOwn || desired.has(path.slice(skills.length + 1))) continue;
      await planCopy(draft, { root, target, skills, path });
    }
  }
}

interface SkillFile {
  /** The real path of the source. */
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly isExecutable: boolean;
  readonly losses: readonly string[];
}

/** The files of all skills, by their path in the folder. Reports what is not copied. */
async function readSkills(
  draft: ToolFilesPlan,
  root: string,
  folder: string,
): Promise<ReadonlyMap<string, SkillFile>> {
  const files = new Map<string, SkillFile>();
  const options = { accepts: () => true, skips: (name: string) => ofMachines.has(name) };
  const isThere = await stat(join(root, folder)).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isThere) return files;
  const found = await findFiles(root, folder, options);
  if (found.paths.length > maxFiles)
    throw new KitError({
      code: "invalid_request",
      message: `${folder} has ${found.paths.length} files; at most ${maxFiles} are copied.`,
    });
  for (const { path, reason } of found.unusable) draft.leftOut.push(`${path} ${reason}, and is not copied.`);
  const packages = found.paths
    .filter((path) => path.endsWith("/SKILL.md"))
    .map((path) => posix.dirname(path));
  let total = 0;
  for (const from of found.paths) {
    const path = from.slice(folder.length + 1);
    if (!packages.some((each) => from.startsWith(`${each}/`) && each !== folder)) {
      if (path.endsWith(".md"))
        draft.leftOut.push(`${from} is in no folder of its own with a SKILL.md, so only kit reads it.`);
      continue;
    }
    if (/^\.env(?:\..+)?$|^\.envrc$/i.test(posix.basename(path))) {
      draft.leftOut.push(`${from} can hold secrets, and is not copied.`);
      continue;
    }
    try {
      const { mode, size } = await stat(join(root, from));
      total += size;
      if (total > maxTotalMiB * 1024 * 1024) break;
      const read = await readPlacedFile(root, { path: from });
      if (read === undefined) continue;
      // A link could lead to a file of secrets elsewhere in the project.
      if (!read.path.startsWith(`${folder}/`)) {
        draft.leftOut.push(`${from} is a link out of ${folder}, and is not copied.`);
        continue;
      }
      const tools =
        posix.basename(path) === "SKILL.md"
          ? allowedToolsOf(new TextDecoder().decode(read.bytes))
          : undefined;
      const losses =
        tools === undefined
          ? []
          : [
              `allowed-tools: kit grants nothing for it, but a tool that knows this key runs these without asking: ${tools.text}.`,
            ];
      files.set(path, { ...read, isExecutable: (mode & 0o100) !== 0, losses });
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      draft.leftOut.push(`${from} is not copied: ${error.message}`);
    }
  }
  if (total > maxTotalMiB * 1024 * 1024)
    throw new KitError({
      code: "invalid_request",
      message: `The skills in ${folder} have more than ${maxTotalMiB} MiB; at most ${maxTotalMiB} MiB are copied.`,
      hint: "Move large files out of the folders of skills.",
    });
  return files;
}

interface Copy {
  readonly root: string;
  readonly target: ToolTarget;
  /** The folder of the target's skills. */
  readonly skills: string;
  readonly path: string;
  /** Undefined: the skill is gone. */
  readonly file?: SkillFile;
}

async function planCopy(draft: ToolFilesPlan, { root, target, skills, path, file }: Copy): Promise<void> {
  const losses = file?.losses ?? [];
  const read = await readTarget(root, path);
  const base = { path, format: target, losses };
  if ("problem" in read) {
    draft.files.push({ ...base, action: "conflict", reason: read.problem, owned: [] });
    return;
  }
  const { bytes: before, path: real } = read;
  const after = file?.bytes;
  if (before === null && after === undefined) return void draft.record.written.delete(path);
  if (file !== undefined && real === file.path) {
    draft.files.push({ ...base, action: "unchanged", reason: `It is the same file as ${real}.`, owned: [] });
    return;
  }
  if (!real.startsWith(`${skills}/`)) return void draft.files.push({ ...base, ...linkConflict(path, real) });
  const known = draft.record.written.get(path);
  const isOwn = before !== null && known === digestOf(before);
  const isSame = before !== null && after !== undefined && Buffer.compare(before, after) === 0;
  const changes = after === undefined ? "delete" : "update";
  const action = before === null ? "create" : isSame ? "unchanged" : isOwn ? changes : "conflict";
  const gone = after === undefined ? " for a skill that is gone" : "";
  draft.files.push({
    ...base,
    action,
    ...(action !== "conflict"
      ? {}
      : {
          reason:
            known === undefined ? "kit did not write it." : `kit wrote it${gone}, and it was edited by hand.`,
        }),
    before: textOf(draft, before),
    after: textOf(draft, after ?? null),
    bytes: { before, after },
    isExecutable: file?.isExecutable ?? false,
    owned: isSame && known === undefined ? [] : [[path, after && digestOf(after)]],
  });
}

/** A file as a preview shows it: its text, or its size and digest. */
function textOf(draft: ToolFilesPlan, bytes: Uint8Array | null): string | undefined {
  if (bytes === null) return undefined;
  draft.textBytes += bytes.length;
  if (draft.textBytes > maxTextBytes) return `not shown: ${bytes.length} bytes, sha256 ${digestOf(bytes)}\n`;
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  if (!text.includes("\0") && Buffer.compare(Buffer.from(text), bytes) === 0) return text;
  return `not text: ${bytes.length} bytes, sha256 ${digestOf(bytes)}\n`;
}
