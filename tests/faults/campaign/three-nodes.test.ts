import { startThreeNodes } from "./campaign-worlds.ts";
import { testCampaign } from "./told.suite.ts";

testCampaign("three nodes", startThreeNodes);
