/** Builds the console into a folder, compresses its files, and fails if a first visit loads more than its budget. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { build } from "vite";
import { repositoryRoot } from "./files.ts";

/** The most script that the page loads before it shows anything, compressed, in kB. */
const firstLoadBudget = 250;

export async function buildConsole(outDir: string): Promise<void> {
  // Vite chooses React's build by the environment, which says `test` under Vitest.
  const { NODE_ENV } = process.env;
  process.env.NODE_ENV = "production";
  try {
    await build({
      configFile: join(repositoryRoot, "console/vite.config.ts"),
      build: { outDir, emptyOutDir: true },
      logLevel: "warn",
    });
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
  const sizes = await compressFiles(join(outDir, "assets"));
  const page = await readFile(join(outDir, "index.html"), "utf8");
  const loaded = [...page.matchAll(/(?:src|href)="\.\/assets\/([^"]+\.js)"/g)].map(([, name = ""]) => name);
  const kilobytes = Math.ceil(loaded.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0) / 1000);
  if (kilobytes > firstLoadBudget) {
    throw new Error(
      `The console loads ${kilobytes} kB of script at first; its budget is ${firstLoadBudget} kB.`,
    );
  }
}

/** Writes `name.gz` next to each text file and returns the compressed sizes by name. */
async function compressFiles(folder: string): Promise<ReadonlyMap<string, number>> {
  const names = (await readdir(folder)).filter((name) => /\.(?:js|css|svg)$/.test(name));
  const sizes = await Promise.all(
    names.map(async (name) => {
      const compressed = await promisify(gzip)(await readFile(join(folder, name)), { level: 9 });
      await writeFile(join(folder, `${name}.gz`), compressed);
      return [name, compressed.length] as const;
    }),
  );
  return new Map(sizes);
}
