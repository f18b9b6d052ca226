// kit in a Hono application: `fetch` answers requests below any path.
import { Hono } from "hono";
import { openKit } from "./kit.mjs";

export const kit = await openKit();
export const app = new Hono();

app.get("/", (context) => context.text("The shop."));
app.mount("/kit", (request) => kit.server.fetch(request));
