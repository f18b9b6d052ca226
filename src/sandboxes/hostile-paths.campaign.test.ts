import { existsSync } from "node:fs";
import { mkdtemp, readFile, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type FixtureEntry, isForThisSystem } from "../../tests/security/corpus.ts";
import { inBase, layOut, type PathCase, readPathCases, snapshot } from "../../tests/security/path-cases.ts";
import { KitError } from "../base/kit-error.ts";
import { readFileInside, writeFileInside } from "../project/features/write-file.ts";
import { openProject } from "../project/open-project.ts";
import type { ConversionFormat } from "../protocol/guideline.ts";
import { isCampaign } from "../testing/campaign.suite.ts";
import { processorMs } from "../testing/processor-time.ts";
import type { Sandbox } from "./contract.ts";
import { workspaceName } from "./host/workspace-name.ts";
import { local } from "./local/local-sandbox.ts";
import { virtual } from "./virtual/virtual-sandbox.ts";

const { head, cases } = readPathCases();
const owner = { agent: "tester", instance_id: "1", session: "default" };

/** A workspace between files of others, all in one temporary folder. */
interface Scene {
  readonly base: string;
  /** The workspace's name in it. */
  readonly name: string;
  open(): Promise<Sandbox>;
}

/** Both sandboxes meet the same files; a virtual workspace has another name than "root". */
const subjects: readonly {
  readonly name: string;
  readonly scene: (base: string, root: string | undefined) => Scene;
}[] = [
  {
    name: "local",
    scene: (base, root = "root") => ({
      base,
      name: "root",
      open: () => local({ root: join(base, root) }).open(owner),
    }),
  },
  {
    name: "virtual",
    scene: (base, root) => ({
      base,
      name: workspaceName(owner),
      async open() {
        if (root === undefined) return await virtual({ folder: base }).open(owner);
        // Here it is the way to the workspace that goes over a link.
        await symlink(base, join(base, "sessions", "way"));
        return await virtual({ folder: join(base, "sessions", "way") }).open(owner);
      },
    }),
  },
];

const ofSessions = (op: string): boolean => op === "open_session";
const ofProjects = (op: string): boolean => op === "convert_guideline";
const ofSandboxes = (op: string): boolean => !ofSessions(op) && !ofProjects(op);
/** File operations of kit itself, without a sandbox. */
const ofFiles = (op: string): boolean => /^(?:read|write)_/.test(op);

const tested = new Set<string>();

afterAll(() => expect(cases.map(({ id }) => id).filter((id) => !tested.has(id))).toEqual([]));

function testEach(
  subject: string,
  takes: (op: string) => boolean,
  check: (hostile: PathCase) => Promise<void>,
): void {
  for (const [index, hostile] of cases.filter(({ op }) => takes(op)).entries()) {
    tested.add(hostile.id);
    if (!isCampaign && index % 3 !== 0) continue;
    test.skipIf(!isForThisSystem(hostile))(`${subject} ${hostile.id}: ${hostile.why}`, () => check(hostile));
  }
}

