import { expect, type test } from "vitest";
import { isLong } from "../../../testing/campaign.suite.ts";
import { addedFixture, type Cheat, cheats } from "./cheats.ts";
import { checksOf, judgeChange } from "./judge-change.ts";
import type { TestStyle } from "./test-styles.ts";

/** Few faults tell as much here as the default of 24, which takes pytest half a minute. */
const settings = { faults: 6 };

/** A part of a list, another one for each runner: a fourth for `node --test`, which is the quickest. `npm run test:cheats` tries all of it. */
export function tried<Item>(list: readonly Item[], { runner }: TestStyle): readonly Item[] {
  if (isLong) return list;
  return list.filter((_, at) => (runner === "node --test" ? at % 4 === 2 : at % 14 === 1));
}

/** The verdict on a change of the cart. */
export async function judged(
  style: TestStyle,
  { change, before }: Pick<Cheat, "change" | "before">,
  options?: { readonly criteria: readonly string[] },
): Promise<string> {
  const { files, code, tests, head, oldTest, prepare } = style;
  const base = { ...files, [code]: style.before, [tests]: head + oldTest, ...before?.(style) };
  return checksOf(
    await judgeChange(base, change(style), { settings, ...options, ...(prepare && { prepare }) }),
  );
}

/** Tries all cheats with one runner. */
export function testCheats(style: TestStyle, inCampaign: ReturnType<typeof test.runIf>): void {
  const { runner, code, tests, head, oldTest, honest } = style;
  const claimed = { criteria: ["cart#1.2"] };
  inCampaign(`${runner}: honest work is closed`, async () => {
    const change = () => ({ [code]: style.after, [tests]: head + oldTest + style.test(honest) });
    expect(await judged(style, { change }, claimed)).toBe("closed");
  });
  inCampaign(`${runner}: a test that a person wrote before gets the fixture that the work adds`, async () => {
    expect(await judged(style, addedFixture, claimed)).toBe("closed");
  });
  for (const cheat of tried(cheats, style)) {
    const { name, expected } = cheat;
    const end = typeof expected === "string" ? expected : expected[runner];
    if (end === undefined) continue;
    inCampaign(`${runner}: a change that ${name} is ${end}`, async () => {
      expect(await judged(style, cheat, claimed)).toBe(end);
    });
  }
}
