import { execFileSync } from "node:child_process";
import { test } from "vitest";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { testCheats } from "./testing/cheats.suite.ts";
import { testStyles } from "./testing/test-styles.ts";

const hasPytest = ((): boolean => {
  try {
    execFileSync("python3", ["-m", "pytest", "--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

for (const style of testStyles)
  if (style.runner.includes("pytest")) testCheats(style, test.runIf(isCampaign && hasPytest));
