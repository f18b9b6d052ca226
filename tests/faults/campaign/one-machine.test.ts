import { startOneMachine } from "./campaign-worlds.ts";
import { testCampaign } from "./told.suite.ts";

testCampaign("one machine", startOneMachine);
