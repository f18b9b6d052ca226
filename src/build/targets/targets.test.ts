import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import fc from "fast-check";
import { parse as parseToml } from "smol-toml";
import { expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import type { Application } from "../application.ts";
import { findTarget, targets } from "./targets.ts";

interface Facts {
  readonly name?: string;
  readonly agent?: string;
  readonly variables?: readonly string[];
  readonly folder?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly unlocked?: string;
  readonly isJudged?: boolean;
}

/** The part of an application that targets read. */
function appOf({
  name = "shop",
  agent = "reviewer",
  variables = [],
  folder = "",
  dependencies = {},
  unlocked,
  isJudged = false,
}: Facts): Application {
  const part = {
    name,
    root: "/nowhere",
    folder,
    dependencies,
    unlocked,
    isJudged,
    variables,
    agents: [{ name: agent, path: `src/agents/${agent}.ts`, profile: undefined }],
    loaded: { config: {} },
  };
  return part as unknown as Application;
}

function fileOf(target: string, name: string, facts: Facts = {}): string {
  const found = findTarget(target)
    .files(appOf(facts))
    .find(({ path }) => path.endsWith(name));
  return found?.content ?? "";
}

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  ".toml": parseToml,
  ".json": (text) => JSON.parse(text),
  ".jsonc": (text) => JSON.parse(text.replace(/^\/\/.*\n/, "")),
  ".yml": (text) => parseYaml(text),
  ".yaml": (text) => parseYaml(text),
};

/** Each generated file as its own parser reads it; what has none as its text. */
function parsed(facts: Facts): ReadonlyMap<string, unknown> {
  const entries = targets.flatMap((target) =>
    target.files(appOf(facts)).map(({ path, content }) => {
      const parse = parsers[/\.\w+$/.exec(path)?.[0] ?? ""] ?? ((text: string) => text);
      return [`${target.name} ${path}`, parse(content)] as const;
    }),
  );
  return new Map(entries);
}

const hostile = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(
      fc.constantFrom(
        `\${{ secrets.TOKEN }}`,
        "'",
        '"',
        "\n",
        "`",
        "$(id)",
        `\${HOME}`,
        "$CI_JOB_TOKEN",
        "#",
        ": ",
        "- ",
        "]",
        "}}",
        "\\",
        "\r\n",
        "\u2028",
        "a",
        "!!js",
        "%0A",
        "|",
        ">",
        "&a",
        "*a",
        "RUN rm -rf /",
      ),
      { minLength: 1, maxLength: 6 },
    )
    .map((parts) => parts.join("")),
);

/** Replaces one text wherever it is a whole value. */
function replaced(value: unknown, from: unknown, to: unknown): unknown {
  if (value === from) return to;
  if (Array.isArray(value)) return value.map((item) => replaced(item, from, to));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaced(item, from, to)]));
}

test("an agent's name is one plain value in every file that contains it, and never an expression", () => {
  const plain = parsed({ agent: "plain-name" });
  fc.assert(
    fc.property(hostile, (agent) => {
      for (const [path, value] of parsed({ agent })) {
        const said = path.startsWith("gitlab-ci")
          ? agent.replaceAll("$", "$$$$")
          : agent.includes("${{")
            ? `\${{ '${agent.replaceAll("'", "''")}' }}`
            : agent;
        expect(value, path).toEqual(replaced(plain.get(path), "plain-name", said));
      }
    }),
  );
});

test("packages change only the install command of a file", () => {
  const one = parsed({ dependencies: { pg: "1.0.0" } });
  fc.assert(
    fc.property(hostile, hostile, (name, version) => {
      expect([...parsed({ dependencies: { [`x${name}`]: version } })]).toEqual([...one]);
    }),
  );
});

