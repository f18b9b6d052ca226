import { createHash } from "node:crypto";
import { isBuiltin } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "rolldown";
import { ownModule } from "../base/own-package.ts";
import type { Application } from "./application.ts";
import { placeInOutput } from "./bundle-code.ts";
import { kitFolder } from "./bundle-kit.ts";
import { type Bundler, loadBundler, type OutputFiles } from "./bundler.ts";
import { languageOf, withPlace } from "./code-references.ts";
import { withRequire } from "./created-require.ts";

/** The path under which kit finds its own files in the memory of a Durable Object. */
const kitCode = "/tmp/kit-code";

/** The folder of kit's own modules, which ends with a separator. */
const kitTop = fileURLToPath(new URL(".", ownModule("index")));

/**
 * Packages that kit imports for what a worker never does, by name: they would take more than a quarter of the free
 * plan. The build refuses the settings that use them. A project that imports one itself gets it.
 */
const unused: ReadonlySet<string> = new Set(["@restatedev/restate-sdk"]);

/**
 * An application as one module for workerd: the project's code, kit and all packages, with the files that are read
 * as data. The project's code runs when the application is opened, after its files are in place.
 */
export async function bundleWorker(app: Application): Promise<string> {
  const bundler = await loadBundler();
  const bundle = await bundler.rolldown({
    cwd: app.root,
    input: { worker: "kit:worker" },
    platform: "node",
    transform: { target: "es2024" },
    resolve: { conditionNames: ["workerd", "worker", "node", "import", "module", "default"] },
    plugins: [workerPlugin(app, bundler)],
    logLevel: "silent",
    tsconfig: false,
    experimental: { attachDebugInfo: "none" },
  });
  try {
    const { output } = await bundle.generate({
      format: "esm",
      codeSplitting: false,
      entryFileNames: "worker.js",
      comments: { annotation: true, jsdoc: false, legal: true },
    });
    // The bundler's `require` for builtin modules needs the module's path as well.
    return output[0].code.replaceAll(
      "createRequire(import.meta.url)",
      `createRequire("file://${kitCode}/worker.js")`,
    );
  } finally {
    await bundle.close();
  }
}

/** The folder of the project's files in the memory of a Durable Object. */
function folderOf({ name }: Application): string {
  return `/tmp/${name}`;
}

function workerPlugin(app: Application, bundler: Bundler): Plugin {
  const virtual = virtualModules(app);
  return {
    name: "kit-worker",
    async resolveId(source, importer) {
      if (source.startsWith("kit:")) return `\0${source}`;
      if (isBuiltin(source) || source.startsWith("cloudflare:"))
        return { id: source.replace(/^(?!node:|cloudflare:)/, "node:"), external: true };
      const entry = /^kit(?:\/(.+))?$/.exec(source);
      if (entry !== null)
        return fileURLToPath(ownModule(`${entry[1] === undefined ? "" : `${entry[1]}/`}index`));
      if (isUnused(source, importer)) return `\0unused:${source}`;
      const from = importer?.startsWith("\0") === true ? undefined : importer;
      const found = await this.resolve(source, from, { skipSelf: true });
      // kit looks for its optional packages when it uses them, and says how to install what is missing.
      return found ?? (/^[^./#]/.test(source) ? `\0missing:${source}` : null);
    },
    load(id) {
      const absent = /^\0(missing|unused):(.+)$/.exec(id);
      if (absent !== null) return absentModule(absent[2] ?? "", absent[1] === "unused");
      return virtual.get(id.slice(1));
    },
    transform(code, id) {
      const file = id.replace(/[?#].*$/, "");
      if (id.startsWith("\0") || !/\.[cm]?[jt]sx?$/.test(file)) return null;
      // workerd gives modules no path.
      const path = placeOf(file, app);
      const place = {
        url: JSON.stringify(new URL(`file://${path.split("/").map(encodeURIComponent).join("/")}`).href),
        filename: JSON.stringify(path),
        dirname: JSON.stringify(dirname(path)),
      };
      const lang = languageOf(file);
      const known = withRequire(bundler.parseAst, code, lang);
      return withPlace(bundler.parseAst, known ?? code, { lang, place }) ?? known ?? null;
    },
  };
}

function virtualModules(app: Application): ReadonlyMap<string, string> {
  const { files, modules } = app.snapshot;
  const pages: OutputFiles = new Map();
  const ofConsole = `${kitFolder}/dist/console/`;
  for (const [path, bytes] of app.files)
    if (path.startsWith(ofConsole) && !path.endsWith(".gz")) pages.set(path.slice(ofConsole.length), bytes);
  const hash = createHash("sha256");
  for (const [path, bytes] of [...files].sort()) hash.update(`${path}\0${bytes.byteLength}\0`).update(bytes);
  const imports = modules.map(
    (path) => `${JSON.stringify(path)}: () => import(${JSON.stringify(join(app.root, path))}),`,
  );
  return new Map([
    [
      "kit:worker",
      `import { createWorker } from "kit/cloudflare";
const { Kit, worker } = createWorker({
  version: ${JSON.stringify(hash.digest("base64url"))},
  folder: ${JSON.stringify(folderOf(app))},
  load: () => import("kit:modules"),
  files: async () => (await import("kit:files")).files,
  console: { folder: "${kitCode}/dist/console", files: async () => (await import("kit:console")).files },
});
export { Kit, worker as default };
`,
    ],
    [
      "kit:modules",
      `export const name = ${JSON.stringify(app.name)};\nexport const modules = {\n${imports.join("\n")}\n};\n`,
    ],
    ["kit:files", filesModule(files)],
    ["kit:console", filesModule(pages)],
  ]);
}

/** Files as a module: text unchanged, other bytes in base64. */
function filesModule(files: OutputFiles): string {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const entries = [...files]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, bytes]) => {
      let value: string;
      try {
        value = JSON.stringify(decoder.decode(bytes));
      } catch {
        value = `Buffer.from("${Buffer.from(bytes).toString("base64")}", "base64")`;
      }
      return `[${JSON.stringify(path)}]: ${value},`;
    });
  return `export const files = {\n${entries.join("\n")}\n};\n`;
}

function isUnused(source: string, importer: string | undefined): boolean {
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(source)?.[0];
  return name !== undefined && unused.has(name) && importer?.startsWith(kitTop) === true;
}

function absentModule(name: string, isLeftOut: boolean): string {
  const reason = isLeftOut
    ? "kit does not use it on Workers"
    : "it was not installed when the worker was built";
  const message = JSON.stringify(`Cannot find package '${name}': ${reason}.`);
  return `throw Object.assign(new Error(${message}), { code: "ERR_MODULE_NOT_FOUND" });\nexport default undefined;\n`;
}

/** The path that a module gets as its own: next to the files that it reads. */
function placeOf(file: string, app: Application): string {
  if (file.startsWith(kitTop))
    return `${kitCode}/dist/${relative(kitTop, file).split(sep).join("/").replace(/\.ts$/, ".js")}`;
  return `${folderOf(app)}/${placeInOutput(relative(app.root, file).split(sep).join("/"))}`;
}
