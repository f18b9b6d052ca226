import { expect } from "vitest";
import { campaignTest, longTest } from "../../testing/campaign.suite.ts";
import { runWithKills } from "./testing/killed-runs.ts";

const body = { feature: "cart", agent: "hurried" };

longTest(
  "a run that is killed within its first verdict, and again later, commits and ticks once",
  async () => {
    const kills = [{ atBoundary: 6 }, { afterMs: 4_000 }];
    expect(await runWithKills({ ...body, tasks: ["1.1"] }, kills)).toMatchObject({ fault: undefined });
  },
  240_000,
);

campaignTest(
  "two tasks at once, killed twice, give one commit and one tick each",
  async () => {
    const kills = [{ afterMs: 5_000 }, { afterMs: 8_000 }];
    expect(await runWithKills({ ...body, tasks: ["1.1", "1.2"], parallel: 2 }, kills)).toMatchObject({
      fault: undefined,
    });
  },
  240_000,
);
