import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../agents/define/create-agent.ts";
import type { Sandbox, SandboxFactory } from "../sandboxes/contract.ts";
import { local } from "../sandboxes/local/local-sandbox.ts";
import { virtual } from "../sandboxes/virtual/virtual-sandbox.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { initAgent, type OpenAgentsOptions, openAgents } from "./service/open-service.ts";

/** The files of the default agent's session, in a project of these files. */
async function open(
  files: Readonly<Record<string, string>>,
  options: Omit<OpenAgentsOptions, "root"> = {},
): Promise<{ readonly sandbox: Sandbox; readonly root: string }> {
  const folder = await createTemporaryRepository(files);
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const app = await openAgents({ env: {}, ...options, root: folder.root });
  onTestFinished(() => app.close());
  const instance = await app.instance("default", "1");
  return { sandbox: await instance.session().fs(), root: folder.root };
}

const envOf = async (sandbox: Sandbox): Promise<string> => (await sandbox.exec({ command: ["env"] })).stdout;

test("the local sandbox of a configuration is the project, or a folder below it", async () => {
  const opened = await open({ "kit.toml": '[agent]\nsandbox = "local"\n', "a.txt": "alpha" });
  expect(opened.sandbox.name).toBe("local");
  expect(await opened.sandbox.readFile("a.txt")).toBe("alpha");

  const toml = '[agent]\nsandbox = "local"\n[sandbox.options]\nroot = "api"\n';
  const part = await open({ "kit.toml": toml, "api/b.txt": "beta" });
  expect(await part.sandbox.readFile("b.txt")).toBe("beta");
  await expect(part.sandbox.readFile("../kit.toml")).rejects.toMatchObject({ code: "forbidden" });
});

test("the virtual sandbox of a configuration has the files and the folder that it names", async () => {
  const toml = `
    [agent]
    sandbox = "virtual"
    [sandbox.options]
    folder = "workspaces"
    files = { "TASK.md" = "# What to do" }
    env = { STAGE = "test" }
  `;
  const { sandbox, root } = await open({ "kit.toml": toml });
  expect(sandbox.name).toBe("virtual");
  expect(await sandbox.readFile("TASK.md")).toBe("# What to do");
  expect((await sandbox.exec({ command: "pwd" })).stdout).toContain(`${root}/workspaces/default-1-default-`);
  expect(await envOf(sandbox)).toContain("STAGE=test");
});

test.each(["virtual", "local"])(
  "commands in %s get the listed variables of kit's environment",
  async (kind) => {
    const toml = `[agent]\nsandbox = "${kind}"\n[sandbox.options]\nenv = ["LISTED", "UNSET"]\n`;
    const { sandbox } = await open({ "kit.toml": toml }, { env: { LISTED: "yes", OTHER: "no" } });
    const text = await envOf(sandbox);
    expect(text).toContain("LISTED=yes");
    expect(text).not.toMatch(/OTHER|UNSET/);
  },
);

test("kit.config.ts can define a sandbox, and the sandbox of a program takes precedence", async () => {
  const sandbox = '{ name: "mine", open: async () => ({ name: "mine", close: async () => {} }) }';
  const files = { "kit.config.ts": `export default { agent: { sandbox: ${sandbox} } };` };
  expect((await open(files)).sandbox.name).toBe("mine");
  expect((await open(files, { sandbox: virtual() })).sandbox.name).toBe("virtual");
});

test("an agent's own sandbox wins, and works in the agent's project by default", async () => {
  const folder = await createTemporaryRepository({ "kit.toml": '[agent]\nsandbox = "virtual"\n' });
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const placeOf = async (sandbox: SandboxFactory): Promise<string> => {
    const agent = await initAgent(createAgent({ sandbox }), { root: folder.root, env: {} });
    onTestFinished(() => agent.close());
    return (await (await agent.session().fs()).exec({ command: "pwd" })).stdout;
  };
  expect(await placeOf(local())).toBe(`${folder.root}\n`);
  expect(await placeOf(virtual())).toContain(`${folder.root}/.kit/sandboxes/`);
});

