import { beforeEach, expect, test } from "vitest";
import { createServedProject, withoutKeys } from "../testing/agents-project.ts";
import { type RunOptions, type RunResult, runKit } from "../testing/run-kit.ts";

const { project, server } = await createServedProject();
beforeEach(() => server.script([]));

function run(args: readonly string[], options: Partial<RunOptions> = {}): Promise<RunResult> {
  return runKit(["run", ...args], { cwd: project.root, env: withoutKeys, ...options });
}

const local = ["--model", "local/m"] as const;

test("the named models are tried in their order, whether one option or several name them", async () => {
  server.script([{ text: "a" }, { text: "b" }]);
  for (const models of [
    ["--model", "openai/without-a-key,local/n"],
    ["--model", "openai/without-a-key", "--model", "local/n"],
  ]) {
    const { exitCode, stderr } = await run(["-p", "Hello", "-s", "models", ...models, "--backend", "typed"]);
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("local/n · 1 turn")]);
  }
});

test("a backend runs the turns", async () => {
  server.script([{ text: "It is done." }]);
  const { stdout } = await run(["-p", "Hello", ...local, "--backend", "graph", "--json"]);
  expect(JSON.parse(stdout).result.text).toBe("It is done.");
});

test("files are attached to the prompt by their kind, relative to the folder in which kit was started", async () => {
  server.script([{ text: "Seen." }]);
  project.write("src/invoice.PDF", "%PDF-1.7 an invoice");
  project.write("src/a, b.txt", "Notes");
  const expected = ["--file", "src/invoice.PDF", "--file", "src/a, b.txt"];
  const refused = await run(["-p", "Read.", ...local, ...expected, "-s", "files"]);
  expect([refused.exitCode, refused.stderr]).toEqual([
    2,
    expect.stringContaining("local/m does not accept text/plain files."),
  ]);
  const { stdout } = await run(["-p", "Read.", ...local, ...expected.slice(0, 2), "-s", "files"]);
  expect(stdout).toBe("Seen.\n");
  expect(JSON.stringify(server.requests[0])).toContain(Buffer.from("%PDF-1.7 an invoice").toString("base64"));
  expect(JSON.stringify(server.requests[0])).toContain("invoice.PDF");
});

test("on Windows it reports once, on stderr, that commands are not isolated, and where they would be", async () => {
  const platform = "win32";
  const missing =
    "Commands run without isolation: kit cannot isolate commands on Windows. Run agents that execute commands in a remote sandbox";
  const count = ["count", "--payload", '{"text": "a b"}'];
  for (const args of [["-p", "hi", "--stream"], count]) {
    const { exitCode, stdout, stderr } = await run(args, { platform });
    expect([exitCode, stderr.split(missing).length - 1, stdout.includes(missing)]).toEqual([0, 1, false]);
  }
  const { stdout, stderr } = await run([...count, "--json"], { platform });
  expect([JSON.parse(stdout), stderr.includes("walled")]).toEqual([expect.anything(), false]);
  expect((await run(count)).stderr).not.toContain("walled");
});

test("on Windows it reports what required isolation means, and nothing if commands run on another machine", async () => {
  const lineOf = async (config: string): Promise<string> => {
    project.write("isolation.toml", config);
    const { stderr } = await run(["count", "--config", "isolation.toml", "--payload", '{"text": "a"}'], {
      platform: "win32",
    });
    return stderr;
  };
  expect(await lineOf('[sandbox]\nisolation = "required"\n')).toContain(
    "sandbox.isolation is required, so no command runs.",
  );
  expect(await lineOf('[agent]\nsandbox = "virtual"\n')).toContain("kit cannot isolate commands on Windows");
  expect(await lineOf('[agent]\nsandbox = "e2b"\n')).not.toContain("isolat");
});

test.each([
  [["-p", "hi", "--model", ","], 2, "--model names no model."],
  [["-p", "hi", "--backend", "grpah"], 2, "--backend: 'grpah' is not a backend.", "Did you mean graph?"],
  [["count", "--file", "kit.toml"], 2, "--file works with --prompt or --skill only"],
  [["-p", "hi", "--file", "no.pdf"], 2, "--file: no.pdf does not exist."],
  [
    ["-p", "hi", "--file", "kit.toml"],
    2,
    "--file: kit does not know what kit.toml is.",
    "It takes .pdf, .png",
  ],
  [["-p", "hi", "--file", "folder.pdf"], 2, "--file: folder.pdf is a folder."],
  [["-p", "hi", "--file", "empty.pdf"], 2, "--file: empty.pdf is empty."],
  [["-p", "hi", "--file", "false.pdf"], 2, "--file: false.pdf is not an application/pdf file."],
] as const)("%j ends with %i", async (...row) => {
  project.write("folder.pdf/page.txt", "a page");
  project.write("empty.pdf", "");
  project.write("false.pdf", "<html>Sign in first</html>");
  const [args, code, message, hint = ""] = row;
  const { exitCode, stdout, stderr } = await run(args);
  expect([exitCode, stdout, stderr]).toEqual([code, "", expect.stringContaining(`error: ${message}`)]);
  expect(stderr).toContain(hint);
});
