import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";

let base: string;
let root: string;

beforeEach(() => {
  base = testFolder(onTestFinished);
  root = join(base, "workspace");
  mkdirSync(root);
});

function put(...paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), "x\n");
  }
}

interface Call {
  readonly name: string;
  readonly input: object;
}

/** Makes the calls one after the other; returns whether each was refused. */
async function refusals(calls: readonly Call[], profile: AgentProfile = {}): Promise<readonly boolean[]> {
  const model = createScriptedModel((_call, index) => {
    const call = calls[index];
    return call === undefined ? { text: "Done." } : { toolCalls: [{ ...call, id: `c${index}` }] };
  });
  const agent = createTestAgent(
    model,
    { allowWrite: true, allowShell: true, ...profile },
    { sandbox: local({ root, isolation: "off" }) },
  );
  const { messages } = await agent.session().prompt("go");
  return messages.flatMap((message) =>
    message.role !== "tool" ? [] : message.content.map((result) => result.is_error),
  );
}

const write = (path: string): Call => ({ name: "write", input: { path, content: "x" } });
const mkdir = (path: string): Call => ({ name: "mkdir", input: { path } });
const bash = (command: string): Call => ({ name: "bash", input: { command } });

test.each([
  ["HEAD", [write("x/config"), write("x/objects/.keep"), write("x/refs/heads/main"), write("x/HEAD")]],
  ["refs", [write("x/config"), write("x/HEAD"), mkdir("x/objects"), mkdir("x/refs")]],
  ["a file below refs", [write("x/HEAD"), mkdir("x/objects"), write("x/refs/heads/main")]],
  ["objects", [write("x/HEAD"), write("x/refs/heads/main"), write("x/objects/info/alternates")]],
  ["commondir", [write("x/HEAD"), write("x/commondir")]],
  ["HEAD by way of a link", [mkdir("x/objects"), mkdir("x/refs"), write("link/HEAD")]],
  ["HEAD of the root", [mkdir("objects"), mkdir("refs"), write("HEAD")]],
  ["HEAD, by a command", [mkdir("x/objects"), mkdir("x/refs"), bash("touch x/HEAD")]],
  ["HEAD, by a move", [mkdir("x/objects"), mkdir("x/refs"), write("y/HEAD"), bash("mv y/HEAD x")]],
  ["refs, by a copy", [write("x/HEAD"), mkdir("x/objects"), mkdir("y/refs"), bash("cp -r y/refs x")]],
  ["refs, by a folder", [write("x/HEAD"), mkdir("x/objects"), bash("mkdir -p x/refs/heads")]],
  ["all in one command", [mkdir("x"), write("y/HEAD"), mkdir("x/objects"), bash("mv y/HEAD plain/refs x")]],
  ["two by one command", [write("x/HEAD"), bash("mkdir x/objects x/refs")]],
  ["two by a copy", [write("x/HEAD"), mkdir("y/objects"), mkdir("y/refs"), bash("cp -r y/. x")]],
])("no folder becomes a repository by the last part: %s", async (_part, calls) => {
  put("plain/refs/a.txt");
  symlinkSync("x", join(root, "link"));
  expect(await refusals(calls)).toEqual(calls.map((_call, index) => index === calls.length - 1));
});

test("agents change nothing by which a repository names programs, but folders of the same names", async () => {
  put("x/HEAD", "x/objects/a", "x/refs/a", "x/config", "x/README.md", "src/config/a.ts", "src/hooks/b.ts");
  const edit = (path: string): Call => ({ name: "edit", input: { path, old: "x", new: "y" } });
  const calls = [
    edit("x/config"),
    write("x/hooks/post-checkout"),
    write("x/info/attributes"),
    write("x/HEAD"),
  ];
  expect(await refusals(calls)).toEqual([true, true, true, true]);
  expect(await refusals(calls, { allowProtectedPaths: ["x"] })).toEqual([false, false, false, false]);
  expect(await refusals([edit("src/config/a.ts"), write("src/hooks/c.ts"), write("src/refs/d.ts")])).toEqual([
    false,
    false,
    false,
  ]);
});

test("below a .git, Git takes the root for no repository of its own", async () => {
  put(".git/HEAD", "objects/a.ts", "refs/a.ts");
  expect(await refusals([write("HEAD"), write("config/a.ts")])).toEqual([false, false]);
});
