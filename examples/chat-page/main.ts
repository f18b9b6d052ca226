/** `node main.ts [port]`: serves the agent, and the page in front of it. */
import { openProject, openService } from "kit";
import { createServer } from "kit/server";
import { createServer as createPageServer } from "vite";

const root = import.meta.dirname;
await using closing = new AsyncDisposableStack();
const project = closing.adopt(await openProject({ root }), (opened) => opened.close());
const service = closing.adopt(await openService({ root }), (opened) => opened.close());
const server = closing.adopt(createServer({ project, service }), (opened) => opened.close());
const { url } = await server.listen({ port: 0 });

process.env.KIT_URL = url;
const configFile = `${root}/vite.config.ts`;
const page = await createPageServer({
  configFile,
  server: { host: "127.0.0.1", port: Number(process.argv[2] ?? 5173) },
});
closing.defer(() => page.close());
await page.listen();
console.log(`The chat page: ${page.resolvedUrls?.local[0]}`);

await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
