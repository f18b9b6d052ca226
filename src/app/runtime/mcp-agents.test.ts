import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { McpConfig } from "../../mcp/servers/mcp-config.ts";
import { openProject } from "../../project/open-project.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { createScriptedModel, type Script, type ScriptedModel } from "../../testing/scripted-model.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import type { App } from "../service/app.ts";
import { openProjectService } from "../service/open-project-service.ts";

const servers = join(import.meta.dirname, "../../mcp/testing");
const tools = { command: process.execPath, args: [join(servers, "serve-process.ts")] };

interface Opened {
  readonly app: App;
  readonly model: ScriptedModel;
  readonly events: readonly KitEvent[];
}

async function open(mcp: McpConfig, script: Script, defaults: object = {}): Promise<Opened> {
  const folder = await createTemporaryRepository({ "src/agents/plain.ts": plainAgent });
  const project = await openProject({ root: folder.root, indexFile: ":memory:" });
  const model = createScriptedModel(script);
  const { app } = await openProjectService({
    project,
    loaded: { config: { mcp }, environment: { PATH: process.env.PATH } },
    engine: "memory",
    defaults: { model: "scripted/test", ...defaults },
    models: { "scripted/test": model },
    sandbox: local({ root: folder.root }),
    store: new InMemorySessionStore(),
  });
  const events: KitEvent[] = [];
  app.onEvent((event) => events.push(event));
  onTestFinished(async () => {
    await app.close();
    await project.close();
    await folder[Symbol.asyncDispose]();
  });
  return { app, model, events };
}

// As `createAgent` of kit makes it.
const plainAgent = `export default { kind: "kit.agent", describe: async () => ({ mcp: false }) };`;

async function ask(app: App, agent = "default"): Promise<string> {
  const { text } = await (await app.instance(agent, "1")).session().prompt("Go on.");
  return text;
}

const toolNames = (model: ScriptedModel, call = 0): readonly string[] =>
  (model.calls[call]?.tools ?? []).map((tool) => tool.name);

/** The results of the tool calls so far, in their order, as the model was shown them. */
function resultsIn(model: ScriptedModel): readonly string[] {
  const prompt = model.calls.at(-1)?.prompt ?? [];
  return prompt
    .filter((message) => message.role === "tool")
    .map((message) => JSON.stringify(message.content));
}

test("an agent calls the tool of a server, and its result is in the history and in the events", async () => {
  const { app, model, events } = await open({ servers: { tools } }, [
    { toolCalls: [{ name: "mcp__tools__add", input: { a: 2, b: 3 } }] },
    { text: "It is 5." },
  ]);
  expect(await ask(app)).toBe("It is 5.");
  expect(toolNames(model)).toContain("mcp__tools__add");
  expect(toolNames(model)).toContain("read");
  expect(resultsIn(model)[0]).toContain('{\\"sum\\":5}');
  expect(events.find((event) => event.type === "tool_end")).toMatchObject({
    tool: "mcp__tools__add",
    result: '{"sum":5}',
    is_error: false,
  });
  expect(app.problems()).toEqual([]);
});

test("invalid arguments are reported to the model before the server is called", async () => {
  const { app, model } = await open({ servers: { tools } }, [
    { toolCalls: [{ name: "mcp__tools__add", input: { a: "two" } }] },
    { text: "Sorry." },
  ]);
  await ask(app);
  expect(resultsIn(model)[0]).toContain("The arguments are not what mcp__tools__add takes");
});

campaignTest(
  "a call to a tool past the limit says that it is not available and how to reach it",
  async () => {
    const hostile = (scenario: string): object => ({
      command: process.execPath,
      args: [join(servers, "hostile/serve-process.ts"), scenario],
      timeout_seconds: 60,
    });
    const { app, model } = await open(
      { servers: { many: hostile("many-tools"), endless: hostile("endless-tools") } },
      [
        {
          toolCalls: [
            { name: "mcp__many__tool_128", input: {} },
            { name: "mcp__many__tool_5000", input: {} },
            { name: "mcp__endless__tool_9999", input: {} },
            { name: "mcp__endless__tool_10000", input: {} },
          ],
        },
        { text: "Sorry." },
      ],
    );
    await ask(app);
    expect(toolNames(model)).toContain("mcp__many__tool_127");
    const results = resultsIn(model).join();
    const leftOut = (server: string, tool: string): string =>
      `The MCP server \\"${server}\\" has the tool \\"${tool}\\", but it is not available: kit accepts only the first 128 of its tools. The person who configured the server can add it to \`allow\`, or set mcp.mode to search_execute.`;
    expect(results).toContain(leftOut("many", "mcp__many__tool_128"));
    expect(results).toContain('There is no tool named \\"mcp__many__tool_5000\\".');
    expect(results).toContain(leftOut("endless", "mcp__endless__tool_9999"));
    expect(results).toContain(
      'among those that kit reads from the MCP server \\"endless\\", which lists more.',
    );
  },
);