test("a folder whose name could be an expression is refused, and any other name is quoted as one word", () => {
  fc.assert(
    fc.property(hostile, (folder) => {
      const facts = { folder: folder.replaceAll("\0", "").replaceAll("/", "") };
      for (const name of ["render", "github-actions", "gitlab-ci"]) {
        const target = findTarget(name);
        const isPlain = /^[\w.@+ -]*$/.test(facts.folder);
        expect(target.problems(appOf(facts)).length === 0).toBe(isPlain);
      }
    }),
  );
  const github = parseYaml(fileOf("github-actions", "kit.yml", { folder: "my apps/shop" }));
  expect(github.defaults.run["working-directory"]).toBe("my apps/shop");
  expect(findTarget("github-actions").files(appOf({ folder: "my apps/shop" }))[0]?.path).toBe(
    "../../.github/workflows/kit.yml",
  );
});

test("values of the project never become expressions in commands, and only names of secrets are written", () => {
  const workflow = parseYaml(fileOf("github-actions", "kit.yml", { variables: ["OPENAI_API_KEY"] }));
  for (const { steps } of Object.values<{ steps: { run?: string; env?: Record<string, string> }[] }>(
    workflow.jobs,
  )) {
    for (const { run = "", env = {} } of steps) {
      expect(run).not.toContain("${{");
      for (const [name, value] of Object.entries(env))
        if (value.includes("secrets.")) expect(value).toBe(`\${{ secrets.${name} }}`);
    }
  }
  expect(workflow.permissions).toEqual({ contents: "read" });
  expect(workflow.on).toEqual({ pull_request: {} });
});

test("a change is judged by a job of its own where kit can judge it", () => {
  expect(parseYaml(fileOf("github-actions", "kit.yml")).jobs).not.toHaveProperty("verify");
  const { verify } = parseYaml(fileOf("github-actions", "kit.yml", { isJudged: true })).jobs;
  expect(verify.steps[0]).toMatchObject({ with: { "fetch-depth": 0 } });
  expect(verify.steps.at(-1)).toMatchObject({
    env: { BASE: `\${{ github.event.pull_request.base.sha }}` },
    run: 'npx --no kit specs verify --lenient --since "$BASE" --format github',
  });
});

test("containers keep their state on a volume, run as a non-root user, one at a time, and never sleep", () => {
  const image = fileOf("docker", "Dockerfile");
  expect(image).toMatch(/^USER 1000:1000$/m);
  expect(image).toMatch(/^VOLUME \/app\/\.kit$/m);
  expect(image).not.toContain("npm install");
  const dependencies = { pg: "8.0.0" };
  expect(fileOf("docker", "Dockerfile", { dependencies })).toMatch(
    /^COPY app\/package.json app\/package-lock.json .\/\nRUN npm ci --omit=dev /m,
  );
  expect(fileOf("docker", "Dockerfile", { dependencies, unlocked: "there is none" })).toMatch(
    /^COPY app\/package.json .\/\nRUN npm install --omit=dev /m,
  );
  for (const target of ["fly", "railway"]) {
    expect(fileOf(target, "Dockerfile")).toMatch(
      /exec setpriv --reuid 1000 --regid 1000 --clear-groups node/,
    );
    expect(fileOf(target, "Dockerfile")).not.toMatch(/^VOLUME/m);
  }
  const fly = parseToml(fileOf("fly", "fly.toml"));
  expect(fly.http_service).toMatchObject({ auto_stop_machines: "off", min_machines_running: 1 });
  expect(fly.mounts).toMatchObject([{ destination: "/app/.kit" }]);
  const { deploy } = JSON.parse(fileOf("railway", "railway.json"));
  expect(deploy).toMatchObject({ numReplicas: 1, sleepApplication: false, requiredMountPath: "/app/.kit" });
  const [service] = parseYaml(fileOf("render", "render.yaml")).services;
  expect(service).toMatchObject({ numInstances: 1, healthCheckPath: "/health", plan: "starter" });
  expect(service.disk.mountPath).toBe("/opt/render/project/src/build/node/.kit");
  for (const file of [".dockerignore"]) expect(fileOf("docker", file)).toMatch(/^\*\n!app$/m);
});

test("the name of an application is one plain value in wrangler.jsonc", () => {
  const read = (name: string): unknown =>
    parsers[".jsonc"]?.(fileOf("cloudflare", "wrangler.jsonc", { name }));
  const plain = read("plain-name");
  fc.assert(
    fc.property(hostile, (name) => {
      expect(read(name)).toEqual(replaced(plain, "plain-name", name));
    }),
  );
});

