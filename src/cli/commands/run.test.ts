import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { createServedProject, providerKey, withoutKeys } from "../testing/agents-project.ts";
import { type RunOptions, type RunResult, runKit, startKit } from "../testing/run-kit.ts";

const { project, server } = await createServedProject();
beforeEach(() => server.script([]));

function run(args: readonly string[], options: Partial<RunOptions> = {}): Promise<RunResult> {
  return runKit(["run", ...args], { cwd: project.root, ...options, env: { ...withoutKeys, ...options.env } });
}

const local = ["--model", "local/m"] as const;

/** The requests that the server received, as the protocol has them. */
interface SentRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}
const sent = (index = 0): SentRequest => server.requests[index] as SentRequest;
const offered = (index = 0): readonly string[] => (sent(index).tools ?? []).map((tool) => tool.function.name);
const call = (
  name: string,
  args: unknown,
): { readonly toolCall: { id: string; name: string; args: string } } => ({
  toolCall: { id: "call_1", name, args: JSON.stringify(args) },
});

describe("a prompt", () => {
  test("is answered without a key by the offline model, which quotes the rules of a file", async () => {
    const { exitCode, stdout, stderr } = await run([
      "--prompt",
      "Which rules apply to src/money.ts and what would a change there affect?",
    ]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Amounts are whole cents.");
    expect(stdout).toContain("CLAUDE.md:3");
    expect(stdout).toContain("I do not reason");
    expect(stderr).toMatch(
      /^offline\/guide · \d turns · [\d,]+ tokens · [\d.]+ m?s · session \d{8}-\d{6}-[\da-z]{4} \(--continue continues it\)$/m,
    );
  });

  test("--json is the body of POST /agents/{name}/{id}", async () => {
    server.script([{ text: "Cents." }]);
    const { exitCode, stdout } = await run(["-p", "What are amounts?", ...local, "--json"]);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      result: {
        text: "Cents.",
        usage: expect.objectContaining({ input: 11, output: 7, total_tokens: 18 }),
        model: { id: "local/m" },
        metadata: expect.objectContaining({ turns: 1, finish_reason: "stop" }),
      },
    });
  });

  test("--stream prints the answer on stdout and the steps on stderr, without colours if it is not a terminal", async () => {
    server.script([call("read", { path: "src/money.ts" }), { text: "A euro is a hundred cents." }]);
    const { exitCode, stdout, stderr } = await run(["-p", "Read it.", ...local, "--stream"]);
    expect(exitCode).toBe(0);
    expect(stdout).toBe("A euro is a hundred cents.\n");
    expect(stderr).toMatch(/^→ read src\/money\.ts\n {2}1 export const euro = 100;(?: \(.+ s\))?$/m);
    expect(stdout + stderr).not.toContain("\u001b");
  });

  test("--stream is coloured in a terminal", async () => {
    server.script([call("read", { path: "nowhere.ts" }), { text: "It is not there." }]);
    const { stderr } = await run(["-p", "Read it.", ...local, "--stream"], { env: { FORCE_COLOR: "1" } });
    expect(stderr).toContain("\u001b[36m→ read nowhere.ts");
    expect(stderr).toContain("\u001b[31m  ✗ ");
  });

  test("--stream --json prints one line per event, and the body as the last line", async () => {
    server.script([call("read", { path: "src/money.ts" }), { text: "A hundred." }]);
    const { exitCode, stdout } = await run(["-p", "Read it.", ...local, "--stream", "--json"]);
    expect(exitCode).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    const events = lines.map(
      (line) => JSON.parse(line) as { type: string; index?: number; result?: unknown },
    );
    expect(events.slice(0, -1).map((event) => event.index)).toEqual(
      lines.slice(1).map((_, index) => index + 1),
    );
    expect(events.map((event) => event.type)).toEqual(
      expect.arrayContaining([
        "operation_start",
        "turn_request",
        "tool_start",
        "tool_end",
        "text_delta",
        "turn",
      ]),
    );
    expect(events.at(-1)).toMatchObject({ type: "result", result: { text: "A hundred." } });
  });

  test("can come on stdin", async () => {
    server.script([{ text: "Fine." }]);
    expect((await run(["-p", "-", ...local], { input: "A long\ndiff" })).stdout).toBe("Fine.\n");
    expect(JSON.stringify(sent().messages)).toContain("A long\\ndiff");
    const { exitCode, stderr } = await run(["-p", "-", ...local]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("The prompt is empty.");
  });

  test("is sent to an agent of the project, with its instructions, id and payload", async () => {
    server.script([{ text: "Looks fine." }]);
    const args = ["-p", "Review.", "--agent", "reviewer", "--id", "pr-7", "--payload", '{"what": "tests"}'];
    expect((await run(args)).stdout).toBe("Looks fine.\n");
    expect(sent().model).toBe("reviewing");
    expect(JSON.stringify(sent().messages[0])).toContain("You review tests as pr-7.");
  });

  test("uses the model of the command line before the role's, and the role's before the agent's", async () => {
    server.script([{ text: "a" }, { text: "b" }]);
    const review = ["-p", "Review.", "--agent", "reviewer", "--role", "careful"];
    await run(review);
    await run([...review, ...local]);
    expect([sent(0).model, sent(1).model]).toEqual(["careful", "m"]);
    expect(JSON.stringify(sent(0).messages[0])).toContain("Change little.");
  });

  test("that failed temporarily is retried, and the retry is reported", async () => {
    server.script([{ status: 429, headers: { "retry-after": "0" } }, { text: "Now." }]);
    const { stdout, stderr } = await run(["-p", "Hello", ...local]);
    expect(stdout).toBe("Now.\n");
    expect(stderr).toMatch(/status 429\. no\. Trying again in [\d.]+ s\./);
  });
});

