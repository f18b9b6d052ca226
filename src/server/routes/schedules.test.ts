import { expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";

const nightly = (cron: string): string =>
  `export const schedule = { cron: "${cron}", timezone: "Europe/Berlin", payload: { n: 1 } };\nexport async function run() {}\n`;

test("schedules are listed with their next times, for the workflows that the sender may see", async () => {
  const served = await serveForTest({
    files: {
      "src/workflows/nightly.ts": nightly("0 3 * * *"),
      "src/workflows/locked.ts": nightly("0 4 * * *"),
    },
    authorize: ({ action, workflow }) => !(action === "schedule.list" && workflow === "locked"),
  });
  const schedules = await new KitClient({ baseUrl: served.url }).workflows.schedules();
  expect(schedules).toEqual([
    {
      name: expect.stringContaining("nightly"),
      workflow: "nightly",
      cron: "0 3 * * *",
      timezone: "Europe/Berlin",
      payload: { n: 1 },
      next_at: expect.stringMatching(/T0[12]:00:00/),
    },
  ]);
  expect(Date.parse(schedules[0]?.next_at ?? "")).toBeGreaterThan(Date.now());
});
