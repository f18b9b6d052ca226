import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KitClient } from "../../src/client/index.ts";
import { type PostgresServer, startPostgres } from "../../src/testing/postgres-server.ts";
import { FunctionOutput } from "./function-output.ts";
import { hasNetlify, makeNetlifyArchives } from "./netlify-archives.ts";
import { servedCases } from "./served-cases.ts";
import { apiKey, createTargetProject, type TargetProject } from "./target-project.ts";

let postgres: PostgresServer;
let project: TargetProject;
let work = "";

const config = `import { defineConfig } from "kit";
import { agentSettings } from "./src/settings.ts";
export default defineConfig({ agent: { model: "offline/guide", ...agentSettings }, build: { max_seconds: 20 } });
`;
const slow = `import { defineWorkflow } from "kit";
export default defineWorkflow({
  async run(ctx) {
    for (const step of [1, 2, 3]) await ctx.step(\`step \${step}\`, () => new Promise((end) => setTimeout(end, 1_000)));
    return "end";
  },
});
`;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "kit-functions-"));
  postgres = await startPostgres();
  const manifest = { name: "target-shop", type: "module", dependencies: { kit: "*", zod: "*", pg: "*" } };
  project = await createTargetProject({
    "kit.config.ts": config,
    "package.json": JSON.stringify(manifest),
    "src/workflows/slow.ts": slow,
  });
  await project.link(["pg"]);
  for (const target of ["vercel", "netlify"]) {
    const { exitCode, stdout, stderr } = await project.kit(["build", "--target", target]);
    expect(stderr).not.toMatch(/error/);
    expect(exitCode).toBe(0);
    // The output contains the packages, so nothing needs to be installed.
    expect(stdout).not.toContain("Not part of it");
    // Outside the project, so that Node finds none of its packages by chance.
    await cp(join(project.root, "build", target), join(work, target), { recursive: true });
  }
});

afterAll(async () => {
  await project?.remove();
  await postgres?.stop();
  await rm(work, { recursive: true, force: true });
});

/** Creates a database for each output. */
async function database(name: string): Promise<string> {
  await ask(postgres.url, `CREATE DATABASE ${name}`);
  return postgres.url.replace(/\/postgres$/, `/${name}`);
}

async function ask<Row>(url: string, sql: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Returns how many connections frozen functions have to a database, and how many locks they hold. */
async function readHoldings(url: string): Promise<readonly unknown[]> {
  return await ask(
    url,
    `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
     UNION ALL SELECT 'lock' FROM pg_locks WHERE locktype = 'advisory'
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
}

const outputs = {
  async vercel(): Promise<FunctionOutput> {
    const folder = join(work, "vercel/.vercel/output/functions/index.func");
    const env = { DATABASE_URL: await database("vercel") };
    return new FunctionOutput({ platform: "vercel", folder, scheduled: folder, env, concurrency: 100 });
  },
  async netlify(): Promise<FunctionOutput> {
    const [folder = "", scheduled = ""] = await archives();
    const env = { DATABASE_URL: await database("netlify") };
    return new FunctionOutput({ platform: "netlify", folder, scheduled, env, concurrency: 1 });
  },
};

/** Unpacks the archives of both functions, after checking the bundler's description of them. */
async function archives(): Promise<readonly string[]> {
  const root = join(work, "netlify");
  const { publish, functions } = await makeNetlifyArchives(root, work);
  expect(publish).toBe(join(root, "app/public"));
  const functionsByName = new Map(functions.map((one) => [one.name, one]));
  expect(functionsByName.get("kit")).toMatchObject({
    runtimeAPIVersion: 2,
    bundler: "none",
    routes: [{ pattern: "/*", methods: [] }],
  });
  expect(functionsByName.get("kit-work")).toMatchObject({ schedule: "* * * * *" });
  return ["kit", "kit-work"].map((name) => functionsByName.get(name)?.folder ?? "");
}

test("a function that is frozen during its work loses the work to a scheduled call, and writes nothing when it resumes", async () => {
  const folder = join(work, "vercel/.vercel/output/functions/index.func");
  const url = await database("frozen");
  const options = {
    platform: "vercel",
    folder,
    scheduled: folder,
    env: { DATABASE_URL: url },
    concurrency: 9,
  } as const;
  const [one, other] = [new FunctionOutput(options), new FunctionOutput(options)];
  try {
    await one.start({ cron: false });
    await other.start({ cron: false });
    const client = new KitClient({ baseUrl: one.url, apiKey });
    const { run_id } = await client.workflows.start("slow", {});
    await expect.poll(async () => (await client.runs.get(run_id)).status).toBe("running");
    for (const pid of one.pids()) process.kill(pid, "SIGSTOP");
    const there = new KitClient({ baseUrl: other.url, apiKey });
    await expect
      .poll(async () => {
        await other.callScheduled();
        return (await there.runs.get(run_id)).status;
      })
      .toBe("completed");
    for (const pid of one.pids()) process.kill(pid, "SIGCONT");
    await one.atRest();
    expect(await there.runs.get(run_id)).toMatchObject({ status: "completed", result: "end" });
    const ends = await ask<{ count: string }>(
      url,
      "SELECT count(*) FROM kit.run_journal WHERE kind = 'step'",
    );
    expect(ends).toEqual([{ count: "3" }]);
    await expect.poll(() => readHoldings(url)).toEqual([]);
  } finally {
    await Promise.all([one.end(), other.end()]);
  }
});

describe.each(["vercel", "netlify"] as const)("%s, with Postgres and frozen between calls", (platform) => {
  const isSkipped = platform === "netlify" && !hasNetlify;
  let output: FunctionOutput;

  beforeAll(async () => {
    if (isSkipped) return;
    output = await outputs[platform]();
    await output.start();
  });

  afterAll(async () => {
    await output?.end();
  });

  test.skipIf(isSkipped).each(servedCases)(`${platform}: $name`, async ({ run: check }) => {
    await check(output).catch((error: unknown) => {
      throw new Error(output.log, { cause: error });
    });
  });

  test.skipIf(isSkipped)(`${platform}: a frozen function holds nothing in the database`, async () => {
    await output.stopSchedule();
    // Overlapping calls keep the process awake, so the number of earlier freezes depends on the machine.
    await expect.poll(() => output.frozen).toBeGreaterThan(0);
    await expect.poll(() => readHoldings(postgres.url.replace(/\/postgres$/, `/${platform}`))).toEqual([]);
  });
});