describe("a session", () => {
  test("is new for each prompt, unless the line names one, which no other one knows of, or continues the last one", async () => {
    server.script([
      { text: "Noted." },
      { text: "Hm." },
      { text: "No idea." },
      { text: "Blue." },
      { text: "Both." },
    ]);
    const continuing = { id: "colours" };
    const ask = (prompt: string, ...words: string[]) =>
      run(["-p", prompt, ...local, "--id", continuing.id, ...words]);
    expect((await ask("Which is it?", "--continue")).stderr).toContain(
      "no session of the agent default to continue",
    );
    await ask("My colour is blue.", "-s", "one");
    await ask("Another talk.", "-s", "two");
    await ask("Which is it?");
    expect(sent(2).messages).toHaveLength(2);
    await ask("Which is it?", "-s", "one");
    await ask("And now?", "--continue");
    expect(
      sent(4)
        .messages.slice(1)
        .map((message) => message.content),
    ).toEqual(["My colour is blue.", "Noted.", "Which is it?", "Blue.", "And now?"]);
    const both = await ask("Hello", "--continue", "--session", "one");
    expect(both.exitCode).toBe(2);
    expect(both.stderr).toContain("Give --continue or --session, not both.");
  });

  test("Ctrl-C stops an answer and ends with 130; the session can continue from there", async () => {
    server.script([{ answer: { text: "A very long story" }, silentAfter: 3 }, { text: "The end." }]);
    const child = startKit(["run", "-p", "Tell me a story.", ...local, "-s", "story", "--stream"], {
      cwd: project.root,
      env: withoutKeys,
    });
    const ended = Promise.all([text(child.stderr), once(child, "close")]);
    await once(child.stdout, "data");
    child.kill("SIGINT");
    const [stderr, [exitCode]] = await ended;
    expect(exitCode).toBe(130);
    expect(stderr).toContain("Stopped. The session keeps what was done so far.");
    expect((await run(["-p", "Go on.", ...local, "-s", "story"])).stdout).toBe("The end.\n");
    expect(sent(1).messages.map((message) => message.role)).toEqual(["system", "user", "assistant", "user"]);
  });
});

