import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import { apiKey, createTargetProject, type TargetProject } from "./target-project.ts";

const packages = fileURLToPath(new URL("../../vendors/node_modules", import.meta.url));
const isThere = (name: string): boolean => existsSync(join(packages, name));

let project: TargetProject;

// Each example runs unchanged, in a project that has its packages.
beforeAll(async () => {
  project = await createTargetProject();
  await cp(join(repositoryRoot, "examples/embedding"), join(project.root, "embedding"), { recursive: true });
  await project.link(["express", "fastify"].filter(isThere), packages);
  await mkdir(join(project.root, ".kit"), { recursive: true });
  process.env.KIT_API_KEYS = apiKey;
  process.chdir(project.root);
});

afterAll(async () => {
  process.chdir(repositoryRoot);
  delete process.env.KIT_API_KEYS;
  await project?.remove();
});

interface Embedded {
  readonly url: string;
  close(): Promise<void>;
}

const load = async (name: string): Promise<Record<string, never>> =>
  await import(pathToFileURL(join(project.root, "embedding", name)).href);

/** Serves the application of an example on a port of this machine. */
const examples: Readonly<Record<string, () => Promise<Embedded>>> = {
  async hono() {
    const { app, kit } = (await load("hono.mjs")) as unknown as HonoExample;
    return await listen((request) => app.fetch(request), kit);
  },
  next: serveNext,
  async express() {
    const { app, kit } = (await load("express.mjs")) as unknown as ExpressExample;
    const server = app.listen(0);
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address();
    return {
      url: `http://127.0.0.1:${port}`,
      async close() {
        server.closeAllConnections();
        server.close();
        await kit.close();
      },
    };
  },
  async fastify() {
    const { app, kit } = (await load("fastify.mjs")) as unknown as FastifyExample;
    const url = await app.listen({ port: 0 });
    return {
      url,
      async close() {
        app.server.closeAllConnections();
        await app.close();
        await kit.close();
      },
    };
  },
};

/** Serves the example as a route of a real Next.js, built and started by its own command. */
async function serveNext(): Promise<Embedded> {
  const shop = await createTargetProject();
  const at = (path: string): string => join(shop.root, path);
  await shop.link(["react", "react-dom", "next"], packages);
  await shop.write("next.config.mjs", nextConfig);
  await shop.write("app/route.js", 'export const GET = () => new Response("The shop.");\n');
  await mkdir(at("app/kit/[...path]"), { recursive: true });
  for (const [name, path] of [
    ["next.mjs", "route.js"],
    ["kit.mjs", "kit.mjs"],
  ] as const)
    await cp(join(repositoryRoot, "examples/embedding", name), at(join("app/kit/[...path]", path)));
  const next = at("node_modules/next/dist/bin/next");
  const options = {
    cwd: shop.root,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1", KIT_API_KEYS: apiKey },
  };
  await promisify(execFile)(process.execPath, [next, "build"], options);
  const server = spawn(process.execPath, [next, "start", "--port", "0", "--hostname", "127.0.0.1"], {
    ...options,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (chunk) => {
      text += String(chunk);
      const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? [];
      if (found !== undefined && text.includes("Ready")) resolve(found);
    });
    server.once("exit", () => reject(new Error(`Next ended: ${text}`)));
  });
  return {
    url,
    async close() {
      const ended = once(server, "exit");
      server.kill("SIGTERM");
      await ended;
      await shop.remove();
    },
  };
}

/** The line from docs/deploy.md, and the root, because the packages of this test are links. */
const nextConfig = 'export default { serverExternalPackages: ["kit"], turbopack: { root: "/" } };\n';

interface Closing {
  close(): Promise<void>;
}
interface HonoExample {
  readonly app: { fetch(request: Request): Promise<Response> };
  readonly kit: Closing;
}
interface ExpressExample {
  readonly app: {
    listen(port: number): {
      once(event: "listening", listener: (value: unknown) => void): void;
      address(): { readonly port: number };
      closeAllConnections(): void;
      close(): void;
    };
  };
  readonly kit: Closing;
}
interface FastifyExample {
  readonly app: {
    listen(options: { readonly port: number }): Promise<string>;
    readonly server: { closeAllConnections(): void };
    close(): Promise<void>;
  };
  readonly kit: Closing;
}

/** A server that passes requests on like frameworks of `Request` and `Response`. */
async function listen(answer: (request: Request) => Promise<Response>, kit: Closing): Promise<Embedded> {
  const { getRequestListener } = await import("@hono/node-server");
  const server = createServer(getRequestListener((request) => answer(request)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await kit.close();
    },
  };
}

for (const name of Object.keys(examples)) {
  const isInstalled = isThere(name) || name === "hono";
  test.skipIf(!isInstalled)(
    `in ${name}, kit answers below its path: health, keys, a prompt with a body, a stream`,
    async () => {
      const embedded = await examples[name]?.();
      if (embedded === undefined) throw new Error(`There is no example ${name}.`);
      try {
        const { url } = embedded;
        expect(await (await fetch(url)).text()).toBe("The shop.");
        expect(await (await fetch(`${url}/kit/health`)).json()).toMatchObject({ ok: true });
        expect((await fetch(`${url}/kit/agents`)).status).toBe(401);
        const headers = { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" };
        const prompt = {
          method: "POST",
          headers,
          body: JSON.stringify({ message: "Which rules apply to src/a.ts?" }),
        };
        const reply = await fetch(`${url}/kit/agents/reviewer/${name}`, prompt);
        expect(reply.status, await reply.clone().text()).toBe(200);
        expect(JSON.stringify(await reply.json())).toContain("whole cents");
        const stream = await fetch(`${url}/kit/agents/reviewer/${name}`, {
          ...prompt,
          headers: { ...headers, Accept: "text/event-stream" },
        });
        expect(await stream.text()).toMatch(/event: result\n/);
        const missing = await fetch(`${url}/kit/agents/unknown/1`, prompt);
        expect(missing.status).toBe(404);
        expect(await missing.json()).toMatchObject({ error: { type: "agent_not_found" } });
      } finally {
        await embedded.close();
      }
    },
  );
}
