import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, test } from "vitest";
import type { ExecRequest, ExecResult, IsolationOptions, Sandbox } from "../../contract.ts";
import { local } from "../../local/local-sandbox.ts";
import { findWall } from "./find-wall.ts";

const found = await findWall();

/** A test of commands inside bubblewrap; skipped where bubblewrap does not work. */
export const wallTest: ReturnType<typeof test.skipIf> = test.skipIf(found.wall !== "bubblewrap");
if (found.wall !== "bubblewrap") {
  const reason = found.wall === "none" ? found.reason : "these tests need bubblewrap.";
  test.skip(`isolated commands: ${reason}`, () => undefined);
}

/** A folder for the tests of one file. */
export async function createFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "kit-wall-")));
  await chmod(folder, 0o755);
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface Walled {
  readonly root: string;
  readonly sandbox: Sandbox;
  /** Runs a shell line; by default with read access only. */
  run(command: string, more?: Partial<ExecRequest>): Promise<ExecResult>;
}

let count = 0;

/** Opens `local()` on a new folder with files. */
export async function openFilled(folder: string, files: Readonly<Record<string, string>>): Promise<Walled> {
  const walled = await openWalled(folder);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(walled.root, path)), { recursive: true });
    await writeFile(join(walled.root, path), text);
  }
  return walled;
}

/** Opens `local()` on a new folder, or on `options.root`. */
export async function openWalled(
  folder: string,
  options: IsolationOptions & { root?: string } = {},
): Promise<Walled> {
  count += 1;
  const root = options.root ?? join(folder, `ws-${count}`);
  await mkdir(root, { recursive: true });
  const owner = { agent: "tester", instance_id: String(count), session: "default" };
  const sandbox = await local({ ...options, root }).open({ ...owner, project_root: root });
  afterAll(() => sandbox.close());
  return {
    root,
    sandbox,
    run: (command, more = {}) =>
      sandbox.exec({ command, timeoutMs: 20_000, access: { write: false }, ...more }),
  };
}
