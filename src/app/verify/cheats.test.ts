import { campaignTest } from "../../testing/campaign.suite.ts";
import { testCheats } from "./testing/cheats.suite.ts";
import { testStyles } from "./testing/test-styles.ts";

for (const style of testStyles) if (style.code.endsWith(".mjs")) testCheats(style, campaignTest);
