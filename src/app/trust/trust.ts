import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, relative, sep } from "node:path";
import { attempt } from "../../base/attempt.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { makeFolderSync } from "../../files/replace-file.ts";
import type { Environment } from "../config/environment.ts";

/** A key of the person's environment, and the address to which a file of the repository would send it. */
export interface KeyTarget {
  /** The variable with the key; absent for a variable that decides where all connections lead, or which code programs run. */
  readonly key?: string;
  /** An address, or the command line of a program. Without a user and a password. */
  readonly address: string;
  /** The setting and its file: `OPENAI_BASE_URL in .env`. */
  readonly source: string;
}

/** Returns the text by which a person's trust in a target is stored. */
export function identityOf({ key, address, source }: KeyTarget): string {
  return `${key ?? source.split(" ", 1)[0]} ${address}`;
}

/** A folder with what a person trusts in it. */
export interface TrustRecord {
  /** The real path. */
  readonly folder: string;
  /** Whether commands that only read may run the code of the folder. */
  readonly code: boolean;
  /** Keys with the addresses that they may be sent to, by `identityOf`. */
  readonly targets: readonly string[];
}

/** Whether `KIT_TRUST` trusts every folder: for servers, CI and containers, where no person can be asked. */
export function trustsAll(environment: Environment): boolean {
  return /^(?:1|true|yes|on)$/i.test(environment.KIT_TRUST?.trim() ?? "");
}

/** Returns what the person trusts in a folder. A record that another user could have written counts for nothing. */
export function readTrust(root: string, environment: Environment): TrustRecord {
  const folder = realpathSync(root);
  const store = storeFolder(environment);
  const nothing = { folder, code: false, targets: [] };
  if (isInside(folder, store)) return nothing;
  const record = readRecord(join(store, nameOf(folder)));
  return record?.folder === folder ? record : nothing;
}

/** Whether commands that only read may run the code of a folder. */
export function trustsCode(root: string, environment: Environment): boolean {
  return trustsAll(environment) || readTrust(root, environment).code;
}

/** Returns the targets that the person does not trust in a folder. */
export function untrustedTargets(
  targets: readonly KeyTarget[],
  root: string,
  environment: Environment,
): readonly KeyTarget[] {
  if (targets.length === 0 || trustsAll(environment)) return [];
  const trusted = readTrust(root, environment).targets;
  return targets.filter((target) => !trusted.includes(identityOf(target)));
}

/**
 * Adds to what the person trusts in a folder. The record is outside of the folder, and only its owner can read it. Throws
 * `unavailable` if it cannot be written, and `invalid_request` if it would be in the folder itself.
 */
export function addTrust(
  root: string,
  { code = false, targets = [] }: { readonly code?: boolean; readonly targets?: readonly KeyTarget[] },
  environment: Environment,
): TrustRecord {
  const before = readTrust(root, environment);
  const store = storeFolder(environment);
  if (isInside(before.folder, store)) throw storeInside();
  const record: TrustRecord = {
    folder: before.folder,
    code: before.code || code,
    targets: [...new Set([...before.targets, ...targets.map(identityOf)])],
  };
  const file = join(store, nameOf(before.folder));
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    makeFolderSync(store);
    chmodSync(store, 0o700);
    writeFileSync(temporary, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw unstored(error);
  }
  return record;
}

/** Removes what the person trusts in a folder; returns false if there was nothing. */
export function removeTrust(folder: string, environment: Environment): boolean {
  const file = join(storeFolder(environment), nameOf(folder));
  if (readRecord(file) === undefined) return false;
  rmSync(file, { force: true });
  return true;
}

/** Returns what the person trusts, by folder. */
export function listTrust(environment: Environment): readonly TrustRecord[] {
  const store = storeFolder(environment);
  return namesIn(store)
    .map((name) => readRecord(join(store, name)))
    .filter((record) => record !== undefined)
    .toSorted((one, other) => (one.folder < other.folder ? -1 : 1));
}