const wranglerSchema = (() => {
  const schema = fileURLToPath(
    new URL("../../../vendors/node_modules/wrangler/config-schema.json", import.meta.url),
  );
  return existsSync(schema) ? JSON.parse(readFileSync(schema, "utf8")) : undefined;
})();

test.skipIf(wranglerSchema === undefined)(
  "wrangler's own schema accepts wrangler.jsonc, and rejects a misspelled key",
  () => {
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(wranglerSchema);
    const config = parsed({}).get("cloudflare wrangler.jsonc") as Record<string, unknown>;
    expect([validate(config), validate.errors]).toEqual([true, null]);
    expect(validate({ ...config, durable_object: {} })).toBe(false);
    expect(validate({ ...config, migrations: [{ new_sqlite_classes: ["Kit"] }] })).toBe(false);
  },
);

interface Part {
  readonly profile?: object;
  readonly config?: object;
  readonly outside?: ReadonlyMap<string, string>;
}

const problemsOf = ({ profile = {}, config = {}, outside = new Map() }: Part): readonly string[] => {
  const app = {
    ...appOf({}),
    agents: [{ name: "a", path: "src/agents/a.ts", profile }],
    loaded: { config, file: "/x/kit.config.ts" },
    outside,
  };
  return findTarget("cloudflare")
    .problems(app as unknown as Application)
    .map(({ path, message, hint }) => `${path} ${message} | ${hint}`);
};

test.each([
  [{ profile: { sandbox: { name: "local" } } }, /^src\/agents\/a\.ts works in the sandbox local/],
  [{ profile: { sandbox: { name: "virtual" } } }, /^src\/agents\/a\.ts works in the sandbox virtual/],
  [{ profile: { sandbox: { name: "modal" } } }, /^src\/agents\/a\.ts works in the sandbox modal/],
  [{ profile: { allowedCommands: ["npm test"] } }, /^src\/agents\/a\.ts grants commands/],
  [{ profile: { python: true } }, /^src\/agents\/a\.ts runs Python/],
  [{ profile: { python: { limits: {} } } }, /^src\/agents\/a\.ts runs Python/],
  [{ config: { agent: { sandbox: "local" } } }, /^kit\.config\.ts has agent\.sandbox = "local"/],
  [{ config: { agent: { sandbox: { name: "local" } } } }, /^kit\.config\.ts has agent\.sandbox = "local"/],
  [{ config: { mcp: { servers: { files: { command: "npx" } } } } }, /starts the MCP server "files"/],
  [{ config: { store: "sqlite" } }, /^kit\.config\.ts names a store/],
  [{ config: { store: "postgres://x" } }, /^kit\.config\.ts names a store/],
  [{ config: { engine: { folder: "work" } } }, /^kit\.config\.ts says where the engine/],
  [{ config: { engine: { kind: "postgres" } } }, /^kit\.config\.ts says where the engine/],
  [{ outside: new Map([["sharp", "it has native code"]]) }, /^package\.json lists sharp/],
  [{ outside: new Map([["x", "it is for one system"]]) }, /^package\.json lists x/],
  [{ outside: new Map([["x", "it has a script of its installation"]]) }, /^package\.json lists x/],
] as readonly [Part, RegExp][])(
  "a worker cannot contain %j: the error names the file, the reason and a remedy",
  (part, said) => {
    const [problem, ...others] = problemsOf(part);
    expect(others).toEqual([]);
    expect(problem).toMatch(said);
    expect(problem).toMatch(/\| [A-Z].{10,}\.$/);
  },
);

test.each([
  {},
  { profile: { sandbox: { name: "e2b" }, allowedCommands: ["npm test"] } },
  { profile: { python: false } },
  { config: { agent: { sandbox: "daytona" }, mcp: { servers: { docs: { url: "https://docs.example" } } } } },
  { profile: { allowedCommands: ["ls"] }, config: { agent: { sandbox: "e2b" } } },
  { outside: new Map([["pg", "it is optional for kit"]]) },
] as readonly Part[])("a worker can contain %j", (part) => {
  expect(problemsOf(part)).toEqual([]);
});