test("a call that a crash cut off is a result whose outcome is unknown", async () => {
  const { app } = await open({ servers: { tools } }, [
    { toolCalls: [{ name: "mcp__tools__crash", input: { code: 1 } }] },
    { text: "I will check." },
  ]);
  expect(await ask(app)).toBe("I will check.");
  const history = await (await app.instance("default", "1")).session().history();
  const result = history.find((message) => message.role === "tool");
  expect(result?.content).toMatchObject([{ is_error: true, outcome: "unknown" }]);
});

test("a server that is down is a warning in the operation and a problem of the app, and the agent works", async () => {
  const { app, events } = await open({ servers: { gone: { command: "kit-has-no-such-command" } } }, [
    { text: "Fine." },
  ]);
  expect(app.problems()).toEqual([]);
  expect(await ask(app)).toBe("Fine.");
  expect(events.filter((event) => event.type === "log")).toMatchObject([
    {
      level: "warning",
      message: expect.stringMatching(
        /^MCP server "gone": It is not available\. Its command or its working folder does not exist\./,
      ),
      data: { mcp_server: "gone" },
    },
  ]);
  expect(app.problems()).toEqual([
    {
      path: "mcp.servers.gone",
      message: expect.stringContaining("Its command or its working folder does not exist"),
    },
  ]);
});

test("a call to a tool of a server that is down says why, how often it was tried, and when it is tried again", async () => {
  const fault = { command: "node", env: { KEY: "$" + "{KIT_NO_SUCH_KEY}" } };
  const { app, model } = await open(
    { servers: { gone: { command: "kit-has-no-such-command" }, odd: fault, tools } },
    [
      {
        toolCalls: [
          { name: "mcp__gone__add", input: {} },
          { name: "mcp__odd__add", input: {} },
          { name: "mcp__tools__no_such", input: {} },
          { name: "mcp__nobody__add", input: {} },
        ],
      },
      { text: "Sorry." },
    ],
  );
  await ask(app);
  const results = resultsIn(model).join("\n");
  expect(results).toMatch(
    /The MCP server \\"gone\\" is down, so the tool \\"mcp__gone__add\\" cannot be called\. Its command or its working folder does not exist.*? kit has tried it once\. kit tries again (in \d seconds at the earliest|at the next step)\. Continue without it until then\./,
  );
  expect(results).toMatch(
    /The MCP server \\"odd\\" is down, .*? A person has to correct its configuration\./,
  );
  expect(results).toContain('There is no tool named \\"mcp__tools__no_such\\".');
  expect(results).toContain('There is no tool named \\"mcp__nobody__add\\".');
});

test("with search_execute the model finds tools by words and calls them", async () => {
  const { app, model } = await open({ mode: "search_execute", search_limit: 2, servers: { tools } }, [
    { toolCalls: [{ name: "mcp_search", input: { query: "adds numbers" } }] },
    { toolCalls: [{ name: "mcp_execute", input: { tool: "mcp__tools__add", arguments: { a: 2 } } }] },
    { toolCalls: [{ name: "mcp_execute", input: { tool: "mcp__tools__ad", arguments: {} } }] },
    { toolCalls: [{ name: "mcp_execute", input: { tool: "mcp__tools__add", arguments: { a: 2, b: 3 } } }] },
    { text: "5" },
  ]);
  expect(await ask(app)).toBe("5");
  expect(toolNames(model).filter((name) => name.startsWith("mcp"))).toEqual(["mcp_search", "mcp_execute"]);
  expect(resultsIn(model)[0]).toContain("mcp__tools__add\\nAdds two numbers.\\nInput schema: {");
  expect(resultsIn(model)[1]).toContain("The arguments are not what mcp__tools__add takes");
  expect(resultsIn(model)[2]).toContain("Did you mean mcp__tools__add?");
  expect(resultsIn(model)[3]).toContain('{\\"sum\\":5}');
});

campaignTest("a search names the servers that are down, and starts none before it is made", async () => {
  const { app, model, events } = await open(
    { mode: "search_execute", servers: { tools, gone: { command: "kit-has-no-such-command" } } },
    [
      { toolCalls: [{ name: "mcp_search", input: { query: "echo" } }] },
      { text: "Done." },
      { text: "Again." },
    ],
  );
  await ask(app);
  expect(resultsIn(model)[0]).toContain('The MCP server \\"gone\\" is not available.');
  expect(resultsIn(model)[0]).toContain("mcp__tools__echo");
  expect(events.filter((event) => event.type === "log")).toEqual([]);
  await ask(app);
  expect(events.filter((event) => event.type === "log")).toHaveLength(1);
});

test("an agent can switch off the tools of servers, and its own tools take precedence over theirs", async () => {
  const { app, model } = await open({ servers: { tools } }, () => ({ text: "Fine." }), {
    tools: [
      { name: "mcp__tools__echo", description: "Mine.", input: { type: "object" }, execute: () => "mine" },
    ],
  });
  await ask(app, "plain");
  expect(toolNames(model).filter((name) => name.startsWith("mcp"))).toEqual(["mcp__tools__echo"]);
  await ask(app);
  const echo = model.calls[1]?.tools?.find((tool) => tool.name === "mcp__tools__echo");
  expect(echo).toMatchObject({ description: "Mine." });
  expect(toolNames(model, 1)).toContain("mcp__tools__add");
});
