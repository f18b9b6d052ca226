import { canonical } from "../../base/json-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { parseJson, setJson } from "../../guidelines/settings/edit-json.ts";
import { type McpServer, readServers, renderServer } from "../../guidelines/settings/mcp-servers.ts";
import { serverSettingsOf, toolSettings } from "../../guidelines/settings/tool-settings.ts";
import { type McpSource, type ToolTarget, toolTargets } from "../../protocol/enums.ts";
import { parseToml, setTomlServer } from "./edit-codex.ts";
import { digestOf } from "./sync-record.ts";
import { linkConflict, readTarget, type ToolFilesPlan, type ToolFilesRequest } from "./tool-files.ts";

/** Keys that keep tools of a server from the model. */
const limitsTools = /^(?:allow|deny|disabledTools|(?:en|dis)abled_tools)$/;

type Entry = Readonly<Record<string, unknown>>;

/** Adds the settings of MCP servers to a plan: one server of one file is kit's or a person's. */
export async function planServers(
  draft: ToolFilesPlan,
  { root, targets, servers: configured }: ToolFilesRequest,
  source: McpSource,
): Promise<void> {
  const { path, key } = serverSettingsOf(source);
  const written = source === "kit" ? configured : await serversOf(root, source);
  const { servers, leftOut } = readServers(source, written);
  if (servers.length === 0 && leftOut.length === 0)
    throw new KitError({
      code: "invalid_request",
      message: `There is no MCP server in ${path} (${key}), so there are no settings to write.`,
      hint: "Name the tool whose settings have them: --with mcp=claude.",
    });
  draft.leftOut.push(...leftOut);
  for (const { name, left } of servers) {
    const limits = left.filter((each) => limitsTools.test(each));
    const others = left.filter((each) => !limitsTools.test(each));
    if (limits.length > 0)
      draft.leftOut.push(
        `${path}: ${limits.join(", ")} of ${name}: the other tools offer every tool of this server.`,
      );
    if (others.length > 0) draft.leftOut.push(`${path}: ${others.join(", ")} of ${name}: not carried.`);
  }
  for (const target of toolTargets)
    if (target !== source && targets.includes(target)) await planTarget(draft, { root, target, servers });
}

