import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { openFloor } from "../../engine/floor.ts";
import { answer, timedTexts } from "../model.ts";
import { askForDeltas, type Serve } from "../subject.ts";
import { listen } from "./listen.ts";

/**
 * The floor: Hono's handlers, which only parse the body and answer. A prompt is one row in
 * SQLite, synced like kit's sessions by default; a dispatch is one row too, grouped by hand and flushed to the disk.
 */
export const serveFloor: Serve = async ({ folder }) => {
  const app = new Hono();
  const floor = openFloor(join(folder, "floor.db"));
  let dispatches = 0;
  const sessions = new DatabaseSync(join(folder, "sessions.db"));
  sessions.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE prompts (id INTEGER PRIMARY KEY, instance TEXT, data TEXT) STRICT;",
  );
  const insert = sessions.prepare("INSERT INTO prompts (instance, data) VALUES (?, ?)");
  app.post("/agents/:name/:id", async (context) => {
    const { message } = await context.req.json<{ readonly message: string }>();
    if (message === askForDeltas) {
      return streamSSE(context, async (stream) => {
        let index = 0;
        for await (const text of timedTexts()) {
          index += 1;
          const event = JSON.stringify({ type: "text_delta", index, text });
          await stream.writeSSE({ id: `${index}`, event: "text_delta", data: event });
        }
      });
    }
    const said = JSON.stringify([message, answer]);
    insert.run(context.req.param("id"), said);
    return context.json({ result: { text: answer, model: { id: "zero" }, metadata: {} } });
  });
  app.post("/agents/:name/:id/dispatch", async (context) => {
    const { input } = await context.req.json<{ readonly input: unknown }>();
    dispatches += 1;
    await floor.insert(dispatches, JSON.stringify(input));
    return context.json({ status: "accepted", dispatch_id: `dispatch_${dispatches}` }, 202);
  });
  return await listen(getRequestListener(app.fetch));
};
