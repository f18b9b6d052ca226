import { expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { play } from "./call-model.suite.ts";
import { broken, type CallEvent, modelFiles, schedules } from "./call-stories.suite.ts";

const repository = repositoryForTests(modelFiles);

/** The events, and how many of their orders a campaign plays; `npm run test:calls` plays all. */
const scenarios: readonly (readonly [most: number, events: readonly CallEvent[]])[] = [
  [40, ["approve", "deny", "freeze"]],
  [20, ["approve", "deny", "freeze", "wake"]],
  [15, ["approve", "cancel", "freeze"]],
  [15, ["deny", "expire", "freeze"]],
  [15, ["approve", "expire", "freeze", "wake"]],
  [15, ["approve", "rewind", "freeze"]],
  [10, ["approve", "rewind", "freeze", "wake"]],
];
const isWhole = process.env.KIT_CALL_ORDERS === "all";

const kinds = [
  ["asker", "the answer to a question reaches its tool"],
  ["called", "the result of the caller reaches the model"],
  ["delegator", "an approved call of a task is made"],
  ["edited", "a call with the arguments of its approver is made"],
] as const;

test.each(
  kinds.flatMap(([agent, what]) =>
    scenarios.map(([most, events]) => [events.join(", "), what, { agent, most, events }] as const),
  ),
)(
  "in the orders of %s, %s at most once, and a refusal pays nothing",
  async (_name, _what, { agent, most, events }) => {
    const all = schedules(events, 7);
    const every = isWhole ? 1 : Math.ceil(all.length / rounds(1, Math.ceil(most / 3)));
    for (const [at, schedule] of all.entries()) {
      if (at % every !== every >> 1) continue;
      const story = await play(repository.root, schedule, agent);
      expect(broken(story), JSON.stringify(story)).toEqual([]);
    }
  },
  3_600_000,
);

test.each(scenarios.map(([most, events]) => [events.join(", "), most, events] as const))(
  "in the orders of %s, what was told is done: an approved call at most once, a denied one never",
  async (_name, most, events) => {
    // Seven steps lead from the dispatch to the result.
    const all = schedules(events, 7);
    const every = isWhole ? 1 : Math.ceil(all.length / rounds(1, most));
    for (const [at, schedule] of all.entries()) {
      if (at % every !== every >> 1) continue;
      const story = await play(repository.root, schedule);
      expect(broken(story), JSON.stringify(story)).toEqual([]);
    }
  },
  3_600_000,
);
