import { gzipSync } from "node:zlib";
import type { Application } from "../application.ts";
import { bundleWorker } from "../bundle-worker.ts";
import { type BuildProblem, textFile } from "../bundler.ts";
import type { Deployment, DeploymentContext, Target, TargetFile } from "./target.ts";

/** The platform limits the compressed size of a worker, by its plan. */
const paidBytes = 10 * 1024 * 1024;
const freeBytes = 3 * 1024 * 1024;

/** The compatibility date: from this date on the runtime has the Node modules that kit imports. */
const compatibilityDate = "2026-11-01";

/** A worker and one Durable Object, whose SQLite is the session store, the engine and the index. */
export const cloudflare: Target = {
  name: "cloudflare",
  summary: "a worker with a Durable Object: wrangler deploy",
  application: "app",
  placement: "output",
  problems: (app) => [
    ...sandboxProblems(app),
    ...configProblems(app),
    ...pythonProblems(app),
    ...packageProblems(app),
  ],
  warnings: () => [],
  files: (app) => [wranglerFile(app)],
  async bundle(app) {
    const code = textFile(await bundleWorker(app));
    const compressed = gzipSync(code).byteLength;
    const size = `The worker has ${megabytes(code.byteLength)}, ${megabytes(compressed)} compressed; Workers take ${megabytes(freeBytes)} compressed on the free plan, ${megabytes(paidBytes)} on the paid one.`;
    const isTooLarge = compressed > paidBytes;
    return {
      files: new Map([["worker.js", code]]),
      problems: isTooLarge
        ? [
            {
              path: "app/worker.js",
              message: `would have ${megabytes(compressed)} compressed, and Workers take ${megabytes(paidBytes)}.`,
              hint: "Leave out packages and files (build.include, folders of skills), or build for node or docker.",
            },
          ]
        : [],
      warnings:
        compressed > freeBytes && !isTooLarge
          ? [
              `The worker needs the paid plan: it has ${megabytes(compressed)} compressed, and the free one takes ${megabytes(freeBytes)}.`,
            ]
          : [],
      size,
    };
  },
  next: (app, folder) => [
    `cd ${folder}`,
    ...["KIT_API_KEYS", ...app.variables].map((name) => `npx wrangler secret put ${name}`),
    "npx wrangler deploy",
    "# Here: npx wrangler dev, with the variables in .dev.vars, which belongs in no repository",
  ],
  deployment: deploymentOf,
};

function wranglerFile({ name }: Application): TargetFile {
  const config = {
    $schema: "node_modules/wrangler/config-schema.json",
    name,
    main: "app/worker.js",
    no_bundle: true,
    compatibility_date: compatibilityDate,
    compatibility_flags: ["nodejs_compat"],
    durable_objects: { bindings: [{ name: "KIT", class_name: "Kit" }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["Kit"] }],
    observability: { enabled: true },
  };
  return {
    path: "wrangler.jsonc",
    content: `// Made by kit build. It is yours: kit shows what it would write, and changes it with --force only.\n${JSON.stringify(config, null, 2)}\n`,
  };
}

const remote = "Give it a remote sandbox, e2b(), daytona() or runloop(), or build for docker.";
const remoteKinds: ReadonlySet<string> = new Set(["e2b", "daytona", "runloop"]);

/** Workers have no persistent disk and cannot start processes. */
function sandboxProblems({ agents, loaded }: Application): readonly BuildProblem[] {
  const problems = agents.flatMap(({ path, profile }): BuildProblem[] => {
    const own = profile?.sandbox?.name;
    const found: BuildProblem[] = [];
    if (own !== undefined && !remoteKinds.has(own))
      found.push({
        path,
        message: `works in the sandbox ${own}, and Workers have ${own === "local" || own === "virtual" ? "no disk for it and run no commands" : "no way to reach it that was tried"}.`,
        hint: remote,
      });
    const isRemote = own !== undefined && remoteKinds.has(own);
    if (
      !isRemote &&
      (profile?.allowedCommands ?? []).length > 0 &&
      !isRemoteConfig(loaded.config.agent?.sandbox)
    )
      found.push({
        path,
        message: "grants commands (allowedCommands), and Workers run none.",
        hint: remote,
      });
    return found;
  });
  const configured = loaded.config.agent?.sandbox;
  if (configured !== undefined && !isRemoteConfig(configured))
    problems.push({
      path: configName(loaded.file),
      message: `has agent.sandbox = ${JSON.stringify(typeof configured === "string" ? configured : configured.name)}, and Workers have no disk for it and run no commands.`,
      hint: remote,
    });
  return problems;
}

