import {
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { afterEach, beforeEach, expect, test } from "vitest";
import { specRepository, tasksPath } from "../../app/spec-run/testing/spec-repository.ts";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import type { TemporaryRepository } from "../../testing/temporary-repository.ts";
import { choose, type Editor, openEditor } from "../acp/testing/open-editor.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { beginProcess, runKit } from "../testing/run-kit.ts";
import { endAll, type Running, serveKit } from "../testing/served-kit.ts";

let repository: TemporaryRepository;
let editor: Editor;
let session: string;
beforeEach(async () => {
  repository = await specRepository({}, ["honest", "empty"]);
  await begin("honest");
});
afterEach(async () => {
  await editor.leave();
  await repository[Symbol.asyncDispose]();
});

async function begin(agent: string): Promise<void> {
  editor = await openEditor(repository, ["--agent", agent]);
  session = await editor.newSession();
}

const updates = <Kind extends SessionUpdate["sessionUpdate"]>(kind: Kind) =>
  editor.updates.flatMap(({ update }) =>
    update.sessionUpdate === kind ? [update as Extract<SessionUpdate, { sessionUpdate: Kind }>] : [],
  );
const plans = (): string[] => [
  ...new Set(
    updates("plan").map(({ entries }) =>
      entries.map(({ content, status }) => `${content}: ${status}`).join("; "),
    ),
  ),
];
const isTask = ({ toolCall }: RequestPermissionRequest): boolean =>
  toolCall.title?.startsWith("Accept the task") === true;

test("'/spec' works through the open tasks as a plan, asks about a task with its difference, and leaves the checkout alone", async () => {
  await expect
    .poll(() => updates("available_commands_update").at(-1)?.availableCommands)
    .toMatchObject([{ name: "spec", input: { hint: expect.stringContaining("the feature") } }]);
  editor.decide = () => choose("accept");
  const before = await repository.git("rev-parse", "HEAD");
  expect(await editor.prompt(session, "/spec cart 1.1 2")).toBe("end_turn");
  expect(plans()).toEqual([
    "1.1 Add up: pending; 2 Tidy up: pending",
    "1.1 Add up: in_progress; 2 Tidy up: pending",
    "1.1 Add up: completed; 2 Tidy up: pending",
    "1.1 Add up: completed; 2 Tidy up: in_progress",
    "1.1 Add up: completed; 2 Tidy up: completed",
  ]);
  expect(editor.said(session)).toMatch(
    /^\*\*1\.1 Add up\*\*: closed \([0-9a-f]{10}\)\.\n\n\*\*2 Tidy up\*\* waits for you\.\n\n\*\*2 Tidy up\*\*: closed \([0-9a-f]{10}\)\.\n\n2 of 2 tasks closed\. The commits are on `kit\/cart`/,
  );
  expect(editor.permissions).toMatchObject([
    {
      toolCall: {
        title: "Accept the task 2 Tidy up?",
        content: [
          { type: "content", content: { text: expect.stringContaining("- no-criteria: ") } },
          {
            type: "diff",
            path: expect.stringMatching(/\.kit\/work\/cart\.2\/src\/cart\.mjs$/),
            oldText: expect.stringContaining("// tidy\n"),
            newText: expect.stringContaining("export const tidied = true;\n"),
          },
        ],
      },
    },
  ]);
  expect(updates("tool_call").map(({ title }) => title)).toContain("1.1 edit src/cart.mjs");
  expect(updates("tool_call_update").at(-1)).toMatchObject({ status: expect.not.stringMatching("pending") });
  expect(await repository.git("status", "--porcelain")).toBe("");
  expect(await repository.git("rev-parse", "HEAD")).toBe(before);
  expect(await repository.git("show", `kit/cart:${tasksPath}`)).toContain("- [x] 2. Tidy up");

  // A second command begins with what is left.
  expect(await editor.prompt(session, "/spec cart")).toBe("end_turn");
  expect(plans().at(-1)).toBe("1.2 Discounts: completed");
  expect(await editor.prompt(session, "/spec cart")).toBe("end_turn");
  expect(editor.said(session)).toMatch(/No task is open\.\n\n$/);
}, 240_000);

test("a feature that is none, a task that is none and a missing feature are named", async () => {
  for (const [text, message] of [
    ["/spec", "/spec takes the feature whose open tasks are to be done."],
    ["/spec basket", 'No feature "basket" has tasks in the last commit.'],
    ["/spec cart 9", 'The feature "cart" has no task "9".'],
  ] as const)
    await expect(editor.prompt(session, text), text).rejects.toThrow(message);
  expect(updates("plan")).toEqual([]);
  expect(await repository.git("branch")).toBe("* main");
}, 120_000);

test("a refused attempt is told, and a task that was given up stays open in the plan", async () => {
  await editor.leave();
  await begin("empty");
  expect(await editor.prompt(session, "/spec cart 1.1")).toBe("end_turn");
  const said = editor.said(session);
  expect(said).toContain("**1.1 Add up**: attempt 1 was refused.\n\n- asserts-nothing: ");
  expect(said).toContain("**1.1 Add up**: refused.");
  expect(said).toContain("0 of 1 tasks closed.");
  expect(plans().at(-1)).toBe("1.1 Add up (refused): pending");
}, 240_000);

test("a stop ends the run, and an editor that gives no answer leaves the task waiting for the next command", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<RequestPermissionResponse>();
  editor.decide = () => {
    asked.resolve();
    return answer.promise;
  };
  const stopped = editor.prompt(session, "/spec cart 2");
  await asked.promise;
  await editor.agent.notify(methods.agent.session.cancel, { sessionId: session });
  answer.resolve({ outcome: { outcome: "cancelled" } });
  expect(await stopped).toBe("cancelled");
  const said = editor.said(session);
  expect(said).toContain("Stopped. Closed tasks stay closed");
  expect(said).not.toContain("The same command asks again");
  const list = async (): Promise<string[]> =>
    JSON.parse((await runKit(["runs", "list", "--json"], { cwd: repository.root })).stdout).runs.map(
      ({ status }: { readonly status: string }) => status,
    );

  editor.decide = () => ({ outcome: { outcome: "cancelled" } });
  expect(await editor.prompt(session, "/spec cart 2")).toBe("end_turn");
  expect(editor.said(session)).toContain("The task 2 waits. The same command asks again.");
  // Leaving the engine can come before the wait.
  expect(await list()).toEqual([expect.stringMatching(/^(?:waiting|queued)$/), "cancelled"]);

  editor.permissions.length = 0;
  editor.decide = (request) => choose(isTask(request) ? "deny" : "allow");
  expect(await editor.prompt(session, "/spec cart")).toBe("end_turn");
  expect(editor.permissions).toHaveLength(1);
  expect(editor.said(session)).toMatch(/^Goes on with the run run_\w+.*\*\*2 Tidy up\*\*: denied\./s);
  expect(await repository.git("log", "--oneline", "main..kit/cart")).toBe("");
}, 240_000);

