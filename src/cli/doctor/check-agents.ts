import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { toProfile } from "../../app/config/agent-config.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { openStore } from "../../app/runtime/open-parts.ts";
import { AgentWrites } from "../../app/sources/agent-writes.ts";
import type { LoadedAgent, LoadedWebhook, SourceProblem } from "../../app/sources/discover-sources.ts";
import { followSources } from "../../app/sources/follow-sources.ts";
import { commandListProblems, loadProjectSources } from "../../app/sources/sources.ts";
import { tryAgents } from "../../app/sources/try-agents.ts";
import { webhooksWithoutSecret } from "../../app/sources/webhooks-without-secret.ts";
import { withDeadline } from "../../base/abort.ts";
import { ownFolder } from "../../base/own-package.ts";
import type { SessionEntry, TouchedSession } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { installedVersion } from "../add/peer-versions.ts";
import { count } from "../print/table.ts";
import type { Check } from "./checks.ts";

const name = "prompt caching";

/** How long an agent's function may take to describe it, in ms. */
const describeMs = 5_000;

/**
 * Describes each agent twice, with `Date` two days apart, and reports agents whose prompt begins differently: no
 * provider can cache such a prompt.
 */
export async function checkDescriptions(
  agents: readonly LoadedAgent[],
  env: LoadedConfig["environment"],
): Promise<readonly Check[]> {
  const unstable: string[] = [];
  for (const { definition, path } of agents) {
    // A value that is not a function is the same each time.
    if (definition.profile !== undefined) continue;
    const describe = (): Promise<AgentProfile> =>
      withDeadline(definition.describe({ id: "doctor", env, payload: {} }), {
        ms: describeMs,
        onTimeout: () => new Error("It takes too long."),
      });
    try {
      const changed = differences(await describe(), await twoDaysLater(describe));
      if (changed.length > 0) unstable.push(`${path}: ${changed.join(" and ")}`);
    } catch {
      // An agent that needs a payload, or a service that is not available here, cannot be checked.
    }
  }
  if (unstable.length === 0) return [];
  return [
    {
      name,
      status: "warning",
      message: `The beginning of the prompts of ${count(unstable.length, "agent")} is different each time, so providers cannot cache it.`,
      hint: `${unstable.join("\n")}\nLeave out times, random texts and unordered lists; pass them in the message, or through a tool.`,
    },
  ];
}

function differences(first: AgentProfile, second: AgentProfile): readonly string[] {
  const parts: Readonly<Record<string, (profile: AgentProfile) => unknown>> = {
    "its instructions": ({ instructions }) => instructions,
    "its tools": ({ tools = [], commands = [] }) =>
      [...tools, ...commands].map(({ name: called, description }) => [called, description]),
    "its skills": ({ skills = [] }) => skills.map(({ name: called, description }) => [called, description]),
    "its subagents": ({ subagents = [] }) =>
      subagents.map(({ name: called, description }) => [called, description]),
  };
  return Object.entries(parts).flatMap(([part, read]) =>
    JSON.stringify(read(first)) === JSON.stringify(read(second)) ? [] : [part],
  );
}

/** Runs `work` while `Date` returns a time two days ahead. */
async function twoDaysLater<Value>(work: () => Promise<Value>): Promise<Value> {
  const RealDate = globalThis.Date;
  const offsetMs = 2 * 86_400_000 + 3_723_004;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [target.now() + offsetMs] : args, newTarget),
    apply: (target) => new target(target.now() + offsetMs).toString(),
    get: (target, key, receiver) =>
      key === "now" ? () => target.now() + offsetMs : Reflect.get(target, key, receiver),
  });
  try {
    return await work();
  } finally {
    globalThis.Date = RealDate;
  }
}

/** The number of sessions to check, most recently used first; only the beginning of longer ones is read. */
const maxSessions = 20;
const maxEntries = 5_000;
/** How many consecutive sessions of an agent must begin differently before that is reported. */
const minSessions = 4;

/** Reads in the newest sessions what changed the beginning of their prompts. */
export async function checkRecordedPrompts(
  root: string,
  { config }: LoadedConfig,
): Promise<readonly Check[]> {
  const store = await openStore(config.store ?? "sqlite", root);
  try {
    const hints = findingsOf(await newestSessions(store));
    if (hints.length === 0) return [];
    const message = "Recent sessions lost their prompt cache more often than necessary.";
    return [{ name, status: "warning", message, hint: hints.join("\n") }];
  } finally {
    await store.close();
  }
}

interface ReadSession {
  readonly session: TouchedSession;
  readonly entries: readonly SessionEntry[];
}

async function newestSessions(store: SessionStore): Promise<readonly ReadSession[]> {
  if (store.listAll === undefined) return [];
  const all: TouchedSession[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.listAll({ limit: 500, cursor });
    // A task's session begins with its task, which differs each time.
    all.push(
      ...page.sessions.filter(({ parent, position }) => parent === undefined && position <= maxEntries),
    );
    all.sort((session, other) => (session.touched_at < other.touched_at ? 1 : -1)).splice(maxSessions);
    cursor = page.next_cursor;
    if (cursor === undefined) break;
  }
  return await Promise.all(all.map(async (session) => ({ session, entries: await store.read(session) })));
}

/** Changes that a prompt's caller asked for. */
const optionalParts = new Set(["compaction", "role", "model", "settings", "secrets"]);

