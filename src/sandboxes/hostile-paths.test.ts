import { existsSync } from "node:fs";
import { mkdtemp, readFile, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { openProject } from "../project/open-project.ts";
import {
  baseMark,
  type FixtureEntry,
  layOut,
  loadPathCorpus,
  type PathCase,
  snapshot,
} from "../testing/path-corpus.ts";
import { processorMs } from "../testing/processor-time.ts";
import type { Sandbox } from "./contract.ts";
import { local } from "./local/local-sandbox.ts";
import { virtual } from "./virtual/virtual-sandbox.ts";
import { workspaceName } from "./virtual/workspace-name.ts";

const corpus = loadPathCorpus();
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

describe("the hostile paths of tests/security/paths.json", () => {
  for (const subject of subjects) {
    const cases = corpus.cases.filter(({ op }) => op !== "open_session" && op !== "convert_guideline");
    test.each(cases.map((item) => [`${subject.name} ${item.id}`, item.why, item] as const))(
      "%s: %s",
      async (_id, _why, hostile) => {
        await inBase(async (base) => {
          const scene = subject.scene(base, hostile.root);
          const rename = (text: string): string =>
            text.replace(/(^|\/)root(?=-evil|\/|$)/g, `$1${scene.name}`);
          await layOut(base, [...corpus.fixture, ...(hostile.fixture ?? [])].map(renamed(rename)));
          const sandbox = await scene.open();
          await check(scene, hostile, {
            rename,
            call: () => callSandbox(sandbox, hostile.op, argumentsOf(hostile, base, rename)),
          });
        });
      },
    );
  }

  const sessions = corpus.cases.filter(({ op }) => op === "open_session");
  test.each(sessions.map((item) => [item.id, item.why, item] as const))(
    "virtual %s: %s",
    async (_id, _why, hostile) => {
      await inBase(async (base) => {
        await layOut(base, corpus.fixture);
        const id = hostile.args.id ?? "";
        const isNew = (path: string): boolean => /^sessions\/(?!victim(\/|$))/.test(path);
        for (const part of ["agent", "instance_id", "session"] as const) {
          const before = await snapshot(base, (path) => isNew(path));
          const sandbox = await virtual({ folder: join(base, "sessions") }).open({ ...owner, [part]: id });
          await sandbox.writeFile("private.txt", "KIT-WROTE");
          const place = (await sandbox.exec({ command: "pwd -P" })).stdout.trim();
          expect(place.startsWith(join(base, "sessions") + sep)).toBe(true);
          expect(`${place}/`.startsWith(`${join(base, "sessions", "victim")}/`)).toBe(false);
          expect(await snapshot(base, (path) => isNew(path))).toEqual(before);
        }
      });
    },
  );

  const guidelines = corpus.cases.filter(({ op }) => op === "convert_guideline");
  test.each(guidelines.map((item) => [item.id, item.why, item] as const))(
    "project %s: %s",
    async (_id, _why, hostile) => {
      await inBase(async (base) => {
        const { title = "", format = "" } = hostile.args;
        const source: FixtureEntry = {
          type: "file",
          path: "root/AGENTS.md",
          content: `## ${title}\n\nDo so.\n`,
        };
        await layOut(base, [...corpus.fixture, source, ...(hostile.fixture ?? [])]);
        await check({ base, name: "root" }, hostile, {
          rename: (text) => text,
          async call() {
            const project = await openProject({ root: join(base, "root"), indexFile: ":memory:" });
            try {
              const found = project.guidelines.list({}).guidelines.find((item) => item.title === title);
              const target = format === "claude" ? "fw_c" : format;
              return await project.guidelines.convert({
                guideline_id: found?.id ?? "",
                format: target as "steering" | "fw_c" | "fw_b",
                preview: false,
              });
            } finally {
              await project.close();
            }
          },
        });
      });
    },
  );
});

function renamed(rename: (text: string) => string): (entry: FixtureEntry) => FixtureEntry {
  return (entry) => ({
    ...entry,
    path: rename(entry.path),
    ...(entry.target === undefined ? {} : { target: rename(entry.target) }),
  });
}

function argumentsOf(
  hostile: PathCase,
  base: string,
  rename: (text: string) => string,
): Readonly<Record<string, string>> {
  const given = Object.entries(hostile.args).map(([name, value]) => {
    const path = value.replaceAll(baseMark, base);
    return [name, name === "path" && path.includes("..") ? rename(path) : path] as const;
  });
  return Object.fromEntries(given);
}

interface Check {
  readonly rename: (text: string) => string;
  readonly call: () => Promise<unknown>;
}

/** Makes the call of a case, and holds what came of it against the oracles of the corpus. */
async function check(
  { base, name }: Pick<Scene, "base" | "name">,
  hostile: PathCase,
  { rename, call }: Check,
): Promise<void> {
  const isOurs = (path: string): boolean => path === name || path.startsWith(`${name}/`);
  const before = await snapshot(base, isOurs);
  // What hangs ends with the time limit of the test.
  const started = processorMs();
  const outcome = await call().then(
    (value) => ({
      ok: value !== false,
      text: typeof value === "string" ? value : JSON.stringify(value ?? null),
    }),
    (error: unknown) => ({ ok: false, text: textOf(error) }),
  );
  expect(processorMs() - started).toBeLessThan(hostile.max_ms ?? 5_000);
  expect(await snapshot(base, isOurs)).toEqual(before);
  for (const secret of ["TOP-SECRET", "root:x:0", base, "not ours"])
    expect(outcome.text).not.toContain(secret);
  if (hostile.expected !== "contained") expect(outcome.ok).toBe(hostile.expected === "allow");
  const wanted = hostile.expect ?? {};
  if (wanted.content !== undefined) expect(outcome.text).toBe(wanted.content);
  if (wanted.content_if_ok !== undefined && outcome.ok) expect(outcome.text).toBe(wanted.content_if_ok);
  for (const text of wanted.must_not_contain ?? []) expect(outcome.text).not.toContain(text);
  for (const entry of wanted.entries_include ?? []) expect(outcome.text).toContain(entry);
  for (const path of wanted.absent ?? []) expect(existsSync(join(base, rename(path)))).toBe(false);
  for (const path of wanted.host_absent ?? []) expect(existsSync(path)).toBe(false);
  const [file, content] = wanted.file ?? [];
  if (file !== undefined) expect(await readFile(join(base, rename(file)), "utf8")).toBe(content);
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
  const { path = "", content = "", pattern = "" } = args;
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
      return await sandbox.grep({ pattern });
    case "glob":
      return await sandbox.glob(pattern);
    default:
      throw new Error(`The corpus has an operation that is new: ${op}.`);
  }
}

async function inBase(work: (base: string) => Promise<void>): Promise<void> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "kit-paths-")));
  try {
    await work(base);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}
