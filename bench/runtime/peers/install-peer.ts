import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const peersFolder = join(import.meta.dirname, "../../peers");
const installTimeoutMs = 600_000;

/** Installs packages of a peer from npm if they are missing. Returns the reason if that fails. */
export async function installPeer(
  name: string,
  packages: Readonly<Record<string, string>>,
  parent: string = peersFolder,
): Promise<string | undefined> {
  const folder = join(parent, name);
  const manifest = JSON.stringify(
    { name: `bench-peer-${name}`, private: true, type: "module", dependencies: packages },
    null,
    2,
  );
  const installed = join(folder, ".installed");
  if ((await readFile(installed, "utf8").catch(() => "")) === manifest) return undefined;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), manifest);
  // A specifier is resolved from the importing file, so the peer's folder contains a file that imports it.
  await writeFile(join(folder, "load.mjs"), "export const load = (specifier) => import(specifier);\n");
  try {
    // Install scripts of peers would download and compile files that no measurement needs.
    const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
    await promisify(execFile)("npm", args, { cwd: folder, timeout: installTimeoutMs });
  } catch (error) {
    return reasonOf(error);
  }
  await writeFile(installed, manifest);
  return undefined;
}

/** Imports a package from a peer's folder. */
export async function loadPeer<Module>(name: string, specifier: string): Promise<Module> {
  const file = pathToFileURL(join(peersFolder, name, "load.mjs")).href;
  const { load }: { load: (specifier: string) => Promise<Module> } = await import(file);
  return load(specifier);
}

function reasonOf(error: unknown): string {
  const output = error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
  const line = output.split("\n").find((text) => /error (code|404|notarget)/i.test(text));
  return (line ?? output.split("\n")[0] ?? "").slice(0, 200);
}