/** The servers in a tool's file, as it writes them. */
async function serversOf(root: string, source: ToolTarget): Promise<unknown> {
  const { path } = toolSettings[source];
  const read = await readSettings(root, path);
  if ("problem" in read) throw unreadable(path, new SyntaxError(read.problem));
  try {
    return entriesIn(source, "text" in read ? read.text : "");
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Larger files are hardly settings, and their parts are parsed several times. */
const maxMiB = 1;

/** Reads a settings file, with its text: undefined without a file. */
async function readSettings(root: string, path: string) {
  const read = await readTarget(root, path);
  if ("problem" in read) return read;
  const { bytes } = read;
  if (bytes === null) return read;
  if (bytes.length > maxMiB * 1024 * 1024)
    return { problem: `It is larger than ${maxMiB} MiB, the most that kit reads of settings.` };
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return Buffer.from(text).equals(bytes) ? { ...read, text } : { problem: "It is not UTF-8 text." };
}

function unreadable(path: string, cause: unknown): KitError {
  return new KitError({ code: "invalid_request", message: `${path}: ${sentenceOf(cause)}`, cause });
}

function entriesIn(target: ToolTarget, text: string): Entry {
  if (text.replace(/^\ufeff/, "").trim() === "") return {};
  const root: unknown = target === "codex" ? parseToml(text) : parseJson(text).value;
  const servers = isRecord(root) ? root[toolSettings[target].key] : undefined;
  return isRecord(servers) ? servers : {};
}

interface Target {
  readonly root: string;
  readonly target: ToolTarget;
  readonly servers: readonly McpServer[];
}

async function planTarget(draft: ToolFilesPlan, { root, target, servers }: Target): Promise<void> {
  const { label, path } = toolSettings[target];
  const desired = new Map<string, Entry>();
  for (const server of servers) {
    const entry = renderServer(target, server);
    if (typeof entry === "string") draft.leftOut.push(`${label} does not get ${server.name}: it ${entry}`);
    else desired.set(server.name, entry);
  }
  const own = [...draft.record.written.keys()].filter((each) => each.startsWith(`${path}#`));
  if (desired.size === 0 && own.length === 0) return;
  const read = await readSettings(root, path);
  const base = { path, format: target, losses: [] };
  if ("problem" in read) {
    draft.files.push({ ...base, action: "conflict", reason: read.problem, owned: [] });
    return;
  }
  if (read.path !== path) return void draft.files.push({ ...base, ...linkConflict(path, read.path) });
  const before = "text" in read ? read.text : undefined;
  try {
    const names = new Set([...desired.keys(), ...own.map((each) => each.slice(path.length + 1))]);
    const isNew = (before ?? "").replace(/^\ufeff/, "").trim() === "";
    let after = isNew ? (target === "codex" ? "" : "{}\n") : (before ?? "");
    const current = entriesIn(target, after);
    const conflicts: string[] = [];
    const theirs = new Set<string>();
    for (const name of names) {
      const known = draft.record.written.get(`${path}#${name}`);
      const edit = {
        name,
        now: Object.hasOwn(current, name) ? current[name] : undefined,
        entry: desired.get(name),
      };
      const fault = faultOfEdit(target, edit, known);
      if (fault !== undefined) conflicts.push(fault);
      else if (known === undefined && edit.now !== undefined) theirs.add(name);
      if (fault === undefined || edit.entry !== undefined) after = setServer(after, target, edit);
    }
    const isSame = isNew ? desired.size === 0 : before === after;
    const changes = before === undefined ? "create" : isSame ? "unchanged" : "update";
    const owned = [...names]
      .filter((name) => !theirs.has(name))
      .map((name) => {
        const entry = desired.get(name);
        return [`${path}#${name}`, entry && digestOf(portable(target, entry))] as const;
      });
    if (before === undefined && isSame) return void owned.map(([name]) => draft.record.written.delete(name));
    draft.files.push({
      ...base,
      ...(conflicts.length === 0 ? { action: changes } : { action: "conflict", reason: conflicts.join(" ") }),
      before,
      after,
      bytes: { before: read.bytes, after: Buffer.from(after) },
      owned,
    });
  } catch (error) {
    draft.files.push({ ...base, before, action: "conflict", reason: sentenceOf(error), owned: [] });
  }
}

interface Edit {
  readonly name: string;
  /** The settings in the file; undefined if there are none. */
  readonly now: unknown;
  /** The settings to write; undefined: none. */
  readonly entry: Entry | undefined;
}

/** Why kit must not change a server: a person wrote or edited what kit would replace. */
function faultOfEdit(target: ToolTarget, { name, now, entry }: Edit, known?: string): string | undefined {
  if (now === undefined) return undefined;
  const theirs = portable(target, now);
  if (entry !== undefined && canonical(theirs) === canonical(portable(target, entry))) return undefined;
  if (known === undefined) return `kit did not write ${name}, which has other settings.`;
  if (known !== digestOf(theirs)) return `kit wrote ${name}, and it was edited by hand.`;
  const { keys } = toolSettings[target];
  const added = isRecord(now) ? Object.keys(now).filter((key) => !keys.includes(key)) : [];
  if (entry !== undefined || added.length === 0) return undefined;
  return `${name} is gone from the source, and has keys that kit did not write: ${added.join(", ")}.`;
}

/** The part of a server's settings that kit writes, without what says nothing. */
function portable(target: ToolTarget, written: unknown): Entry {
  const { keys } = toolSettings[target];
  return Object.fromEntries(
    Object.entries(isRecord(written) ? written : {}).filter(
      ([key, value]) =>
        keys.includes(key) &&
        (key !== "type" || value !== "stdio") &&
        !/^(?:\[\]|\{\})$/.test(JSON.stringify(value)),
    ),
  );
}

function setServer(text: string, target: ToolTarget, { name, now, entry }: Edit): string {
  const { key, keys } = toolSettings[target];
  const isSame =
    entry !== undefined && canonical(portable(target, now)) === canonical(portable(target, entry));
  if (now !== undefined && isSame) return text;
  if (target === "codex") return setTomlServer(text, name, { entry, keys });
  if (!isRecord(now) || entry === undefined) return setJson(text, [key, name], entry);
  return keys.reduce((each, part) => setJson(each, [key, name, part], entry[part]), text);
}

function sentenceOf(error: unknown): string {
  if (error instanceof SyntaxError) return error.message;
  // The parser of TOML quotes lines of the file, which can hold keys.
  const line = error instanceof Error && "line" in error ? `Line ${String(error.line)}` : "It";
  if (error instanceof Error && error.constructor.name === "TomlError") return `${line} is not TOML.`;
  throw error;
}
