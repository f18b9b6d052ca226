import { expect, test } from "vitest";
import { serveForTest } from "../testing/serve-for-tests.ts";
import type { ServedService } from "../testing/serve-service.ts";
import { openSocket } from "../testing/socket-client.ts";

const never = new Promise<never>(() => undefined);
const limits = { hookTimeoutMs: 20 };

async function refusalOf(socket: Promise<unknown>): Promise<unknown> {
  return await socket.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function expectRefusals({ send, url, errors }: ServedService, hook: string): Promise<void> {
  const { status, body } = await send("/agents/echo/1/history");
  expect([status, body.error.type]).toEqual([500, "internal_error"]);
  expect(JSON.stringify(body)).not.toContain(hook);
  expect(await refusalOf(openSocket(`${url}/agents/echo/1`))).toMatchObject({ status: 500 });
  expect(errors.map(String)).toEqual(Array.from({ length: 2 }, () => expect.stringContaining(hook)));
}

test("an `authorize` that never answers refuses the request, also on WebSockets, and is reported to the operator", async () => {
  const served = await serveForTest({ limits, authorize: () => never });
  await expectRefusals(served, "server.authorize");
});

test("so is an `auth` that never answers", async () => {
  const served = await serveForTest({ limits, access: { auth: () => never } });
  await expectRefusals(served, "server.auth");
});

test("only `true` permits a request, and kit waits for a slow answer", async () => {
  const answers: Readonly<Record<string, unknown>> = {
    yes: true,
    later: Promise.resolve(true),
    truthy: "yes",
    one: 1,
    object: {},
    absent: undefined,
    laterTruthy: Promise.resolve("yes"),
  };
  const served = await serveForTest({
    authorize: ({ instance = "" }) => answers[instance] as boolean,
  });
  for (const id of Object.keys(answers)) {
    const { status } = await served.send(`/agents/echo/${id}/approvals`);
    expect([id, status]).toEqual([id, id === "yes" || id === "later" ? 200 : 403]);
  }
});
