import { isBuiltin } from "node:module";
import { basename, dirname, extname, join, posix, relative, sep } from "node:path";
import type { Plugin, RolldownOutput } from "rolldown";
import { KitError, type KitErrorInit } from "../base/kit-error.ts";
import { thrownText } from "../base/thrown.ts";
import { type Bundler, type OutputFiles, textFile } from "./bundler.ts";
import { findReferences, languageOf, withPlace } from "./code-references.ts";
import { withRequire } from "./created-require.ts";
import { type FoundPackage, packageOfFile } from "./packages.ts";

export interface CodeBundle {
  readonly files: OutputFiles;
  /** Packages that are not bundled, with the reason, by name. */
  readonly outside: ReadonlyMap<string, FoundPackage & { readonly reason: string }>;
  /** Paths that the code names and reads while it runs, from the root of the project; `../` for packages outside of it. */
  readonly reads: readonly string[];
  /** Names of variables of the environment that the project's own code reads. */
  readonly variables: readonly string[];
  readonly warnings: readonly string[];
  /** Whether the code imports `kit/testing`. */
  readonly usesTesting: boolean;
}

export interface CodeOptions {
  /** The project's folder, with links resolved. */
  readonly root: string;
  /** Project-relative. */
  readonly entries: readonly string[];
  /** kit's optional packages: never bundled. */
  readonly optional: readonly string[];
}

/** The function of an output that gives the URL of a path in it. */
const placeFunction = "kitPlaceOf";

/** The most times that bundling starts over because a package turned out to use the path of its own file. */
const maxRounds = 20;

/**
 * Bundles the project's own modules, each at its path, with their packages in `chunks/`. Packages with native code,
 * and packages that use the path of their own files, are not bundled, because they need their files around them.
 * Throws `invalid_request` for a package that is not installed and for code that does not parse.
 */
export async function bundleCode(bundler: Bundler, options: CodeOptions): Promise<CodeBundle> {
  const located = new Map<string, string>();
  for (let round = 0; round < maxRounds; round++) {
    const before = located.size;
    const bundle = await new CodeRound(bundler, options, located).run();
    if (located.size === before) return bundle;
  }
  throw new KitError({ code: "internal_error", message: "The packages of the project could not be sorted." });
}

class CodeRound {
  readonly #bundler: Bundler;
  readonly #options: CodeOptions;
  /** Packages that use the path of their own files, with the reason; grows while modules are read. */
  readonly #located: Map<string, string>;
  readonly #outside = new Map<string, FoundPackage & { readonly reason: string }>();
  readonly #own = new Map<string, string>();
  readonly #reads = new Set<string>();
  readonly #variables = new Set<string>();
  readonly #warnings: string[] = [];
  #usesTesting = false;
  /** The first error of a hook, kept here because the bundler replaces the fields of errors. */
  #failure: KitError | undefined;

  constructor(bundler: Bundler, options: CodeOptions, located: Map<string, string>) {
    this.#bundler = bundler;
    this.#options = options;
    this.#located = located;
  }

