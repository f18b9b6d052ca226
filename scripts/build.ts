/**
 * Builds `dist/` from `src/`, unless it was already built from the same inputs. The compiler writes the declarations,
 * with the comments on the fields of schemas; rolldown bundles the code. Entries and the modules that run as processes keep their paths. Shared
 * code is in `dist/chunks/`, so that a command opens a few files instead of hundreds, and there is one copy of
 * every class. The console, a page for browsers, goes into `dist/console/`.
 *
 * `npm start` runs this script each time, so an unnecessary build must cost no more than a stat per source.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { filesOfModules, startedModules } from "../src/base/own-package.ts";
import { buildConsole } from "./build-console.ts";
import { readEntries } from "./entries.ts";
import { writeFieldComments } from "./field-comments.ts";
import { listFiles, repositoryRoot } from "./files.ts";

/** Sources that are not built. `src/testing` contains a public entry next to modules for tests. */
const isForTests = /[.](test|suite)[.]ts$|[/\\]src[/\\].+[/\\]testing[/\\]/;
const stampName = ".built-from";
if (import.meta.main) {
  try {
    const { built, durationMs } = await build({
      onBuild: () => console.error("Building dist/. This takes some seconds, on a busy machine minutes …"),
    });
    if (built) console.error(`Built dist/ in ${Math.round(durationMs)} ms.`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

export interface BuildOptions {
  /** `false` skips the declarations and type errors, which take most of the time, for tests that run code. Default: true. */
  readonly declarations?: boolean | undefined;
  /** Called before the work begins, if there is any. */
  readonly onBuild?: (() => void) | undefined;
}

/** Builds if needed. Throws the compiler's output if the sources do not compile. */
export async function build({ declarations = true, onBuild }: BuildOptions = {}): Promise<{
  built: boolean;
  durationMs: number;
}> {
  const started = performance.now();
  const fingerprint = await fingerprintInputs();
  const stamp = declarations ? fingerprint : `${fingerprint} without declarations`;
  const dist = join(repositoryRoot, "dist");
  if ([fingerprint, stamp].includes(await readStamp(dist)))
    return { built: false, durationMs: performance.now() - started };

  onBuild?.();
  // Both write next to `dist`, so that a process that runs from it never sees half a build.
  const fresh = `${dist}.${process.pid}`;
  try {
    await Promise.all([
      declarations ? declare(fresh) : undefined,
      bundle(fresh),
      buildConsole(join(fresh, "console")),
      ...filesOfModules.map((path) => copy(path, fresh)),
    ]);
    await writeFile(join(fresh, stampName), stamp);
    await rm(dist, { recursive: true, force: true });
    await rename(fresh, dist).catch(async (error: unknown) => {
      // Another build can have put the same result in place since.
      if ((await readStamp(dist)) !== stamp) throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return { built: true, durationMs: performance.now() - started };
}

async function readStamp(folder: string): Promise<string> {
  return readFile(join(folder, stampName), "utf8").catch(() => "");
}

async function fingerprintInputs(): Promise<string> {
  const folders = await Promise.all(
    ["src", "console/src", "console/public"].map((folder) => listFiles(join(repositoryRoot, folder))),
  );
  const sources = folders.flat().filter((path) => !isForTests.test(path));
  const settings = [
    "tsconfig.json",
    "tsconfig.build.json",
    "package.json",
    "package-lock.json",
    "scripts/build.ts",
    "scripts/build-console.ts",
    "console/index.html",
    "console/package.json",
    "console/vite.config.ts",
    "scripts/field-comments.ts",
  ];
  const hash = createHash("sha256");
  for (const path of [...sources, ...settings.map((name) => join(repositoryRoot, name))]) {
    const { mtimeMs, size } = await stat(path);
    hash.update(`${path}\0${mtimeMs}\0${size}\n`);
  }
  return hash.digest("hex");
}

async function copy(path: string, outDir: string): Promise<void> {
  await mkdir(dirname(join(outDir, path)), { recursive: true });
  await copyFile(join(repositoryRoot, "src", path), join(outDir, path));
}

async function declare(outDir: string): Promise<void> {
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  const args = [tsc, "-p", "tsconfig.build.json", "--outDir", outDir];
  try {
    await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot });
  } catch (error) {
    const output = error instanceof Error && "stdout" in error ? String(error.stdout) : "";
    throw new Error(`The sources do not compile.\n${output}`, { cause: error });
  }
  await writeFieldComments(outDir);
}

async function bundle(outDir: string): Promise<void> {
  const published = (await readEntries()).map(({ code }) =>
    relative(join(repositoryRoot, "dist"), code).split(sep).join("/").replace(/\.js$/, ""),
  );
  const bundler = await rolldown({
    cwd: repositoryRoot,
    input: Object.fromEntries([...published, ...startedModules].map((path) => [path, `src/${path}.ts`])),
    platform: "node",
    transform: { target: "es2024" },
    // Packages are not bundled: npm installs them once for kit and the projects that use them. Every command reads the
    // configuration, so the small schema library is bundled. The helper belongs to rolldown itself.
    external: (specifier) =>
      specifier !== "zod/mini" && !/^(\.|\/|[A-Za-z]:|src\/|@oxc-project\/runtime\/)/.test(specifier),
    checks: { circularDependency: true },
    onLog(level, log, handle) {
      const isOfPackage = log.code === "CIRCULAR_DEPENDENCY" && log.message.includes("node_modules");
      if (!isOfPackage) handle(level, log);
    },
  });
  try {
    await bundler.write({
      dir: outDir,
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name]-[hash].js",
    });
  } finally {
    await bundler.close();
  }
}
