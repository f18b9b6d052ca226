import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { isCampaign, rounds } from "../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { kitCommandLine } from "./testing/run-kit.ts";

// A namespace of our own, in which disks of any size can be mounted.
const canMount = spawnSync("unshare", ["-rm", "sh", "-c", "mount -t tmpfs t /mnt"]).status === 0;
const mountTest = test.skipIf(!canMount);
const mountCampaign = test.runIf(canMount && isCampaign);

const files = {
  ".kit/.gitignore": "*\n",
  "src/agents/helper.ts":
    'import { createAgent } from "kit";\nexport const triggers = { webhook: true };\nexport default createAgent(() => ({ instructions: "Help." }));\n',
  "src/workflows/greet.ts": "export async function run() {\n  return {};\n}\n",
  "openspec/specs/shop/spec.md":
    "# shop\n\n## Requirements\n\n### Requirement: Open\n\nThe shop SHALL open.\n\n#### Scenario: Morning\n\n- WHEN it is nine\n- THEN it opens\n",
};

const small = "mount -t tmpfs -o size=64k t .kit";
const complete = `${small} && dd if=/dev/zero of=.kit/fill bs=4k 2>/dev/null; true`;
const readOnly = "mount --bind . . && mount -o remount,ro,bind . && cd .";

interface Said {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line of kit after `prepare`, in the same namespace. */
async function runAfter(prepare: string, args: readonly string[]): Promise<Said> {
  await using project = await createTemporaryRepository(files);
  const env = { ...process.env, KIT_DEBUG: "", NO_COLOR: "1" };
  const words = ["-rm", "sh", "-c", `${prepare}\ncd "$PWD" && exec "$@"`, "sh", ...kitCommandLine(args)];
  const result = spawnSync("unshare", words, { cwd: project.root, env, encoding: "utf8", timeout: 30_000 });
  expect(result.stderr).not.toContain("Something went wrong");
  expect(result.stderr).not.toContain(project.root);
  return result;
}

const disksOfReaders = [
  ["a full disk", complete, "the disk is full"],
  ["a disk that becomes full", small, "the disk is full"],
  [
    "a full disk that has the temporary files, too",
    `${complete}\nexport TMPDIR="$PWD/.kit"`,
    "the disk is full",
  ],
  ["a read-only disk", readOnly, "its disk is read-only"],
] as const;
mountTest.each(disksOfReaders.slice(0, rounds(1, 4)))(
  "a command that only reads works on %s, with one note",
  async (_name, prepare, reason) => {
    const { status, stdout, stderr } = await runAfter(prepare, ["specs", "list"]);
    expect(stdout).toContain("openspec/specs/shop/spec.md");
    expect(stderr.match(/note:.*/g)).toEqual([`note: What kit reads is not kept in .kit: ${reason}.`]);
    expect(status).toBe(0);
  },
);

const disksOfServers = [
  ["a disk that becomes full", small, ".db) cannot be used: the disk is full."],
  ["a full disk", complete, "The folder .kit of this project cannot be written (the disk is full)"],
  ["a read-only disk", readOnly, "cannot be written (its disk is read-only)"],
] as const;
mountTest.each(disksOfServers.slice(0, rounds(1, 3)))(
  "a server does not start on %s, and names the cause",
  async (_name, prepare, reason) => {
    const { status, stderr } = await runAfter(prepare, ["start", "--port", "0"]);
    expect(stderr).toContain(reason);
    expect(stderr).not.toMatch(/away|damaged/);
    expect(status).toBe(1);
  },
);

mountCampaign("'kit run' and 'kit doctor' say that the disk is full", async () => {
  const run = await runAfter(complete, ["run", "greet"]);
  expect(run).toMatchObject({ status: 1, stderr: expect.stringContaining("(the disk is full)") });
  const doctor = await runAfter(complete, ["doctor", "--json"]);
  expect(doctor).toMatchObject({ status: 1, stdout: expect.stringContaining("the disk is full") });
});

// Stops on the full disk, so that nothing is tidied up by what it had written before.
const fillAndStop = `mount -t tmpfs -o size=4m t .kit
"$@" >said 2>&1 &
until url=$(grep -o 'http://127.0.0.1:[0-9]*$' said | head -1) && [ -n "$url" ]; do sleep 0.05; done
post() { curl -s -H 'content-type: application/json' "$url$1" -d "$2"; echo; }
post /agents/helper/1/dispatch '{"input":"a"}'
dd if=/dev/zero of=.kit/fill bs=4k 2>/dev/null
post /agents/helper/2 '{"message":"b"}'
post /agents/helper/1/dispatch '{"input":"c"}'
rm .kit/fill
post /agents/helper/1/dispatch '{"input":"d"}'
dd if=/dev/zero of=.kit/fill bs=4k 2>/dev/null
kill $! && wait $!
code=$?
cat said >&2
exit $code`;

mountCampaign(
  "a server whose disk becomes full refuses, goes on when there is room, and stops with 0",
  async () => {
    const { status, stdout } = await runAfter(fillAndStop, ["start", "--port", "0"]);
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const refused = {
      error: { type: "store_unavailable", message: expect.stringContaining("the disk is full") },
    };
    const accepted = { status: "accepted" };
    expect(answers).toMatchObject([accepted, refused, refused, accepted]);
    expect(status).toBe(0);
  },
);

test.skipIf(!existsSync("/dev/full"))(
  "a command whose output goes to a full disk fails with one line",
  async () => {
    await using project = await createTemporaryRepository(files);
    const words = ["-c", 'exec "$@" >/dev/full', "sh", ...kitCommandLine(["specs", "list", "--json"])];
    const env = { ...process.env, KIT_DEBUG: "", NO_COLOR: "1" };
    const { status, stderr } = spawnSync("sh", words, { cwd: project.root, env, encoding: "utf8" });
    expect(stderr).toBe("error: The rest of the output cannot be written: no space left on device.\n");
    expect(status).toBe(1);
  },
);