test("the configured isolation applies to every sandbox, and no option weakens it", async () => {
  const files = { "kit.toml": '[sandbox]\nisolation = "required"\n', "a.txt": "alpha" };
  const opened = await open(files, { sandbox: local({ root: "/", isolation: "off" }) });
  const refused = opened.sandbox.exec({ command: "true" });
  await expect(refused).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("required"),
  });
  const off = await open({ "kit.toml": '[agent]\nsandbox = "local"\n[sandbox]\nisolation = "off"\n' });
  expect(await off.sandbox.isolation?.()).toEqual({
    wall: "none",
    description: "Commands run without isolation: sandbox.isolation is off.",
  });
  const limited = await open({ "kit.toml": "[sandbox.limits]\nmemory_mb = 99\nprocesses = 9\n" });
  const { wall, description } = (await limited.sandbox.isolation?.()) ?? {};
  if (wall === "bubblewrap") expect(description).toMatch(/99 MiB/);
});

test.each([
  ["e2b", 'upload = true\nnetwork = ["registry.npmjs.org"]\ntemplate = "node"\nidle_seconds = 60'],
  ["daytona", 'upload = "packages/api"\nnetwork = "any"\nimage = "debian:12"'],
  ["modal", 'upload = true\nimage = "node:24"\napp = "agents"\nenvironment = "staging"\nidle_seconds = 3600'],
  ["runloop", 'upload = true\nblueprint = "node"\nsize = "SMALL"\nfolder = "/home/user/app"'],
])("a configuration names machines of %s, and nothing is started by that", async (kind, options) => {
  const toml = `[agent]\nsandbox = "${kind}"\n[sandbox.options]\n${options}\n`;
  const { sandbox } = await open({ "kit.toml": toml });
  expect(sandbox.name).toBe(kind);
});

test.each([
  ['[sandbox]\nisolation = "requierd"\n', "required"],
  ["[sandbox.limits]\nmemory_mb = 1\n", "memory_mb"],
  ['[agent]\nallow_network = ["https://example.com"]\n', "without a scheme"],
  ['[agent]\nallow_network = ["*"]\n', "api.github.com"],
  ['[agent]\nsandbox = "e2"\n', "e2b"],
  ['[agent]\nsandbox = "e2b"\n[sandbox.options]\ntemplat = "x"\n', "template"],
  [
    '[agent]\nsandbox = "e2b"\n[sandbox.options]\nimage = "debian:12"\n',
    "is not an option of the e2b sandbox",
  ],
  ['[agent]\nsandbox = "daytona"\n[sandbox.options]\nidle_seconds = 1\n', "10 to 86400"],
  ['[agent]\nsandbox = "daytona"\n[sandbox.options]\nnetwork = "all"\n', "network"],
  ['[agent]\nsandbox = "daytona"\n[sandbox.options]\nfolder = "workspace"\n', "absolute"],
  ['[agent]\nsandbox = "runloop"\n[sandbox.options]\nfolder = "workspace"\n', "absolute"],
  ['[agent]\nsandbox = "runloop"\n[sandbox.options]\nsize = "HUGE"\n', "X_SMALL"],
  [
    '[agent]\nsandbox = "runloop"\n[sandbox.options]\nimage = "x"\n',
    "is not an option of the runloop sandbox",
  ],
  [
    '[agent]\nsandbox = "modal"\n[sandbox.options]\nsnapshot = "x"\n',
    "is not an option of the modal sandbox",
  ],
  ['[agent]\nsandbox = "Modal"\n', "did you mean modal"],
])(
  "a mistake in the settings of isolation, or of a vendor's machines, is reported: %j",
  async (toml, reported) => {
    await using folder = await createTemporaryRepository({ "kit.toml": toml });
    await expect(openAgents({ root: folder.root, env: {} })).rejects.toSatisfy((error: unknown) =>
      JSON.stringify([String(error), error]).includes(reported),
    );
  },
);
