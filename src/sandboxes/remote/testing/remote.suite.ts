import { mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { testFolder } from "../../../testing/test-folder.ts";
import type { Sandbox, SandboxFactory } from "../../contract.ts";
import { sandboxCases } from "../../contract-cases.ts";
import type { RemoteOptions } from "../remote-options.ts";
import type { FakeVendor } from "./fake-vendor.ts";

/** A vendor under test: its fake, and the factory that connects to it through the vendor's real package. */
export interface RemoteSubject {
  readonly name: string;
  readonly startFake: () => Promise<FakeVendor>;
  readonly factory: (fake: FakeVendor, options: RemoteOptions) => SandboxFactory;
  /** The folder with the vendor's package, if kit does not install it. */
  readonly packages?: string;
  /** Whether its machines can be paused; default true. */
  readonly pauses?: boolean;
}

export interface RemoteBench {
  readonly name: string;
  readonly fake: FakeVendor;
  readonly root: string;
  readonly pauses: boolean;
  factory(options?: RemoteOptions): SandboxFactory;
  /** The owner of a new instance. */
  nextOwner(): RemoteOwner;
  /** Opens a sandbox that is closed at the end of the test. */
  open(options?: RemoteOptions, owner?: RemoteOwner): Promise<Sandbox>;
  /** Returns the requests to the vendor during a call. */
  requestsOf(work: () => Promise<unknown>): Promise<readonly string[]>;
}

interface RemoteOwner {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  readonly project_root: string;
}

/** Starts one fake and creates one project for the tests of a file. */
export function useRemote(subject: RemoteSubject): RemoteBench {
  let fake: FakeVendor | undefined;
  let root = "";
  let count = 0;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), `kit-${subject.name}-`));
    if (subject.packages !== undefined) await symlink(subject.packages, join(root, "node_modules"));
    fake = await subject.startFake();
  });
  afterAll(async () => {
    await fake?.close();
    await rm(root, { recursive: true, force: true });
  });
  const bench: RemoteBench = {
    name: subject.name,
    get fake() {
      if (fake === undefined) throw new Error("The fake has not started.");
      return fake;
    },
    get root() {
      return root;
    },
    pauses: subject.pauses ?? true,
    factory: (options = {}) => subject.factory(bench.fake, options),
    nextOwner() {
      count += 1;
      return { agent: "tester", session: "default", project_root: root, instance_id: String(count) };
    },
    async open(options, owner = bench.nextOwner()) {
      const sandbox = await bench.factory(options).open(owner);
      onTestFinished(() => sandbox.close());
      return sandbox;
    },
    async requestsOf(work) {
      const before = bench.fake.requests.length;
      await work();
      return bench.fake.requests
        .slice(before)
        .map((line) => line.replace(/fake\d\w+/, "ID").replace(/kit-[\w-]{36}/, "SHELL"));
    },
  };
  return bench;
}

/**
 * Cases of the quick suite; the whole contract is a campaign. The first cases test kit's shell scripts, which are the same
 * for all vendors, so they run for one vendor; the others test how a vendor starts scripts.
 */
const ofOneVendor: readonly string[] = [
  "searches skip files that Git ignores, unless the path names them",
  "a program of the workspace is not run in place of a system program",
  "a sandbox that reports isolation enforces a command's access",
];
const ofEachVendor: readonly string[] = [
  "reading returns the text and bytes that were written, in folders that the write created",
  "background processes end with their command",
  "`onOutput` is called while the command runs",
];

