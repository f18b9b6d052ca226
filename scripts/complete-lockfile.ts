/**
 * Adds optional platform packages to `package-lock.json`, and to that of `vendors/`, which a registry mirror did not offer
 * when the lockfile was written. `npm ci` refuses a lockfile without them, on every machine.
 *
 * Run it after each change of dependencies: `npm run lockfile`. It only adds entries for platforms.
 * npm allows optional packages without an integrity. To add it, remove such entries and run `npm install
 * --package-lock-only`, then this script: what remains without one, the registry did not offer.
 */
import { readFileSync, writeFileSync } from "node:fs";

interface LockedPackage {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const systems = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const processors = [
  "arm",
  "arm64",
  "ia32",
  "loong64",
  "mips64el",
  "ppc64",
  "riscv64",
  "s390x",
  "wasm32",
  "x64",
];

interface Lockfile {
  packages: Record<string, LockedPackage>;
}

for (const path of ["package-lock.json", "vendors/package-lock.json"]) complete(path);

function complete(path: string): void {
  const file = new URL(`../${path}`, import.meta.url);
  const lock: Lockfile = JSON.parse(readFileSync(file, "utf8"));
  const added: string[] = [];
  for (const [holder, locked] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(locked.optionalDependencies ?? {})) {
      if (isLocked(lock, holder, name)) continue;
      lock.packages[`node_modules/${name}`] = toEntry(name, version, locked.dev === true);
      added.push(name);
    }
  }
  const { "": root, ...rest } = lock.packages;
  const sorted = Object.entries(rest).sort(([left], [right]) => (left < right ? -1 : 1));
  lock.packages = Object.fromEntries([["", root ?? {}], ...sorted]);
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(added.length === 0 ? `${path} is complete.` : `Added to ${path}: ${added.join(", ")}`);
}

/** Whether the lockfile has `name` where Node would find it from `holder`: next to it or in a folder above. */
function isLocked(lock: Lockfile, holder: string, name: string): boolean {
  for (
    let folder = holder;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))
  ) {
    if (lock.packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

function toEntry(name: string, version: string, dev: boolean): LockedPackage {
  const words = name.split(/[-/@_.]/);
  const os = systems.filter((system) => words.includes(system));
  const cpu = processors.filter((processor) => words.includes(processor));
  const libc = words.some((word) => word.startsWith("musl"))
    ? ["musl"]
    : words.includes("gnu")
      ? ["glibc"]
      : [];
  return {
    version: version.replace(/^[~^]/, ""),
    ...(dev ? { dev } : {}),
    optional: true,
    ...(os.length > 0 ? { os } : {}),
    ...(cpu.length > 0 ? { cpu } : {}),
    ...(libc.length > 0 ? { libc } : {}),
  };
}
