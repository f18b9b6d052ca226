import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { playOn } from "./call-model.suite.ts";
import { broken, type CallEvent, modelFiles, schedules } from "./call-stories.suite.ts";

const server = postgresForTests();
const repository = repositoryForTests(modelFiles);

const scenarios: readonly (readonly CallEvent[])[] = [
  ["approve", "deny", "freeze"],
  ["approve", "deny", "lose"],
  ["approve", "cancel", "lose"],
  ["approve", "rewind", "lose"],
  ["deny", "lose", "freeze"],
];
/** How many orders are played; `npm run test:calls` plays more. */
const stories = process.env.KIT_CALL_ORDERS === "all" ? 40 : 3;

test.each(scenarios.map((events) => [events.join(", "), events] as const))(
  "in the orders of %s, two nodes of a Postgres engine do what was told",
  async (name, events) => {
    const all = schedules(events, 7);
    const every = Math.ceil(all.length / stories);
    for (const [at, schedule] of all.entries()) {
      if (at % every !== every >> 1) continue;
      const schema = `model_${name.replaceAll(/\W+/g, "_")}_${at}`;
      const story = await playOn({ url: server.url, schema }, repository.root, schedule);
      expect(broken(story), JSON.stringify(story)).toEqual([]);
    }
  },
  1_800_000,
);