function isRemoteConfig(sandbox: unknown): boolean {
  const name = typeof sandbox === "object" && sandbox !== null && "name" in sandbox ? sandbox.name : sandbox;
  return typeof name === "string" && remoteKinds.has(name);
}

function configProblems({ loaded: { config, file } }: Application): readonly BuildProblem[] {
  const path = configName(file);
  const problems: BuildProblem[] = [];
  for (const [name, { command }] of Object.entries(config.mcp?.servers ?? {}))
    if (command !== undefined)
      problems.push({
        path,
        message: `starts the MCP server ${JSON.stringify(name)} as a process, and Workers start none.`,
        hint: "Name the address of a server that speaks HTTP (url), or take the server out.",
      });
  if (config.store !== undefined)
    problems.push({
      path,
      message: "names a store, and sessions lie in the SQLite of the Durable Object here.",
      hint: "Leave store out: it is SQLite on disk elsewhere by itself.",
    });
  const { engine = {} } = config;
  if (engine.folder !== undefined || engine.kind !== undefined || engine.url !== undefined)
    problems.push({
      path,
      message: "says where the engine keeps work, and that is the SQLite of the Durable Object here.",
      hint: "Leave engine.folder, engine.kind and engine.url out, or set KIT_ENGINE_URL where others run it.",
    });
  if (config.server?.read_only === true)
    problems.push({
      path,
      message: "has server.read_only, and the worker serves agents, which write.",
      hint: "Leave it out, or build for node.",
    });
  return problems;
}

function pythonProblems({ agents }: Application): readonly BuildProblem[] {
  return agents
    .filter(({ profile }) => profile?.python !== undefined && profile.python !== false)
    .map(({ path }) => ({
      path,
      message: "runs Python, which needs a process of its own, and Workers start none.",
      hint: "Leave python out, or build for docker.",
    }));
}

const isNative = (reason: string): boolean =>
  /native code|for one system|script of its installation/.test(reason);

function packageProblems({ outside }: Application): readonly BuildProblem[] {
  return [...outside].flatMap(([name, reason]) =>
    isNative(reason)
      ? [
          {
            path: "package.json",
            message: `lists ${name}, which the code imports: ${reason}, and workerd loads none.`,
            hint: "Use a package of plain JavaScript or WebAssembly for it, or build for docker.",
          },
        ]
      : [],
  );
}

function configName(file: string | undefined): string {
  return file === undefined ? "the configuration" : (file.split(/[/\\]/).at(-1) ?? file);
}

function deploymentOf(app: Application, { folder, environment }: DeploymentContext): Deployment {
  const secrets = ["KIT_API_KEYS", ...app.variables].filter((name) => environment[name]);
  return {
    tools: ["wrangler"],
    install: "Install it: npm install --global wrangler.",
    check: ["whoami"],
    signIn: "wrangler login",
    required: ["KIT_API_KEYS"],
    steps: [
      { args: ["deploy", "--dry-run"], cwd: folder },
      { args: ["deploy"], cwd: folder },
      ...secrets.map((name) => ({ args: ["secret", "put", name], cwd: folder, input: name })),
    ],
    address: { printed: [/(https:\/\/[\w.-]+\.workers\.dev)/] },
    remarks: [
      "The worker asks for a key that is among KIT_API_KEYS. Its state is in the Durable Object, and stays there over deployments.",
    ],
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
