import { afterEach, beforeEach, expect, test } from "vitest";
import { type ReceivedEvent, readEventStream } from "../testing/read-event-stream.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

let served: ServedService;
let permitted: boolean;
let asked: number;

async function serve(permissionMs: number): Promise<void> {
  permitted = true;
  asked = 0;
  served = await serveService({
    limits: { permissionMs },
    authorize: () => {
      asked += 1;
      return permitted;
    },
  });
}

beforeEach(() => serve(0));
afterEach(() => served.close());

async function next(events: AsyncGenerator<ReceivedEvent>): Promise<ReceivedEvent | undefined> {
  const result = await events.next();
  return result.done === true ? undefined : result.value;
}

async function until(events: AsyncGenerator<ReceivedEvent>, type: string): Promise<void> {
  for (let event = await next(events); event?.event !== type; event = await next(events));
}

const refusal = { id: undefined, event: "error", data: { error: { type: "forbidden" } } };
const echo = { agent: "echo", instance_id: "1", session: "default" };

test("a reader who loses permission for an instance gets no further event", async () => {
  const events = readEventStream(await served.stream("/agents/echo/1/events"));
  await served.service.prompt(echo, { message: "for all to hear" });
  await until(events, "idle");
  permitted = false;
  await served.service.prompt(echo, { message: "for some" });
  expect(await next(events)).toMatchObject(refusal);
  expect(await next(events)).toBeUndefined();
});

test("a reader who loses permission for a run gets no further event and no result", async () => {
  const { run_id } = await served.service.startRun("waiting", {});
  const events = readEventStream(await served.stream(`/runs/${run_id}/stream`));
  await until(events, "run_start");
  permitted = false;
  await served.service.engine.signal(run_id, { name: "word", payload: "secret" });
  expect(await next(events)).toMatchObject(refusal);
  expect(await next(events)).toBeUndefined();
});

test("permission is also checked for the result alone", async () => {
  const { run_id } = await served.service.startRun("waiting", {});
  const events = readEventStream(await served.stream(`/runs/${run_id}/stream?after=1000`));
  permitted = false;
  await served.service.engine.signal(run_id, { name: "word", payload: "secret" });
  expect(await next(events)).toMatchObject(refusal);
});

test("the hook is not called again for each event", async () => {
  await served.close();
  await serve(3_600_000);
  const events = readEventStream(await served.stream("/agents/echo/1/events"));
  await served.service.prompt(echo, { message: "many words for all to hear" });
  await until(events, "idle");
  expect(asked).toBe(1);
  await events.return(undefined);
});
