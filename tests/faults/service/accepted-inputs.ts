import { expect } from "vitest";
import type { FaultProject } from "./fault-project.ts";
import { answerTo } from "./model-server.ts";
import { send, sendUntilAccepted } from "./requests.ts";

/** An input with a receipt. */
export interface Accepted {
  readonly instance: string;
  readonly input: string;
  readonly id: string;
}

/** Sends one input after the other, so that their order is known, to any of the servers. */
export async function dispatchAll(
  urls: readonly string[],
  { instance, count }: { readonly instance: string; readonly count: number },
): Promise<readonly Accepted[]> {
  const accepted: Accepted[] = [];
  for (let number = 1; number <= count; number += 1) {
    const input = `#${number}`;
    const path = `/agents/worker/${instance}/dispatch`;
    const { dispatch_id } = await sendUntilAccepted(urls, {
      path,
      key: input,
      body: { input },
      from: number,
    });
    accepted.push({ instance, input, id: dispatch_id });
  }
  return accepted;
}

/**
 * Checks that every input is in its session's history once, in order, with its answer. Returns the calls whose
 * outcome is unknown according to their results.
 */
export async function checkHistories(
  url: string,
  accepted: readonly Accepted[],
): Promise<ReadonlySet<string>> {
  const uncertain = new Set<string>();
  for (const instance of new Set(accepted.map((one) => one.instance))) {
    const { body } = await send(`${url}/agents/worker/${instance}/history`);
    const inputs = accepted.filter((one) => one.instance === instance).map(({ input }) => input);
    const reported: string[] = [];
    let current = "";
    for (const { role, content } of body.messages) {
      const text = JSON.stringify(content);
      if (role === "user") {
        current = inputs.find((input) => text.includes(`"${input}"`)) ?? text;
        reported.push(current);
      } else if (role === "assistant" && text.includes(answerTo(current))) reported.push(answerTo(current));
      else if (text.includes("unknown")) uncertain.add(`${instance}${current}`);
    }
    expect(reported).toEqual(inputs.flatMap((input) => [input, answerTo(input)]));
  }
  return uncertain;
}

/** Checks that no call of a tool that must not be repeated ran twice, and that calls without an effect have an unknown outcome. */
export function checkEffects(
  { effects }: FaultProject,
  accepted: readonly Accepted[],
  uncertain: ReadonlySet<string>,
): void {
  const repeatable = effects("keep");
  const noted = effects("note");
  // A call has one key, however often it ran; a call that must not be repeated ran once.
  expect(new Set(repeatable.map(({ key }) => key)).size).toBe(
    new Set(repeatable.map(({ call }) => call)).size,
  );
  expect(new Set(noted.map(({ call }) => call)).size).toBe(noted.length);
  const done = new Set([...repeatable, ...noted].map(({ call }) => call));
  const undone = accepted
    .map(({ instance, input }) => `${instance}${input}`)
    .filter((call) => !done.has(call));
  // After a crash between the record of a call and the call, the model only gets an unknown outcome.
  expect(undone.filter((call) => !uncertain.has(call))).toEqual([]);
  for (const instance of new Set(accepted.map((one) => one.instance))) {
    for (const lines of [repeatable, noted]) {
      const numbers = lines
        .filter(({ call }) => call.startsWith(`${instance}#`))
        .map(({ call }) => Number(call.split("#")[1]));
      expect(numbers).toEqual(numbers.toSorted((left, right) => left - right));
    }
  }
}
