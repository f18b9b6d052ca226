import { expect, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { faultOfProfile } from "./check-profile.ts";

test.each<readonly [unknown, string]>([
  [undefined, "it gave no profile"],
  [[], "it gave no profile"],
  [
    { allowedCommand: ["git"] },
    "`allowedCommand` is not a field of a profile; did you mean allowedCommands?",
  ],
  [{ allowedCommands: ["git", 1] }, "`allowedCommands[1]` must be a text, or an object such as"],
  [
    { allowedCommands: [{ command: "make", unsave: true }] },
    "`allowedCommands[0].unsave` is not a field of a command; did you mean unsafe?",
  ],
  [{ tools: [{ name: "a", input: {}, execute: 1 }] }, "`tools[0].execute` must be a function, not 1"],
  [
    { hooks: [{ beforeTols: () => undefined }] },
    "`hooks[0].beforeTols` is not a hook; did you mean beforeTool?",
  ],
  [{ allowNetwork: ["https://a.example/"] }, "`allowNetwork` must be a list of hosts"],
  [{ allowWrite: "yes" }, "`allowWrite` must be true or false"],
  [{ thinkingLevel: "huge" }, "`thinkingLevel` must be one of off, minimal, low, medium, high, xhigh"],
  [{ budget: { maxTurn: 5 } }, "`budget.maxTurn` is not a limit of a budget; did you mean maxTurns?"],
  [{ budget: { maxTokens: 0.5 } }, "`budget.maxTokens` must be a whole number from 1 up"],
  [{ python: { function: {} } }, "`python.function` is not a field of python; did you mean functions?"],
  [
    { python: { resourceLimits: { maxMemmory: 1 } } },
    "`python.resourceLimits.maxMemmory` is not a limit of Python; did you mean maxMemory?",
  ],
  [{ python: { resourceLimits: { maxMemory: "1" } } }, "`python.resourceLimits.maxMemory` must be a number"],
  [{ compaction: { keepRecent: 1 } }, "`compaction.keepRecent` is not a setting of compaction"],
  [{ compaction: { enabled: 1 } }, "`compaction.enabled` must be true or false"],
  [{ approvals: [] }, "`approvals` must be an object such as"],
  [{ approvals: { timeoutMs: 1 } }, "`approvals.tools` is required"],
  [
    { approvals: { tools: [], timeout: 1 } },
    "`approvals.timeout` is not a field of approvals; did you mean timeoutMs?",
  ],
  [
    { subagents: [{ name: "a" }, { name: "b", allowedCommand: ["git"] }] },
    "`subagents[1].allowedCommand` is not a field of a profile; did you mean allowedCommands?",
  ],
  [
    { subagents: [{ name: "a", subagents: [{}] }] },
    "`subagents[0].subagents[0]` must be an object with a name",
  ],
  [
    { skills: [{ name: "../../evil" }] },
    '`skills` has the name "../../evil", which must not hold separators',
  ],
  [{ roles: [{ name: "a" }, { name: "a" }] }, '`roles` has two of the name "a"'],
  [{ subagents: [{ name: "a" }, { name: "a" }] }, '`subagents` has two of the name "a"'],
  [{ commands: [{ name: "test" }, { name: "test" }] }, '`tools` has two of the name "test"'],
])("the profile %j is refused with what is wrong", (profile, fault) => {
  expect(faultOfProfile(profile)).toContain(fault);
});

test("a profile can have every field, and every field is optional", () => {
  const profile: AgentProfile = {
    name: "a",
    budget: { maxTurns: 1, maxTokens: 1, maxCost: 0 },
    compaction: { enabled: true, contextWindowTokens: 1_000, reserveTokens: 0, keepRecentTokens: 0 },
    approvals: { tools: ["bash"], timeoutMs: 1 },
    subagents: [{ name: "b", budget: {} }],
  };
  expect([faultOfProfile(profile), faultOfProfile({})]).toEqual([undefined, undefined]);
});

test("a profile that contains itself is refused", () => {
  const round: { name: string; subagents: unknown[] } = { name: "a", subagents: [] };
  round.subagents.push(round);
  expect(faultOfProfile(round)).toContain("is an agent below itself");
});