describe("rights", () => {
  test("without options the model gets tools neither to write nor to run commands, and with them it does", async () => {
    server.script([{ text: "a" }, { text: "b" }]);
    await run(["-p", "Hello", ...local, "-s", "rights"]);
    await run(["-p", "Hello", ...local, "-s", "rights", "--allow-write", "--allow-shell"]);
    expect(offered(0)).toContain("read");
    for (const name of ["write", "edit", "rm", "bash"]) {
      expect(offered(0)).not.toContain(name);
      expect(offered(1)).toContain(name);
    }
  });

  test("--allow-write changes files of the project, except those that decide how kit behaves", async () => {
    server.script([
      call("write", { path: "notes/today.md", content: "Hello\n" }),
      call("write", { path: "src/agents/reviewer.ts", content: "" }),
      call("write", { path: "kit.toml", content: "" }),
      { text: "Done." },
    ]);
    const { exitCode, stderr } = await run([
      "-p",
      "Write.",
      ...local,
      "-s",
      "w",
      "--allow-write",
      "--stream",
    ]);
    expect(exitCode).toBe(0);
    expect(project.read("notes/today.md")).toBe("Hello\n");
    expect(project.read("src/agents/reviewer.ts")).toContain("createAgent");
    expect(project.read("kit.toml")).toContain("providers");
    expect(stderr).toContain("→ write notes/today.md content=");
    expect(stderr).toContain("✗ src/agents/reviewer.ts is protected");
  });

  test("--allow-shell runs simple commands in the project, and no scripts", async () => {
    server.script([
      call("bash", { command: "pwd" }),
      call("bash", { command: "echo a > stolen.txt" }),
      { text: "Done." },
    ]);
    const { stderr } = await run(["-p", "Run.", ...local, "-s", "sh", "--allow-shell", "--stream"]);
    // How long it took is said of a command that took long.
    expect(stderr.replace(/ \([\d.]+ s\)$/gm, "")).toContain(`→ bash pwd\n  ${project.root}\n`);
    expect(stderr).toContain("✗ The command was not run");
    expect(() => project.read("stolen.txt")).toThrow();
  });
});

describe("secrets", () => {
  test("a provider's key appears in no error, event or history, even if the provider repeats it", async () => {
    const refusal = { status: 401, message: `Incorrect API key provided: ${providerKey}` };
    server.script([refusal, refusal, call("read", { path: "kit.toml" }), { text: "Read." }]);
    const plain = await run(["-p", "Hello", ...local, "-s", "k"], { env: { KIT_DEBUG: "1" } });
    const streamed = await run(["-p", "Hello", ...local, "-s", "k", "--stream", "--json"]);
    const read = await run(["-p", "Read kit.toml", ...local, "-s", "k", "--stream", "--json"]);
    expect(plain.exitCode).toBe(1);
    expect(plain.stderr).toContain("error: The model's provider answered with status 401.");
    expect(plain.stderr).toContain("[secret]");
    expect(JSON.parse(streamed.stdout.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      type: "error",
      error: { type: "model_error" },
    });
    expect(read.stdout).toContain("api_key");
    for (const { stdout, stderr } of [plain, streamed, read])
      expect(stdout + stderr).not.toContain(providerKey);
    for (const file of ["sessions.db", "sessions.db-wal"]) {
      const bytes = readOptional(join(project.root, ".kit", file));
      expect(bytes.includes(providerKey)).toBe(false);
    }
    expect(JSON.stringify(server.requests)).not.toContain(providerKey);
  });

  test("a secret is available only to the command that requests it, and is masked in its output", async () => {
    const secret = "tok-4711-not-for-your-eyes";
    project.write("keys.env", `DEPLOY_TOKEN=${secret}\n`);
    const { exitCode, stdout, stderr } = await run(["deploy", "--env", "keys.env", "--stream"]);
    expect(exitCode).toBe(0);
    expect(stdout).toBe("token [secret]\nwithout\n\n");
    expect(stderr).toContain("The token is [secret]");
    expect(stdout + stderr).not.toContain(secret);
  });
});