describe("the hostile paths of tests/security/paths.json", () => {
  for (const subject of subjects) {
    testEach(subject.name, ofSandboxes, async (hostile) => {
      await withBase(async (base) => {
        const scene = subject.scene(base, hostile.root);
        const rename = (text: string): string => text.replace(/(^|\/)root(?=-evil|\/|$)/g, `$1${scene.name}`);
        await layOut(base, [...head.fixture, ...(hostile.fixture ?? [])].map(renamed(rename)));
        const sandbox = await scene.open();
        await check(scene, hostile, {
          rename,
          call: () => callSandbox(sandbox, hostile.op, argumentsOf(hostile, base, rename)),
        });
      });
    });
  }

  // safe-writes#2.1
  testEach("files", ofFiles, async (hostile) => {
    await withBase(async (base) => {
      await layOut(base, [...head.fixture, ...(hostile.fixture ?? [])]);
      const { path = "", content } = argumentsOf(hostile, base, (text) => text);
      // A project is opened at its real path. `..` in a path is for a sandbox: no path of kit's own has one.
      const root = await realpath(join(base, hostile.root ?? "root"));
      const isDenied = path.split("/").includes("..");
      const { expect: _, ...denied } = { ...hostile, expected: "deny" as const };
      await check({ base, name: "root" }, isDenied ? denied : hostile, {
        rename: (text) => text,
        async call() {
          if (content !== undefined)
            return await writeFileInside({ root, readOnly: false }, { path, content });
          const bytes = await readFileInside(root, { path });
          return bytes === undefined ? false : new TextDecoder().decode(bytes);
        },
      });
    });
  });

  testEach("virtual", ofSessions, async (hostile) => {
    await withBase(async (base) => {
      await layOut(base, [...head.fixture, ...(hostile.fixture ?? [])]);
      const { id = "" } = hostile.args;
      const isOurs = (path: string): boolean => /^sessions\/(?!victim(\/|$))/.test(path);
      for (const part of ["agent", "instance_id", "session"] as const) {
        const open = async (): Promise<string> => {
          const sandbox = await virtual({ folder: join(base, "sessions") }).open({ ...owner, [part]: id });
          await sandbox.writeFile("private.txt", "KIT-WROTE");
          const workingFolder = (await sandbox.exec({ command: "pwd -P" })).stdout.trim();
          expect(workingFolder.startsWith(join(base, "sessions") + sep)).toBe(true);
          expect(`${workingFolder}/`.startsWith(`${join(base, "sessions", "victim")}/`)).toBe(false);
          return "";
        };
        await check({ base, isOurs }, hostile, { rename: (text) => text, call: open });
      }
    });
  });

  testEach("project", ofProjects, async (hostile) => {
    await withBase(async (base) => {
      const { title = "", format: withName = "" } = hostile.args;
      const format = formats.get(withName);
      if (format === undefined) throw new Error(`No format is called ${withName}.`);
      const source: FixtureEntry = {
        type: "file",
        path: "root/AGENTS.md",
        content: `## ${title}\n\nDo so.\n`,
      };
      await layOut(base, [...head.fixture, source, ...(hostile.fixture ?? [])]);
      await check({ base, name: "root" }, hostile, {
        rename: (text) => text,
        async call() {
          const project = await openProject({ root: join(base, "root"), indexFile: ":memory:" });
          try {
            // A character that a title cannot hold, such as a line break, ends it.
            const found = project.guidelines.list({}).guidelines.find(({ is_sample }) => !is_sample);
            expect(found).toBeDefined();
            return await project.guidelines.convert({
              guideline_id: found?.id ?? "",
              format,
              preview: false,
            });
          } finally {
            await project.close();
          }
        },
      });
    });
  });
});

/** Formats of the corpus, as kit calls them. */
const formats: ReadonlyMap<string, ConversionFormat> = new Map([
  ["steering", "steering"],
  ["claude", "fw_c"],
  ["cursor", "fw_b"],
]);

function renamed(rename: (text: string) => string): (entry: FixtureEntry) => FixtureEntry {
  return (entry) => ({
    ...entry,
    path: rename(entry.path),
    ...("target" in entry ? { target: rename(entry.target) } : {}),
  });
}

function argumentsOf(
  { args }: PathCase,
  base: string,
  rename: (text: string) => string,
): Readonly<Record<string, string>> {
  const given = Object.entries(args).map(([name, value]) => {
    const text = inBase(value, base);
    return [name, name === "path" && text.includes("..") ? rename(text) : text] as const;
  });
  return Object.fromEntries(given);
}

interface Check {
  readonly rename: (text: string) => string;
  readonly call: () => Promise<unknown>;
}

type Place =
  | { readonly base: string; readonly name: string }
  | { readonly base: string; readonly isOurs: (path: string) => boolean };

