import { createMachineClock } from "../../shared/durable-time.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";
import { openNotes } from "./open-notes.ts";

/**
 * A process whose engine writes a note and an event for each input, and tells how many inputs are done, until it is killed.
 * `node notes-process.ts <folder> <file of the notes> <how much shorter its pauses are>`
 */
const [folder = "", file = "", hurry = "1"] = process.argv.slice(2);
const notes = openNotes(file);
const add = notes.prepare("INSERT INTO notes (input) VALUES (?)");
const clock = createMachineClock();
const engine = createEmbeddedEngine({
  folder,
  beside: [file],
  clock: { ...clock, sleep: (ms, signal) => clock.sleep(ms / Number(hurry), signal) },
});
await engine.start({
  run: async () => undefined,
  async dispatch({ id }, { input }) {
    add.run(Number(input));
    engine.events.append("notes", {
      index: Number(input),
      timestamp: new Date().toISOString(),
      agent: "writer",
      instance_id: "1",
      session: "default",
      operation_id: id,
      type: "text_delta",
      text: `note ${input}`,
    });
    return true;
  },
});
const last = await engine.events.last("notes");
for (let done = 1; ; done += 1) {
  const request = { agent: "writer", instance_id: "1", session: "default", input: last + done };
  const { dispatch_id } = await engine.admit(request);
  await engine.awaitDispatch(dispatch_id);
  process.send?.(done);
}