describe("a workflow", () => {
  test("prints its result on stdout, a value as JSON and a text unchanged, and its log on stderr", async () => {
    server.script([{ text: "Three words." }]);
    const value = await run(["count", "--payload", '{"text": "one two three"}']);
    expect(value.exitCode).toBe(0);
    expect(JSON.parse(value.stdout)).toEqual({ words: 3 });
    expect(value.stderr).toContain('Counting {"characters":13}');
    const result = await run(["count", "--payload", '{"text": "How many?", "ask": true}', "--stream"]);
    expect(result.stdout).toBe("Three words.\n");
  });

  test("--json is the body of POST /workflows/{name}?wait=result", async () => {
    const { stdout } = await run(["count", "--payload", '{"text": "a b"}', "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      status: "completed",
      run_id: expect.stringMatching(/^run_[0-9A-HJKMNP-TV-Z]{26}$/),
      result: { words: 2 },
    });
  });

  test("--stream --json prints one stream of the run and its agents", async () => {
    server.script([{ text: "One." }]);
    const { stdout } = await run(["count", "--payload", '{"text": "x", "ask": true}', "--stream", "--json"]);
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line): Record<string, unknown> => JSON.parse(line));
    const [first] = events;
    expect(first).toMatchObject({ type: "run_start", index: 1, workflow: "count" });
    expect(events.slice(0, -1).every((event) => event.run_id === first?.run_id)).toBe(true);
    expect(events.slice(-2).map((event) => event.type)).toEqual(["run_end", "result"]);
    expect(events.map((event) => event.type)).toContain("text_delta");
  });

  test("the model of the command line is used for its agents", async () => {
    server.script([{ text: "x" }]);
    await run(["count", "--payload", '{"text": "x", "ask": true}', ...local]);
    expect(sent().model).toBe("m");
  });

  test("a failure shows what the workflow threw, where, and in which run", async () => {
    const { exitCode, stdout, stderr } = await run(["count", "--payload", '{"text": 1}', "--json"]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('error: The workflow "count" failed.');
    expect(stderr).toContain("hint: the text is none (src/workflows/count.ts:6)");
    expect(JSON.parse(stdout)).toMatchObject({
      error: { type: "internal_error", meta: { run_id: expect.stringMatching(/^run_/) } },
    });
  });

  test("a payload that the workflow refuses is wrong usage", async () => {
    const { exitCode, stderr } = await run(["count"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("error: Give a text.");
  });
});

describe("invalid lines", () => {
  test.each([
    [[], 2, "Give exactly one of: a workflow, --prompt, --skill, --spec."],
    [["count", "-p", "hi"], 2, "Give exactly one of: a workflow, --prompt, --skill, --spec."],
    [["count", "--session", "s"], 2, "--session works with --prompt or --skill only"],
    [["-p", "  "], 2, "The prompt is empty."],
    [["-p", "hi", "--role", "rude"], 2, 'There is no role named "rude".', "The roles are: careful."],
    [["--skill", "sing"], 2, 'There is no skill named "sing".', "The skills are: explain."],
    [["-p", "hi", "--session", "a/b"], 2, "A session's name must not hold separators"],
    [["-p", "hi", "--model", "gpt"], 2, '"gpt" does not name a model.', "Write provider/model"],
    [
      ["-p", "hi", "--model", "absent/x"],
      2,
      'There is no provider named "absent".',
      "The providers are: offline",
    ],
    [["-p", "hi", "--model", "offline/oracle"], 2, 'There is no model "offline/oracle".'],
    [["count", "--payload", "[1]"], 2, "--payload: must be a JSON object."],
    [["count", "--payload", "{x"], 2, "--payload: not JSON"],
    [["-p", "hi", "--env", "no.env"], 2, "no.env cannot be read."],
    [["nothing"], 2, 'There is no workflow named "nothing".', "The workflows are: count, deploy."],
    [["-p", "hi", "--agent", "absent"], 2, 'There is no agent named "absent".', "The agents are: reviewer."],
    [["-p", "hi", "--agent", "broken"], 1, 'The agent "broken" cannot be used', "src/agents/broken.ts"],
    [["-p", "hi", "--model", "openai/gpt-5.1"], 1, "There is no key for openai.", "Set OPENAI_API_KEY"],
  ] as const)("%j ends with %i", async (...row) => {
    const [args, code, message, hint = ""] = row;
    const { exitCode, stdout, stderr } = await run(args);
    expect(stderr).toContain(`error: ${message}`);
    expect(stderr).toContain(hint);
    expect(exitCode).toBe(code);
    expect(stdout).toBe("");
    expect(stderr).not.toContain("    at ");
    expect(stderr).not.toContain(project.root);
  });

  test("an unusable file is a warning with its line, and the rest works", async () => {
    const { exitCode, stderr } = await run(["-p", "hi"]);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^warning: src\/agents\/broken\.ts: .+ \(line \d\)$/m);
    expect(stderr).not.toContain("_helper");
  });

  test("with --json the error is an envelope on stdout", async () => {
    const { stdout } = await run(["nothing", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      error: {
        type: "workflow_not_found",
        message: 'There is no workflow named "nothing".',
        details: "The workflows are: count, deploy.",
      },
    });
  });
});

function readOptional(file: string): Buffer {
  return existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
}