/** Makes the call of a case, and holds what came of it against the oracles of the corpus. */
async function check(place: Place, hostile: PathCase, { rename, call }: Check): Promise<void> {
  const { base } = place;
  const isOurs =
    "isOurs" in place
      ? place.isOurs
      : (path: string): boolean => path === place.name || path.startsWith(`${place.name}/`);
  const before = await snapshot(base, isOurs);
  const limit = hostile.max_ms ?? 5_000;
  const started = processorMs();
  const outcome = await inTime(call(), limit).then(
    (value) => ({
      ok: value !== false,
      text: typeof value === "string" ? value : JSON.stringify(value ?? null),
    }),
    (error: unknown) => ({ ok: false, text: textOf(error) }),
  );
  expect(processorMs() - started).toBeLessThan(limit);
  expect(await snapshot(base, isOurs)).toEqual(before);
  for (const secret of ["TOP-SECRET", "root:x:0", base, "not ours"])
    expect(outcome.text).not.toContain(secret);
  if (hostile.expected !== "contained") expect(outcome.ok, outcome.text).toBe(hostile.expected === "allow");
  const expected = hostile.expect ?? {};
  if (expected.content !== undefined) expect(outcome.text).toBe(expected.content);
  if (expected.content_if_ok !== undefined && outcome.ok) expect(outcome.text).toBe(expected.content_if_ok);
  for (const text of expected.must_not_contain ?? []) expect(outcome.text).not.toContain(text);
  for (const entry of expected.entries_include ?? []) expect(outcome.text).toContain(entry);
  for (const path of expected.absent ?? []) expect(existsSync(join(base, rename(path)))).toBe(false);
  for (const path of expected.host_absent ?? []) expect(existsSync(path)).toBe(false);
  const [file, content] = expected.file ?? [];
  if (file !== undefined) expect(await readFile(join(base, rename(file)), "utf8")).toBe(content);
}

/** A call that waits for something, such as the other end of a pipe, uses no processor. */
async function inTime(work: Promise<unknown>, ms: number): Promise<unknown> {
  const late = Promise.withResolvers<never>();
  // Ten times as long: the machine may be busy with other things.
  const timer = setTimeout(() => late.reject(new Error("The call did not end.")), ms * 10);
  return await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}

function textOf(error: unknown): string {
  if (!(error instanceof KitError)) return `not ours: ${String(error)}`;
  return `${error.message} ${error.hint ?? ""} ${JSON.stringify(error.meta ?? {})}`;
}

async function callSandbox(
  sandbox: Sandbox,
  op: string,
  args: Readonly<Record<string, string>>,
): Promise<unknown> {
  const { path = "", content = "", pattern = "", include } = args;
  const location = args.path === undefined ? {} : { path };
  switch (op) {
    case "read_file":
      return await sandbox.readFile(path);
    case "read_bytes":
      return new TextDecoder().decode(await sandbox.readBytes(path));
    case "write_file":
      return await sandbox.writeFile(path, content);
    case "write_bytes":
      return await sandbox.writeBytes(path, new TextEncoder().encode(content));
    case "mkdir":
      return await sandbox.mkdir(path);
    case "rm":
      return await sandbox.rm(path);
    case "rm_recursive":
      return await sandbox.rm(path, { recursive: true });
    case "list_files":
      return await sandbox.list(path);
    case "stat":
      return await sandbox.stat(path);
    case "exists":
      return await sandbox.exists(path);
    case "edit_file":
      return await sandbox.edit(path, { old: args.old ?? "", new: args.new ?? "" });
    case "shell_cwd":
      return await sandbox.exec({ command: "ls", cwd: path });
    case "grep":
      return await sandbox.grep({
        pattern,
        ...location,
        ...(include === undefined ? {} : { glob: include }),
      });
    case "glob":
      return await sandbox.glob(pattern, location);
    default:
      throw new Error(`${op} is not a call of a sandbox.`);
  }
}

async function withBase(work: (base: string) => Promise<void>): Promise<void> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "kit-paths-")));
  try {
    await work(base);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}