  async run(): Promise<CodeBundle> {
    const { root, entries } = this.#options;
    const input = Object.fromEntries(entries.map((path) => [path, join(root, path)]));
    const bundle = await this.#bundler.rolldown({
      cwd: root,
      input,
      platform: "node",
      transform: { target: "es2024" },
      preserveEntrySignatures: "strict",
      plugins: [this.#plugin()],
      logLevel: "silent",
      experimental: { attachDebugInfo: "none" },
      // Node's resolution settings, since Node runs the same files without a build.
      tsconfig: false,
    });
    try {
      const { output } = await bundle.generate({
        entryFileNames: ({ facadeModuleId, name }) => this.#own.get(facadeModuleId ?? "") ?? `${name}.js`,
        chunkFileNames: "chunks/[name]-[hash].js",
        comments: { annotation: true, jsdoc: false, legal: true },
      });
      return this.#toBundle(output);
    } catch (error) {
      throw this.#failure ?? toBuildError(error, root);
    } finally {
      await bundle.close();
    }
  }

  #toBundle(output: RolldownOutput["output"]): CodeBundle {
    const files: OutputFiles = new Map();
    for (const item of output) if (item.type === "chunk") files.set(item.fileName, textFile(item.code));
    return {
      files,
      outside: this.#outside,
      reads: [...this.#reads].sort(),
      variables: [...this.#variables].sort(),
      // Modules are read side by side.
      warnings: this.#warnings.toSorted(),
      usesTesting: this.#usesTesting,
    };
  }

  #plugin(): Plugin {
    const round = this;
    return {
      name: "kit",
      async resolveId(source, importer, { isEntry }) {
        if (isEntry || isBuiltin(source)) return isEntry ? null : { id: source, external: true };
        const entry = /^kit(?:\/(.+))?$/.exec(source);
        if (entry !== null) return round.#kitEntry(entry[1]);
        const optional = round.#options.optional.find(
          (name) => source === name || source.startsWith(`${name}/`),
        );
        const found = await this.resolve(source, importer, { skipSelf: true });
        const own = found === null ? undefined : packageOfFile(found.id);
        const stays =
          optional !== undefined
            ? "it is optional for kit"
            : (own?.native ?? round.#located.get(own?.folder ?? ""));
        if (own !== undefined && stays !== undefined && /^[^./]/.test(source)) {
          round.#stays(own, stays);
          return { id: source, external: true };
        }
        if (found === null && /^[^./#]/.test(source))
          round.#fail(notInstalled(source, importer, round.#options.root));
        return found;
      },
      transform(code, id) {
        const known = round.#required(code, id);
        round.#read(known, id, (chunk) => this.emitFile(chunk));
        return round.#placed(known, id) ?? (known === code ? null : known);
      },
      renderChunk(code, { fileName }) {
        if (!code.includes(placeFunction)) return null;
        const top = "../".repeat(fileName.split("/").length - 1) || "./";
        return `const ${placeFunction} = (path) => new URL("${top}" + path, import.meta.url).href;\n${code}`;
      },
    };
  }

  /** The code of a module of the project, whose `require` the bundler follows. */
  #required(code: string, id: string): string {
    if (!isCode(id) || packageOfFile(id) !== undefined) return code;
    return withRequire(this.#bundler.parseAst, code, languageOf(id)) ?? code;
  }

  /** The code of a module of the project, which finds its files wherever the bundler puts it. */
  #placed(code: string, id: string): string | null {
    const path = this.#own.get(id);
    if (path === undefined) return null;
    const url = (of: string): string =>
      `${placeFunction}(${JSON.stringify(of.split("/").map(encodeURIComponent).join("/"))})`;
    const toPath = (of: string): string => `process.getBuiltinModule("node:url").fileURLToPath(${url(of)})`;
    const place = { url: url(path), filename: toPath(path), dirname: toPath(dirname(path)) };
    return withPlace(this.#bundler.parseAst, code, { lang: languageOf(id), place }) ?? null;
  }

  /** The path of a module from the root of the project. */
  #pathOf(id: string): string {
    return relative(this.#options.root, id.replace(/[?#].*$/, ""))
      .split(sep)
      .join("/");
  }

  #kitEntry(name: string | undefined): { readonly id: string; readonly external: true } {
    if (name === "testing") this.#usesTesting = true;
    return { id: name === undefined ? "#kit" : `#kit/${name}`, external: true };
  }

  #stays(own: FoundPackage, reason: string): void {
    const other = this.#outside.get(own.name);
    if (other !== undefined && other.version !== own.version) {
      this.#fail({
        code: "conflict",
        message: `The code uses ${own.name} ${other.version} and ${own.version}, and only one can be listed in a package.json.`,
        hint: `Make the project use one version: npm ls ${own.name} says who asks for which.`,
      });
    }
    this.#outside.set(own.name, { ...own, reason });
  }

  #fail(init: KitErrorInit): never {
    this.#failure = new KitError(init);
    throw new Error(init.message);
  }

  /** Records what a module reads at run time. */
  #read(
    code: string,
    id: string,
    emit: (chunk: { type: "chunk"; id: string; fileName: string }) => void,
  ): void {
    const file = id.replace(/[?#].*$/, "");
    if (!isCode(id)) return;
    const own = packageOfFile(file);
    if (own !== undefined) {
      if (readsOwnLocation.test(code)) this.#located.set(own.folder, "its code asks where it lies");
      return;
    }
    if (this.#own.has(id)) return;
    const path = this.#pathOf(id);
    this.#own.set(id, outputPath(path));
    if (!this.#options.entries.includes(path)) emit({ type: "chunk", id, fileName: outputPath(path) });
    const { files, variables, unclear, dynamicImports } = findReferences(
      this.#bundler.parseAst,
      code,
      languageOf(file),
    );
    for (const bundled of files) {
      const read = posix.join(bundled.from === "module" ? dirname(path) : ".", bundled.path);
      if (foldersAbove(read) === foldersAbove(path)) this.#reads.add(read);
      else
        this.#warnings.push(
          `${path} reads ${bundled.path}, which lies outside of the project: the output lacks it.`,
        );
    }
    for (const name of variables) this.#variables.add(name);
    for (const line of unclear)
      this.#warnings.push(
        `${path}:${line} uses the path of its own file, so kit cannot know which files it reads there: list them in build.include.`,
      );
    for (const line of dynamicImports)
      this.#warnings.push(
        `${path}:${line} imports a module whose name is made while it runs: the output has it only if other code imports it, too.`,
      );
  }
}

