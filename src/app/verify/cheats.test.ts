import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { campaignTest, isCampaign } from "../../testing/campaign.suite.ts";
import { addedFixture, type Cheat, cheats } from "./testing/cheats.ts";
import { honestChanges } from "./testing/honest-changes.ts";
import { checksOf, judgeChange } from "./testing/judge-change.ts";
import { type TestStyle, testStyles } from "./testing/test-styles.ts";

const hasPytest = ((): boolean => {
  try {
    execFileSync("python3", ["-m", "pytest", "--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

function expectedOf({ expected }: Cheat, { runner }: TestStyle): string | undefined {
  return typeof expected === "string" ? expected : expected[runner];
}

/** The verdict on a change of the cart. */
async function judged(
  style: TestStyle,
  { change, before }: Pick<Cheat, "change" | "before">,
  options?: { readonly criteria: readonly string[] },
): Promise<string> {
  const { files, code, tests, head, oldTest, prepare } = style;
  const base = { ...files, [code]: style.before, [tests]: head + oldTest, ...before?.(style) };
  return checksOf(await judgeChange(base, change(style), { ...options, ...(prepare && { prepare }) }));
}

const claimed = { criteria: ["cart#1.2"] };

for (const style of testStyles) {
  const { runner, code, tests, head, oldTest, honest } = style;
  const inCampaign = runner.includes("pytest") ? test.runIf(isCampaign && hasPytest) : campaignTest;
  inCampaign(`${runner}: honest work is closed`, async () => {
    const change = () => ({ [code]: style.after, [tests]: head + oldTest + style.test(honest) });
    expect(await judged(style, { change }, claimed)).toBe("closed");
  });
  inCampaign(`${runner}: a test that a person wrote before gets the fixture that the work adds`, async () => {
    expect(await judged(style, addedFixture, claimed)).toBe("closed");
  });
  for (const cheat of cheats) {
    const expected = expectedOf(cheat, style);
    if (expected === undefined) continue;
    inCampaign(`${runner}: a change that ${cheat.name} is ${expected}`, async () => {
      expect(await judged(style, cheat, claimed)).toBe(expected);
    });
  }
}

for (const style of testStyles.filter(({ code }) => code.endsWith(".mjs")))
  campaignTest.each(honestChanges)(
    `${style.runner}: honest work that $name is not refused: $end`,
    async (honest) => {
      expect(await judged(style, honest)).toMatch(honest.end === "ask" ? /^ask / : /^closed$/);
    },
  );
