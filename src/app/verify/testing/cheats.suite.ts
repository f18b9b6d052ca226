import { expect, type test } from "vitest";
import { addedFixture, type Cheat, cheats } from "./cheats.ts";
import { checksOf, judgeChange } from "./judge-change.ts";
import type { TestStyle } from "./test-styles.ts";

/** Few faults tell as much here as the default of 24, which takes pytest half a minute. */
const settings = { faults: 6 };

/** A sixth of a list, another one for each runner; `npm run test:cheats` tries all of it. */
export function tried<Item>(list: readonly Item[], { runner }: TestStyle): readonly Item[] {
  const own = runner === "node --test" ? 0 : 1;
  return process.env.KIT_CHEATS === "all" ? list : list.filter((_, at) => at % 6 === own);
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
  // `node --test` is the quickest, and tries each cheat in every campaign.
  for (const cheat of runner === "node --test" ? cheats : tried(cheats, style)) {
    const { name, expected } = cheat;
    const end = typeof expected === "string" ? expected : expected[runner];
    if (end === undefined) continue;
    inCampaign(`${runner}: a change that ${name} is ${end}`, async () => {
      expect(await judged(style, cheat, claimed)).toBe(end);
    });
  }
}
