import { describe, expect, test } from "vitest";
import { serveForTests } from "../server/testing/serve-for-tests.ts";
import type { KitClientOptions } from "./call-options.ts";
import { KitClient } from "./kit-client.ts";

const served = serveForTests();

describe("a limit beyond the range of timers is no limit:", () => {
  // 25 days is more than a timer's 2^31 ms, and so is not a limit at all.
  test.each([25 * 86_400_000, Number.POSITIVE_INFINITY])("%d ms", async (ms) => {
    const limits: Partial<KitClientOptions> = { timeoutMs: ms, idleTimeoutMs: ms };
    const client = new KitClient({ baseUrl: served.url, retry: { attempts: 1 }, ...limits });
    expect((await client.health({ timeoutMs: ms })).ok).toBe(true);
    const input = { id: "patient", message: "a word" };
    expect((await client.agents.invoke("echo", input, { timeoutMs: ms })).text).toBe("a word");
    expect((await client.workflows.invoke("strict", { n: 1 })).result).toEqual({ doubled: 2 });
    await using connection = await client.agents.connect("echo", { id: "patient" }, { timeoutMs: ms });
    await connection.ping();
    expect((await connection.prompt("another").result()).text).toBe("another");
  });

  test("a fractional limit is rounded up to a whole millisecond", async () => {
    const client = new KitClient({ baseUrl: served.url, timeoutMs: 60_000.5 });
    expect((await client.health()).ok).toBe(true);
  });
});

test("an invalid server address is refused at once, with an example of a valid one", () => {
  for (const baseUrl of [
    "localhost:2024",
    "127.0.0.1:2024",
    "",
    "/",
    "ws://localhost",
    "http://a:b@localhost",
  ]) {
    expect(() => new KitClient({ baseUrl }), baseUrl).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        message: expect.stringContaining("baseUrl"),
        hint: expect.stringContaining("http://127.0.0.1:2024"),
      }),
    );
  }
  expect(() => new KitClient({ baseUrl: new URL("https://kit.example/base/") })).not.toThrow();
});
