import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KitError } from "../../base/kit-error.ts";
import { ownModule } from "../../base/own-package.ts";
import type { ErrorCode } from "../../protocol/error-code.ts";
import { readManifest } from "./package-manager.ts";

/** A package that kit works with. */
export interface Peer {
  readonly name: string;
  /** The range that kit accepts: `^4.0.105`, or one version. */
  readonly range: string;
  /** The version that kit's own tests run with. */
  readonly tested: string;
}

/**
 * The versions of a peer, as this kit's package.json lists them. The OpenTelemetry SDK is not listed as a peer for
 * npm: other optional packages (Daytona, Google ADK, a user's own) bring other versions of it, and npm would then
 * refuse to install kit.
 */
export function peerOf(name: string): Peer {
  const manifest = readManifest(fileURLToPath(new URL("../package.json", ownModule("index"))));
  const range =
    textAt(manifest, "peerDependencies", name) ?? textAt(manifest, "kit", "optionalPackages", name) ?? "";
  // kit is tested with the lowest version of the range.
  return { name, range, tested: textAt(manifest, "devDependencies", name) ?? range.replace(/^\^/, "") };
}

/** A package of a project, and the step that it needs. */
export interface PackagePlan extends Peer {
  readonly installed?: string;
  /** The version or range to install; absent where the installed one stays. */
  readonly install?: string;
}

/**
 * Returns the step that gives a project a peer at a version that kit accepts. Throws `conflict` where that would
 * replace a newer version, or a package from another source.
 */
export function planPackage(peer: Peer, folder: string): PackagePlan {
  const { name, range, tested } = peer;
  const installed = installedVersion(name, folder);
  const declared = declaredRange(name, folder);
  const plan = { ...peer, ...(installed === undefined ? {} : { installed }) };
  if (installed !== undefined && satisfies(installed, range)) {
    // Another package installed it as its own dependency. Installing it by name keeps it when that package is
    // removed.
    return declared === undefined ? { ...plan, install: installed } : plan;
  }
  if (installed !== undefined && isNewer(installed, tested)) throw tooNew(peer, installed);
  if (installed === undefined && declared !== undefined) {
    const [, lowest] = /^[\^~]?(\d+\.\d+\.\d+\S*)$/.exec(declared) ?? [];
    if (lowest !== undefined && satisfies(lowest, range)) return { ...plan, install: declared };
    if (lowest !== undefined && isNewer(lowest, tested)) throw tooNew(peer, declared);
    if (declared.includes(":")) throw fromElsewhere(name, declared);
  }
  return { ...plan, install: tested };
}

/** The version of a package that a module in this folder would import; undefined where there is none. */
export function installedVersion(name: string, folder: string): string | undefined {
  for (let current = resolve(folder); ; current = dirname(current)) {
    const file = join(current, "node_modules", name, "package.json");
    if (existsSync(file)) return textAt(readManifest(file), "version");
    if (dirname(current) === current) return undefined;
  }
}

function declaredRange(name: string, folder: string): string | undefined {
  const manifest = readManifest(join(folder, "package.json"));
  const groups = ["dependencies", "devDependencies", "optionalDependencies"];
  return groups.map((group) => textAt(manifest, group, name)).find((range) => range !== undefined);
}

/** Whether a version lies in a range as kit's package.json has them: one version, or a caret. */
export function satisfies(version: string, range: string): boolean {
  if (!range.startsWith("^")) return version === range;
  const [actual, least] = [toNumbers(version), toNumbers(range.slice(1))];
  if (actual === undefined || least === undefined) return false;
  const fixed = least.findIndex((number) => number !== 0);
  // ^0.216.0 stays below 0.217.0: the first number that is not zero may not change.
  return (
    actual.slice(0, fixed + 1).every((number, index) => number === least[index]) &&
    compare(actual, least) >= 0
  );
}

/** Also for what is not a released version: a preview of a newer one is newer. */
function isNewer(version: string, other: string): boolean {
  const [one, two] = [version, other].map((text) => toNumbers(text.replace(/[-+].*$/, "")));
  return one !== undefined && two !== undefined && compare(one, two) > 0;
}

function toNumbers(version: string): readonly number[] | undefined {
  return /^\d+\.\d+\.\d+$/.test(version) ? version.split(".").map(Number) : undefined;
}

function compare(first: readonly number[], second: readonly number[]): number {
  const index = first.findIndex((number, position) => number !== second[position]);
  return index === -1 ? 0 : (first[index] ?? 0) - (second[index] ?? 0);
}

function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  let current = value;
  for (const key of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = Reflect.get(current, key);
  }
  return typeof current === "string" ? current : undefined;
}

function tooNew({ name, range, tested }: Peer, version: string): KitError<ErrorCode> {
  return new KitError({
    code: "conflict",
    message: `The project has ${name} ${version}, and this kit takes ${range}; nothing was changed.`,
    hint: `If nothing else needs the newer one, install ${name}@${tested} yourself.`,
  });
}

function fromElsewhere(name: string, declared: string): KitError<ErrorCode> {
  return new KitError({
    code: "conflict",
    message: `package.json takes ${name} from ${declared}, which is not installed; nothing was changed.`,
    hint: "Install what package.json asks for, then try again.",
  });
}
