/**
 * Checks the documentation. Every link inside the repository must lead to a file and a heading that
 * exist. Every `ts` fence of README.md, docs/ and of an `@example` in src/ must compile against the sources of the
 * entries it imports, and public functions and classes must have such an example. `tests/docs.campaign.test.ts` runs the command lines of the pages.
 */
import { execFile } from "node:child_process";
import { access, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { readEntries } from "./entries.ts";
import { listFiles, repositoryRoot } from "./files.ts";
import { type MarkdownPage, readMarkdownPage } from "./markdown-page.ts";
import { faultsOfPublicNames } from "./public-names.ts";

const fenceSettings = {
  extends: "../examples/tsconfig.json",
  compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
  include: ["*.ts"],
};

/** The `kit.types.ts` of the project in the pages' examples. */
const sampleTypes = `export declare const agents: { readonly reviewer: object };
export declare const workflows: {
  readonly release: { readonly run: (context: unknown) => Promise<{ readonly published: boolean }> };
};
`;

const pages = new Map<string, MarkdownPage>();
for (const file of await listMarkdownFiles()) pages.set(file, await readMarkdownPage(file));
const guides = [...pages].filter(([file]) => /^(README|docs\/.*)\.md$/.test(toRelative(file)));

const problems = [...(await checkLinks()), ...(await checkPublicNames()), ...(await checkFences())];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${pages.size} pages: links and ts fences are right.`);

async function listMarkdownFiles(): Promise<readonly string[]> {
  const folders = await Promise.all(
    ["docs", "decisions"].map((name) => listFiles(join(repositoryRoot, name))),
  );
  const files = ["README", "AGENTS", "CONTRIBUTING", "CHANGELOG", "CLAUDE"].map((name) => `${name}.md`);
  return [...files.map((name) => join(repositoryRoot, name)), ...folders.flat()].filter((file) =>
    file.endsWith(".md"),
  );
}

async function checkLinks(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [file, page] of pages) {
    for (const link of page.links) {
      const reason = await reasonAgainst(file, link.target);
      if (reason !== undefined) found.push(`${toRelative(file)}:${link.line}: ${link.target} ${reason}`);
    }
  }
  return found;
}

async function reasonAgainst(file: string, target: string): Promise<string | undefined> {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
  const [path = "", anchor] = target.split("#");
  const destination = path === "" ? file : resolve(dirname(file), decodeURIComponent(path));
  const exists = await access(destination).then(
    () => true,
    () => false,
  );
  if (!exists) return "does not exist.";
  if (anchor === undefined) return undefined;
  const page = pages.get(destination) ?? (await readMarkdownPage(destination));
  return page.anchors.has(anchor) ? undefined : "is not a heading of that page.";
}

async function checkPublicNames(): Promise<readonly string[]> {
  const sources = (await readEntries()).map(({ types }) =>
    types.replace(join(repositoryRoot, "dist"), join(repositoryRoot, "src")).replace(/\.d\.ts$/, ".ts"),
  );
  return faultsOfPublicNames(sources).map(({ file, fault }) => `${toRelative(file)}: ${fault}`);
}

interface Fence {
  readonly file: string;
  readonly line: number;
  readonly code: string;
}

/** Returns the `ts` fences of all guides, and those in doc comments of sources. */
async function listFences(): Promise<readonly Fence[]> {
  const fences = guides.flatMap(([file, page]) =>
    page.fences.flatMap(({ language, line, code }) => (language === "ts" ? [{ file, line, code }] : [])),
  );
  const sources = (await listFiles(join(repositoryRoot, "src"))).filter((file) =>
    /(?<!\.(test|suite|campaign))\.ts$/.test(file),
  );
  for (const file of sources) fences.push(...examplesIn(file, await readFile(file, "utf8")));
  return fences;
}

/** Returns the code after `@example` tags in the doc comments of a source, with or without a fence, without the stars. */
function examplesIn(file: string, text: string): readonly Fence[] {
  const found: Fence[] = [];
  let example: { readonly line: number; readonly code: string[] } | undefined;
  const end = (): void => {
    const code = example?.code.join("\n") ?? "";
    if (example !== undefined && code.trim() !== "") found.push({ file, line: example.line, code });
    example = undefined;
  };
  for (const [index, line] of text.split("\n").entries()) {
    const content = /^\s*\* ?(.*)$/.exec(line)?.[1];
    if (content === undefined || content === "/" || content.startsWith("@")) {
      end();
      if (content === "@example") example = { line: index + 2, code: [] };
    } else if (example !== undefined) {
      // An empty line in place of the fence keeps the line numbers of the source.
      example.code.push(content.startsWith("```") ? "" : content);
    }
  }
  return found;
}

/** Compiles every fence as a separate module, in a folder where the packages resolve. */
async function checkFences(): Promise<readonly string[]> {
  const folder = join(repositoryRoot, ".docs-check");
  const locations = new Map<string, string>();
  try {
    await mkdir(folder, { recursive: true });
    for (const { file, line, code } of await listFences()) {
      const name = `${toRelative(file).replace(/\W/g, "-")}-${line}.ts`;
      locations.set(name, `${toRelative(file)}:${line}`);
      await writeFile(join(folder, name), `${code}\nexport {};\n`);
    }
    await writeFile(join(folder, "kit.types.ts"), sampleTypes);
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(fenceSettings));
    return await compile(folder, locations);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function compile(folder: string, locations: ReadonlyMap<string, string>): Promise<readonly string[]> {
  if (locations.size === 0) return [];
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  const output = await promisify(execFile)(process.execPath, [tsc, "-p", folder], { cwd: folder }).then(
    () => "",
    (error: { stdout?: string }) => error.stdout ?? String(error),
  );
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, name = "", row = "1", message = line] = /^([^(]+)\((\d+),\d+\): (.*)$/.exec(line) ?? [];
      const [path, start] = locations.get(name)?.split(":") ?? [];
      return path === undefined ? line : `${path}:${Number(start) + Number(row) - 1}: ${message}`;
    });
}

function toRelative(file: string): string {
  return relative(repositoryRoot, file);
}
