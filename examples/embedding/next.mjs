// kit in a route of Next.js: save this as app/kit/[...path]/route.js, next to kit.mjs, and keep kit out of Next's bundles:
// serverExternalPackages: ["kit"] in next.config.mjs. Route handlers get a Request and return a Response.
import { openKit } from "./kit.mjs";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

// In development, Next.js reloads modules; share one kit between them.
globalThis.kit ??= openKit();
const { kit } = globalThis;

const handler = async (request) => {
  const url = new URL(request.url);
  url.pathname = url.pathname.slice("/kit".length);
  const { server } = await kit;
  return await server.fetch(new Request(url, request));
};

export { handler as DELETE, handler as GET, handler as POST };
