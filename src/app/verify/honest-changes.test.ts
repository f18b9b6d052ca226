import { expect } from "vitest";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { judged, tried } from "./testing/cheats.suite.ts";
import { honestChanges } from "./testing/honest-changes.ts";
import { testStyles } from "./testing/test-styles.ts";

for (const style of testStyles.filter(({ code }) => code.endsWith(".mjs")))
  campaignTest.each(tried(honestChanges, style))(
    `${style.runner}: honest work that $name is not refused: $end`,
    async (honest) => {
      expect(await judged(style, honest)).toMatch(honest.end === "ask" ? /^ask / : /^closed$/);
    },
  );