test("an editor that closes with an open question leaves the run, and another process goes on with it", async () => {
  const asked = Promise.withResolvers<void>();
  editor.decide = () => {
    asked.resolve();
    return Promise.withResolvers<RequestPermissionResponse>().promise;
  };
  editor.prompt(session, "/spec cart 2").catch(() => undefined);
  await asked.promise;
  expect(await editor.leave()).toBe(0);
  const listed = await runKit(["runs", "list", "--json"], { cwd: repository.root });
  // Leaving the engine can come before the wait.
  expect(JSON.parse(listed.stdout).runs).toEqual([
    expect.objectContaining({ status: expect.stringMatching(/^(?:waiting|queued)$/) }),
  ]);

  await begin("honest");
  editor.decide = () => choose("accept");
  expect(await editor.prompt(session, "/spec cart")).toBe("end_turn");
  expect(editor.said(session)).toMatch(/^Goes on with the run run_\w+.*\*\*2 Tidy up\*\*: closed/s);
}, 240_000);

wallTest(
  "a server that holds the folder does the work, and a person is asked in the editor",
  async () => {
    const running: Running = new Map();
    await serveKit(running, ["start", "--port", "0"], {
      ...{ begin: beginProcess, cwd: repository.root, env: { ...withoutKeys, KIT_TRUST: "1" } },
    });
    try {
      editor.decide = () => choose("accept");
      expect(await editor.prompt(session, "/spec cart 2")).toBe("end_turn");
      expect(JSON.stringify(updates("agent_thought_chunk"))).toContain(
        "The server of this project does the work",
      );
      expect(editor.permissions.map(({ toolCall }) => toolCall.title)).toEqual([
        "Accept the task 2 Tidy up?",
      ]);
      expect(editor.said(session)).toContain("1 of 1 tasks closed. The commits are on `kit/cart`");
      expect(await repository.git("status", "--porcelain")).toBe("");
      await expect(editor.prompt(session, "/spec basket")).rejects.toThrow("has tasks in the last commit");
    } finally {
      await endAll(running);
    }
  },
  240_000,
);
