import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** `npm run test:targets` installs them. */
const vendors = fileURLToPath(new URL("../../vendors/node_modules", import.meta.url));

export const hasNetlify = existsSync(join(vendors, "@netlify/zip-it-and-ship-it"));

/** Netlify's bundler's description of a function: its archive, and the folder into which it is unpacked. */
export interface NetlifyFunction {
  readonly name: string;
  readonly path: string;
  readonly folder: string;
}

/** Packs the functions of an output with Netlify's own bundler, by the settings of netlify.toml, and unpacks them. */
export async function makeNetlifyArchives(
  root: string,
  work: string,
): Promise<{ readonly publish: string; readonly functions: readonly NetlifyFunction[] }> {
  const { resolveConfig } = await import(join(vendors, "@netlify/config/lib/index.js"));
  const { zipFunctions } = await import(join(vendors, "@netlify/zip-it-and-ship-it/dist/main.js"));
  const { config: settings } = await resolveConfig({
    repositoryRoot: root,
    cwd: root,
    mode: "cli",
    offline: true,
    buffer: true,
  });
  const rules = settings.functions["*"];
  const zipped: readonly Omit<NetlifyFunction, "folder">[] = await zipFunctions(
    settings.functionsDirectory,
    join(work, "archives"),
    {
      basePath: root,
      config: {
        "*": {
          nodeBundler: rules.node_bundler,
          includedFiles: rules.included_files,
          includedFilesBasePath: root,
        },
      },
      featureFlags: {},
    },
  );
  const functions = await Promise.all(
    zipped.map(async (one) => {
      const folder = join(work, "unpacked", one.name);
      await mkdir(folder, { recursive: true });
      await promisify(execFile)("unzip", ["-q", one.path, "-d", folder]);
      return { ...one, folder };
    }),
  );
  return { publish: settings.build.publish, functions };
}
