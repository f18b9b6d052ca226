import { existsSync } from "node:fs";
import { cp, mkdir, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import { apiKey, createTargetProject, type TargetProject } from "./target-project.ts";

const packages = fileURLToPath(new URL("../../vendors/node_modules", import.meta.url));
const isThere = (name: string): boolean => existsSync(join(packages, name));

let project: TargetProject;

// Each example as it stands, in a project whose packages it finds.
beforeAll(async () => {
  project = await createTargetProject();
  await cp(join(repositoryRoot, "examples/embedding"), join(project.root, "embedding"), { recursive: true });
  await symlink(join(repositoryRoot, "node_modules/hono"), join(project.root, "node_modules/hono"));
  for (const name of ["express", "fastify"])
    if (isThere(name)) await symlink(join(packages, name), join(project.root, "node_modules", name));
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

/** The application of an example on a port of this machine. */
const examples: Readonly<Record<string, () => Promise<Embedded>>> = {
  async hono() {
    const { app, kit } = (await load("hono.mjs")) as unknown as HonoExample;
    return await listen((request) => app.fetch(request), kit);
  },
  async next() {
    const routes = (await load("next.mjs")) as unknown as Record<
      string,
      (request: Request) => Promise<Response>
    >;
    const { kit } = globalThis as unknown as { readonly kit: Promise<Closing> };
    const answer = async (request: Request): Promise<Response> =>
      new URL(request.url).pathname === "/"
        ? new Response("The shop.")
        : ((await routes[request.method]?.(request)) ?? new Response(null, { status: 405 }));
    return await listen(answer, { close: async () => (await kit).close() });
  },
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

/** A server that hands on requests as frameworks of `Request` and `Response` get them. */
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
  const isInstalled = isThere(name) || ["hono", "next"].includes(name);
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
