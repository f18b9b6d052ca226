import { afterAll, expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { createPython } from "../../python/create-python.ts";
import { definePythonDataclass } from "../../python/dataclass-registry.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";

const python = createPython();
afterAll(() => python.close());

const silent = (): ReturnType<typeof createScriptedModel> => createScriptedModel([]);

test("a session runs Python with its own variables, and the history does not record it", async () => {
  const agent = createTestAgent(silent(), {}, { python });
  const session = agent.session();
  await session.runPython("total = sum(prices)", { inputs: { prices: [1, 2, 3.5] } });
  expect((await agent.session().runPython("total")).result).toBe(6.5);
  await expect(agent.session("other").runPython("total")).rejects.toMatchObject({ code: "python_error" });
  expect(await session.history()).toEqual([]);
  await agent.sessions.delete("default");
  await expect(session.runPython("total")).rejects.toMatchObject({ exception: { type: "NameError" } });
});

test("the profile's Python options apply to every run, and the call's options override them", async () => {
  const agent = createTestAgent(
    silent(),
    {
      python: {
        functions: { rate: () => 2, name: () => "profile" },
        dataclasses: [
          definePythonDataclass({
            name: "Item",
            fields: ["price"],
            methods: { doubled: (self) => Number(self.price) * 2 },
          }),
        ],
        resourceLimits: { maxRecursionDepth: 20 },
      },
    },
    { python },
  );
  const session = agent.session();
  session.registerPythonDataclass({ name: "Pair", fields: ["a", "b"] });
  const { result } = await session.runPython("[rate(), name(), Item(4).doubled(), Pair(1, 2).b]", {
    functions: { name: () => "call" },
  });
  expect(result).toEqual([2, "call", 8, 2]);
  const deep = "def f(n): return 0 if n == 0 else f(n - 1)\nf(50)";
  await expect(session.runPython(deep)).rejects.toMatchObject({ exception: { type: "RecursionError" } });
  expect((await session.runPython(deep, { resourceLimits: { maxDurationSecs: 5 } })).result).toBe(0);
});

test("Python runs as an operation: it is queued, emits events and can be aborted", async () => {
  const agent = createTestAgent(silent(), {}, { python });
  const events: KitEvent[] = [];
  agent.onEvent((event) => events.push(event));
  const session = agent.session();
  const endless = session.runPython("while True: pass", { resourceLimits: { maxDurationSecs: 60 } });
  const next = session.runPython("1 + 1");
  setTimeout(() => session.abort(), 300);
  await expect(endless).rejects.toMatchObject({ code: "aborted" });
  expect((await next).result).toBe(2);
  const kinds = events.flatMap((event) =>
    event.type === "operation" ? [`${event.operation_kind} ${event.is_error}`] : [],
  );
  expect(kinds).toEqual(["python true", "python false"]);
});

test("a dump carries the variables to another process", async () => {
  const first = createTestAgent(silent(), {}, { python }).session();
  await first.runPython("found = {'a': [1, 2]}");
  const second = createTestAgent(silent(), {}, { python }).session();
  await second.loadPython(await first.dumpPython());
  expect((await second.runPython("found['a'][1]")).result).toBe(2);
});

test("the model runs code and sees its output, its result and its errors", async () => {
  const call = (id: string, code: string): ScriptedTurn => ({
    toolCalls: [{ id, name: "run_code", input: { code } }],
  });
  const model = createScriptedModel([
    call("1", "def area(w, h): return w * h\nprint('working')\narea(2, 3.5)"),
    call("2", "[area(1, 1), lookup('a'), open]\nx = open('secret')"),
    call("3", "kept = [lambda: 1]"),
    call("4", "print('x' * 200000)"),
    call("5", "sum(x > 2 for x in [1, 3])"),
    { text: "Done." },
  ]);
  const agent = createTestAgent(
    model,
    {
      python: {
        functions: {
          lookup: { signature: "lookup(key: str) -> int", description: "Finds a number.", execute: () => 7 },
        },
      },
    },
    { python },
  );
  const { messages } = await agent.session().prompt("Go.");
  const results = messages.flatMap((message) => (message.role === "tool" ? message.content : []));
  const texts = results.map(({ content }) =>
    content.map((part) => (part.type === "text" ? part.text : "")).join(""),
  );
  expect(texts[0]).toBe("working\nResult: 7.0");
  expect(texts[1]).toBe(
    "Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n    x = open('secret')\n        ~~~~~~~~~~~~~~\nPermissionError: Permission denied: 'secret'",
  );
  expect(results[1]?.is_error).toBe(true);
  expect(texts[2]).toContain("[kept is not kept for the next call: only a function made by def or lambda");
  expect(texts[3]?.length).toBeLessThan(51_000);
  const [tool] = model.calls[0]?.tools?.filter(({ name }) => name === "run_code") ?? [];
  expect(texts[4]).toMatch(/TypeError: .*\nHint: .*write sum\(1 for x in a if x > 2\)/);
  // Python that models write but Monty does not support, and Python that it evaluates wrongly.
  for (const expected of [
    "key=str.lower",
    "int(s, 16)",
    "a[1:3] = b",
    "two levels up",
    "re.split",
    "x % y",
    "inf.0",
  ]) {
    expect(JSON.stringify(tool)).toContain(expected);
  }
  expect(JSON.stringify(tool)).toContain("- lookup(key: str) -> int: Finds a number.");
});

test("the tool exists if the profile enables Python, and its name is then reserved", async () => {
  const offered = async (
    profile: Parameters<typeof createTestAgent>[1],
    runtime = {},
  ): Promise<readonly string[]> => {
    const model = createScriptedModel([{ text: "Hello." }]);
    await createTestAgent(model, profile, runtime).session().prompt("Hello?");
    return (model.calls[0]?.tools ?? []).map(({ name }) => name);
  };
  expect(await offered({ python: true }, { python })).toContain("run_code");
  expect(await offered({ python: true })).not.toContain("run_code");
  expect(await offered({}, { python })).not.toContain("run_code");
  const own = defineTool({
    name: "run_code",
    description: "Mine.",
    input: { type: "object" },
    execute: () => "",
  });
  expect(await offered({ tools: [own] }, { python })).toContain("run_code");
  await expect(offered({ tools: [own], python: true }, { python })).rejects.toThrow("built-in tool");
});

test("a runtime without Python refuses a run with an error that says so", async () => {
  const session = createTestAgent(silent()).session();
  await expect(session.runPython("1")).rejects.toMatchObject({ code: "unavailable" });
  expect(() => session.registerPythonDataclass({ name: "A", fields: [] })).toThrow(
    "This agent has no Python.",
  );
});