function findingsOf(sessions: readonly ReadSession[]): readonly string[] {
  const changed = new Map<string, number>();
  const reported = new Map<string, number>();
  const first = new Map<string, string[]>();
  for (const { session, entries } of sessions) {
    const turns = entries.flatMap((entry) => (entry.type === "message" ? (entry.turn ?? []) : []));
    for (const part of new Set(turns.flatMap(({ prefix }) => prefix.changed ?? [])))
      if (!optionalParts.has(part)) changed.set(part, (changed.get(part) ?? 0) + 1);
    for (const entry of entries) {
      const message = entry.type === "message" ? entry.message : undefined;
      if (message?.role !== "user" || message.source !== "instructions") continue;
      const files = (message.shows ?? []).map(({ id }) => id).join(", ") || "the place of its work";
      reported.set(files, (reported.get(files) ?? 0) + 1);
    }
    for (const part of ["instructions", "tools", "skills", "project_instructions"]) {
      const digest = turns[0]?.parts[part];
      const key = JSON.stringify([session.agent, part]);
      if (digest !== undefined) first.set(key, [...(first.get(key) ?? []), digest]);
    }
  }
  return [
    ...[...changed].map(
      ([part, times]) =>
        `${part}: changed in the middle of ${count(times, "session")} of the last ${sessions.length}.`,
    ),
    ...[...reported]
      .filter(([, times]) => times >= minSessions)
      .map(
        ([files, times]) =>
          `${files}: changed ${times} times during sessions; each change is added after their history.`,
      ),
    ...[...first].flatMap(([key, digests]) => {
      const [agent, part] = JSON.parse(key) as [string, string];
      return digests.length < minSessions || new Set(digests).size < digests.length
        ? []
        : [
            `${part} of ${agent}: different in each of its last ${digests.length} sessions. A time or a random text in them keeps sessions from sharing a cache.`,
          ];
    }),
  ];
}

/** Finds what would fail at the first prompt of an agent, in the kit that runs now. */
export async function tryProjectAgents(
  agents: readonly LoadedAgent[],
  { root, loaded }: { readonly root: string; readonly loaded: Pick<LoadedConfig, "config" | "environment"> },
): Promise<readonly SourceProblem[]> {
  const beside = fileURLToPath(ownFolder());
  const hasPackage = (name: string): boolean =>
    [root, beside].some((folder) => installedVersion(name, folder) !== undefined);
  return await tryAgents({ root: realpathSync(root), agents, loaded, hasPackage });
}

/**
 * Loads the project's agents as `kit run` does. A project without agents gets no check; a file that cannot be loaded
 * gets its first reason, on a line of its own. Webhooks must also find their secret in the environment.
 */
export async function checkAgents(root: string, loaded: LoadedConfig): Promise<readonly Check[]> {
  const { config, environment: env } = loaded;
  const writes = new AgentWrites(realpathSync(root));
  const hooks = followSources(root, (file, specifier) => writes.check(file, specifier));
  try {
    const sources = await loadProjectSources(root, { code: true, ...writes.loading() });
    const { agents, workflows, webhooks, skills, roles } = sources;
    const problems = [...sources.problems, ...(await tryProjectAgents(agents, { root, loaded }))];
    const counts = [
      [agents.length, "agent"],
      [workflows.length, "workflow"],
      [webhooks.length, "webhook"],
      [skills.length, "skill"],
      [roles.length, "role"],
    ] as const;
    const parts = counts.flatMap(([number, noun]) => (number === 0 ? [] : [count(number, noun)]));
    const lists = checkCommandLists(await commandListProblems(agents, toProfile(config.agent)));
    if (parts.length === 0 && problems.length === 0) return lists;
    const message = parts.length === 0 ? "No agent can be loaded." : parts.join(", ");
    const prompts = await checkDescriptions(agents, env);
    const otherFindings = [...lists, ...checkSecrets(webhooksWithoutSecret(webhooks, env)), ...prompts];
    if (problems.length === 0) return [{ name: "agents", status: "ok", message }, ...otherFindings];
    // Problems that keep kit from working come before the warnings.
    const ordered = [...problems].sort(
      (problem, other) => Number(isHarmless(problem)) - Number(isHarmless(other)),
    );
    return [
      {
        name: "agents",
        status: problems.every(isHarmless) ? "warning" : "error",
        message: `${message}; ${count(problems.length, "problem")}`,
        hint: ordered.map((problem) => `${problem.path}: ${problem.message}`).join("\n"),
      },
      ...otherFindings,
    ];
  } finally {
    hooks.deregister();
  }
}

function isHarmless({ isHarmless = false }: SourceProblem): boolean {
  return isHarmless;
}

function checkCommandLists(problems: readonly SourceProblem[]): readonly Check[] {
  if (problems.length === 0) return [];
  return [
    {
      name: "command lists",
      status: "warning",
      message:
        problems.length === 1
          ? "An entry of a command list allows no command."
          : `${count(problems.length, "entry", "entries")} of command lists allow no command.`,
      hint: problems.map(({ path, message }) => `${path}: ${message}`).join("\n"),
    },
  ];
}

function checkSecrets(secretless: readonly LoadedWebhook[]): readonly Check[] {
  if (secretless.length === 0) return [];
  return [
    {
      name: "webhooks",
      status: "warning",
      message: `No secret for ${secretless.map(({ path }) => path).join(", ")}: every delivery is refused.`,
      hint: "Set the environment variable that the file reads, for instance in a file named with --env.",
    },
  ];
}