/** Whether the bundler read it from a file of code; its own helpers have none. */
function isCode(id: string): boolean {
  return !id.startsWith("\0") && /\.[cm]?[jt]sx?$/.test(id.replace(/[?#].*$/, ""));
}

/** How many folders above the project a path begins. */
function foldersAbove(path: string): number {
  return (/^(?:\.\.\/)+/.exec(path)?.[0].length ?? 0) / 3;
}

/**
 * The path of a project's file in an output: its own path, or for a package of the same repository outside of the project, such as
 * `../../libs/money/unit.txt`, `above/2/libs/money/unit.txt`.
 */
export function placeInOutput(path: string): string {
  const above = foldersAbove(path);
  return above === 0 ? path : `above/${above}/${path.slice(above * 3)}`;
}

/** Code of a package that finds its own files. */
const readsOwnLocation = /\bimport\.meta\.(?:url|dirname|filename|resolve)\b|\b__dirname\b|\b__filename\b/;

/** The path of a module of the project in an output. */
export function outputPath(modulePath: string): string {
  const path = placeInOutput(modulePath);
  const extension = extname(path);
  const plain = { ".mts": ".mjs", ".cts": ".cjs", ".mjs": ".mjs" }[extension] ?? ".js";
  return join(dirname(path), `${basename(path, extension)}${plain}`)
    .split(sep)
    .join("/");
}

function notInstalled(source: string, importer: string | undefined, root: string): KitErrorInit {
  const from = importer === undefined ? "The project" : relative(root, importer).split(sep).join("/");
  return {
    code: "invalid_request",
    message: `${from} imports ${source}, which is not installed.`,
    hint: `Install it: npm install ${source
      .split("/")
      .slice(0, source.startsWith("@") ? 2 : 1)
      .join("/")}`,
  };
}

/** rolldown's errors contain absolute paths and a plugin's stack: neither helps a user. */
function toBuildError(error: unknown, root: string): KitError {
  const text = thrownText(error);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the bundler colours its messages.
  const uncoloured = text.replace(/\u001b\[[0-9;]*m/g, "");
  const plain = uncoloured
    .replace(/^\s+at .*:\d+:\d+\)?(\n|$)/gm, "")
    .replaceAll(`${root}${sep}`, "")
    .trimEnd();
  return new KitError({
    code: "invalid_request",
    message: `The code cannot be built.\n${plain}`,
    cause: error,
  });
}