/** How a person allows it. */
export const trustHint =
  "'kit trust' in this folder allows it; where no person can be asked (servers, CI, containers), set KIT_TRUST=1.";

/** Returns the error for keys that would be sent to addresses which the person does not trust. */
export function untrustedError(targets: readonly KeyTarget[]): KitError {
  return new KitError({
    code: "forbidden",
    message: targets
      .map((target) => describeTarget({ ...target, address: shortened(target.address) }))
      .join(" "),
    hint: trustHint,
    meta: {
      untrusted: targets.map(({ key = null, address, source }) => ({
        key,
        address: shortened(address),
        source,
      })),
    },
  });
}

function shortened(address: string): string {
  return address.length > 200 ? `${address.slice(0, 200)}…` : address;
}

/** Returns the error for code that must not run because no person trusts its folder. */
export function untrustedCode(code: string): KitError {
  return new KitError({
    code: "forbidden",
    message: `${code} is code, and you have not trusted the code of this folder.`,
    hint: trustHint,
  });
}

/** A sentence about a key and the address that it would be sent to. */
export function describeTarget({ key, address, source }: KeyTarget): string {
  return key === undefined
    ? `${source} is ${address}: it decides where kit connects, which code runs or where files go, and you have not trusted it.`
    : `${key} of your environment would be sent to ${address}, which you have not trusted: ${source} names it.`;
}

/**
 * Returns the folder of the person's logins at MCP servers, `$XDG_STATE_HOME/kit/mcp-logins`; `undefined` if it would lie in the
 * project, where agents read.
 */
export function loginsFolder(root: string, environment: Environment): string | undefined {
  const folder = storeFolder(environment, "mcp-logins");
  return isInside(realOf(root), folder) ? undefined : folder;
}

/** `$XDG_STATE_HOME/kit/trust`. A relative folder counts as unset: it could be one of the repository. */
function storeFolder({ XDG_STATE_HOME, LOCALAPPDATA }: Environment, name = "trust"): string {
  const folders = [XDG_STATE_HOME, process.platform === "win32" ? LOCALAPPDATA : undefined];
  const state = folders.find((folder) => folder !== undefined && isAbsolute(folder));
  return join(state ?? join(homedir(), ".local", "state"), "kit", name);
}

function nameOf(folder: string): string {
  return `${createHash("sha256").update(folder).digest("hex")}.json`;
}

function isInside(folder: string, path: string): boolean {
  const inner = relative(folder, realOf(path));
  return inner === "" || (inner !== ".." && !inner.startsWith(`..${sep}`) && !isAbsolute(inner));
}

/** The real path of the part that exists, with the rest. */
function realOf(path: string): string {
  const missing: string[] = [];
  for (let existing = path; ; existing = join(existing, "..")) {
    try {
      return join(realpathSync(existing), ...missing.reverse());
    } catch {
      missing.push(relative(join(existing, ".."), existing));
    }
  }
}

/** Bytes. */
const maxRecordBytes = 1_048_576;

function readRecord(file: string): TrustRecord | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "r");
    const stats = fstatSync(descriptor);
    const isForeign =
      process.getuid !== undefined && (stats.uid !== process.getuid() || (stats.mode & 0o022) !== 0);
    if (!stats.isFile() || stats.size > maxRecordBytes || isForeign) return undefined;
    const value: unknown = JSON.parse(readFileSync(descriptor, "utf8"));
    if (!isRecord(value) || typeof value.folder !== "string" || !Array.isArray(value.targets))
      return undefined;
    const targets = value.targets.filter((target) => typeof target === "string");
    return { folder: value.folder, code: value.code === true, targets };
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder).filter((name) => name.endsWith(".json")), []);
}

function unstored(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "What you trust cannot be stored in your state folder.",
    hint: "Set XDG_STATE_HOME to a folder that you can write, or KIT_TRUST=1 for one command.",
    cause,
  });
}

function storeInside(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "Your state folder lies in this project, so kit does not store there what you trust.",
    hint: "Set XDG_STATE_HOME to an absolute folder outside of the project, or KIT_TRUST=1.",
  });
}