/** Registers the tests of all vendors' sandboxes, in addition to the contract of all sandboxes. */
export function remoteTests(bench: RemoteBench): void {
  const slice = bench.name === "e2b" ? [...ofOneVendor, ...ofEachVendor] : ofEachVendor;
  for (const { name, run } of sandboxCases({ create: () => bench.open() }))
    if (slice.includes(name)) test(name, run);

  test("a machine is paused when idle, found by its id after a restart, and removed with its session", async () => {
    const resting = bench.pauses ? "paused" : "running";
    const owner = bench.nextOwner();
    const first = await bench.open({ idleMs: 300 }, owner);
    await first.writeFile("a.txt", "kept");
    const [id = "", machine] = [...bench.fake.machines].at(-1) ?? [];
    const labels = { kit_agent: "tester", kit_instance: owner.instance_id, kit_session: "default" };
    expect(machine?.labels).toMatchObject(labels);
    await expect.poll(() => machine?.state).toBe(resting);
    expect(await first.readFile("a.txt")).toBe("kept");
    await first.close();
    expect(machine?.state).toBe(resting);
    expect(first.capabilities.persistent).toBe(bench.pauses);
    const second = await bench.open({}, owner);
    expect(await second.readFile("a.txt")).toBe("kept");
    await second.close();
    await bench.factory().remove?.(owner);
    expect(bench.fake.machines.has(id)).toBe(false);
  });

  test("a machine without a record is found by its labels", async () => {
    const owner = bench.nextOwner();
    await (await bench.open({}, owner)).writeFile("a.txt", "kept");
    const machines = bench.fake.machines.size;
    const folder = join(bench.root, ".kit/machines");
    const records = (await readdir(folder)).filter((name) => name.includes(`-tester-${owner.instance_id}-`));
    expect(records).toHaveLength(1);
    await rm(join(folder, records[0] ?? ""));
    expect(await (await bench.open({}, owner)).readFile("a.txt")).toBe("kept");
    expect(bench.fake.machines.size).toBe(machines);
  });

  test("a lost machine fails one call, and the next call gets a new machine", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("a.txt", "lost");
    const [id = ""] = [...bench.fake.machines].at(-1) ?? [];
    bench.fake.lose(id);
    const gone = {
      code: "unavailable",
      meta: { reason: "gone" },
      message: expect.stringContaining("its files are lost"),
    };
    await expect(sandbox.exists("a.txt")).rejects.toMatchObject(gone);
    expect(await sandbox.exists("a.txt")).toBe(false);
  });

  test.runIf(bench.pauses)("a machine that the vendor paused is resumed without an error", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("a.txt", "kept");
    const [, machine] = [...bench.fake.machines].at(-1) ?? [];
    if (machine !== undefined) machine.state = "paused";
    expect((await sandbox.exec({ command: "cat a.txt" })).stdout).toBe("kept");
  });

  test("a connection lost during a command is an unknown outcome, and calls that only read are retried", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("a.txt", "kept");
    bench.fake.trouble.cutNext = true;
    const cut = sandbox.exec({ command: "echo begun >> log.txt; sleep 4; echo ended >> log.txt" });
    await expect(cut).rejects.toMatchObject({
      code: "unavailable",
      meta: { reason: "lost" },
      message: expect.stringContaining("the outcome is unknown"),
    });
    bench.fake.trouble.cutNext = true;
    expect(await sandbox.readFile("a.txt")).toBe("kept");
    expect((await sandbox.readFile("log.txt")).match(/begun/g)).toHaveLength(1);
  });

  const endings: Readonly<Record<string, (sandbox: Sandbox) => Promise<unknown>>> = {
    "whose connection was cut": (sandbox) => {
      bench.fake.trouble.cutNext = true;
      return expect(sandbox.exec({ command: "sleep 2" })).rejects.toMatchObject({ meta: { reason: "lost" } });
    },
    "whose command exceeded its time": (sandbox) => sandbox.exec({ command: "sleep 30", timeoutMs: 200 }),
    "whose command was aborted": (sandbox) =>
      sandbox.exec({ command: "sleep 30", signal: AbortSignal.timeout(200) }),
  };
  for (const [name, end] of Object.entries(endings)) {
    test.runIf(bench.pauses)(
      `a machine ${name} is paused when idle, and when its sandbox closes`,
      async () => {
        const [idle, closed] = [await bench.open({ idleMs: 300 }), await bench.open()];
        for (const sandbox of [idle, closed]) {
          await sandbox.writeFile("a.txt", "kept");
          const [, machine] = [...bench.fake.machines].at(-1) ?? [];
          await end(sandbox);
          if (sandbox === closed) await sandbox.close();
          await expect.poll(() => machine?.state).toBe("paused");
        }
      },
    );
  }

  test("the first call names programs that the image lacks, and removes the machine", async () => {
    const empty = testFolder(onTestFinished);
    // As in an image with BusyBox: the programs exist, but support fewer options.
    for (const name of ["sh", "mktemp", "rm", "mkdir", "base64", "gzip", "tar", "grep"]) {
      await symlink(`/usr/bin/${name}`, join(empty, name));
    }
    bench.fake.trouble.path = empty;
    onTestFinished(() => {
      bench.fake.trouble.path = undefined;
    });
    const machines = bench.fake.machines.size;
    const sandbox = await bench.open();
    await expect(sandbox.list()).rejects.toMatchObject({
      code: "unavailable",
      meta: { reason: "image" },
      message: expect.stringMatching(/lacks tools that kit needs: .*realpath -m.*find -printf.*setsid/),
      hint: expect.stringContaining("apk add coreutils findutils"),
    });
    expect(bench.fake.machines.size).toBe(machines);
  });

  test("variables of a call reach the command, and no record of the vendor", async () => {
    const sandbox = await bench.open();
    const env = { TOKEN: "s3cret'value" };
    expect((await sandbox.exec({ command: 'printf %s "$TOKEN"', env })).stdout).toBe(env.TOKEN);
    expect((await sandbox.exec({ command: 'printf %s "$TOKEN"' })).stdout).toBe("");
    expect(JSON.stringify(bench.fake.lines)).not.toContain("s3cret");
  });

  test("a command's own exit codes and messages are returned unchanged", async () => {
    const sandbox = await bench.open();
    const forged = await sandbox.exec({ command: "echo $KIT_COMMAND_ID:71 >&2; exit 71" });
    expect(forged).toMatchObject({ exit_code: 71, stderr: expect.stringContaining(":71") });
    expect(await sandbox.exec({ command: "kill -TERM $$" })).toMatchObject({ exit_code: 143, stderr: "" });
    const long = await sandbox.exec({ command: ["echo", "x".repeat(200_000)] });
    expect(long).toMatchObject({ exit_code: 126, stderr: "echo: argument list too long\n" });
    await expect(sandbox.exec({ command: "true", env: { "A-B": "x" } })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  test("in a slow network, each call costs one round trip", async () => {
    const sandbox = await bench.open();
    await sandbox.writeFile("a.txt", "one");
    await sandbox.exec({ command: "true" });
    bench.fake.trouble.delayMs = 100;
    onTestFinished(() => {
      bench.fake.trouble.delayMs = undefined;
    });
    expect(await sandbox.readFile("a.txt")).toBe("one");
    expect((await sandbox.exec({ command: "cat a.txt", timeoutMs: 60_000 })).stdout).toBe("one");
    expect(await sandbox.grep({ pattern: "one" })).toMatchObject({ matches: [{ path: "a.txt" }] });
  });
}

/** A vendor's refusals: status and text, and what kit makes of them. */
export function refusalTests(
  bench: RemoteBench,
  refusals: readonly (readonly [status: number, message: string, expected: object])[],
): void {
  test.each(refusals)("the vendor's status %i (%s) is kit's", async (status, message, expected) => {
    bench.fake.trouble.refuse = { status, message };
    onTestFinished(() => {
      bench.fake.trouble.refuse = undefined;
    });
    await expect((await bench.open()).list()).rejects.toMatchObject(expected);
  });
}
