// kit in a route of Next.js: save it as app/kit/[...path]/route.js, with kit.mjs beside it, and keep kit out of Next's bundles:
// serverExternalPackages: ["kit"] in next.config.mjs. Handlers of routes take a Request and give a Response.
import { openKit } from "./kit.mjs";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

// Development loads modules again and again: one kit for all of them.
globalThis.kit ??= openKit();
const { kit } = globalThis;

const handler = async (request) => {
  const url = new URL(request.url);
  url.pathname = url.pathname.slice("/kit".length);
  const { server } = await kit;
  return await server.fetch(new Request(url, request));
};

export { handler as DELETE, handler as GET, handler as POST };
