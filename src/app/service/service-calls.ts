import { unsavedOf } from "../../agents/log/unsaved-work.ts";
import { systemClock } from "../../base/clock.ts";
import type { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import { nodesOf } from "../cluster/owners.ts";
import type { AllowRuleFile } from "../config/allow-rule-file.ts";
import { serverProblems } from "../runtime/agent-factory.ts";
import type { SourceProblem } from "../sources/discover-sources.ts";
import type { App, RunOptions } from "./app.ts";
import type { ComposedParts } from "./compose-parts.ts";
import { createInbox, createWaitingSessions } from "./inbox.ts";
import type { ProjectService } from "./service.ts";
import { operationOf } from "./stored-input.ts";
import type { ScheduleSync } from "./sync-schedules.ts";
import { senderOf } from "./work-calls.ts";
import { workLost } from "./work-errors.ts";
import type { WorkflowRuns } from "./workflow-runs.ts";

/** The work of a service besides requests: housekeeping and schedules. */
export interface Upkeep {
  problem(): KitError | undefined;
  problems(): readonly SourceProblem[];
  /** Makes the engine's schedules those of the source files. */
  renewSchedules(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts housekeeping, unless the options turn it off. */
export async function openUpkeep(parts: ComposedParts): Promise<Upkeep> {
  const { options, engine, runtimeParts, sources, sessions, validateJson, onError } = parts;
  const { store } = runtimeParts;
  const isOn = options.works !== false && options.housekeeping !== false;
  const problem: Upkeep["problem"] = () => engine.problem?.() ?? store.problem();
  const problems: Upkeep["problems"] = () => [
    ...sources.loaded.problems,
    ...serverProblems(runtimeParts.mcp),
  ];
  const watched = { problem, warning: () => engine.warning?.(), sessions, store };
  const endHousekeeping = isOn
    ? (await import("./housekeeping.ts")).startHousekeeping(watched, options)
    : undefined;
  let schedules: ScheduleSync | undefined;
  return {
    problem,
    problems,
    async renewSchedules() {
      if (!isOn) {
        await nodesOf(engine).declareSchedules([]);
        return;
      }
      schedules ??= new (await import("./sync-schedules.ts")).ScheduleSync({
        engine,
        sources: () => ({ workflows: sources.loaded.workflows, problems: problems() }),
        onError,
        validateJson,
      });
      await schedules.renew();
    },
    async stop() {
      schedules?.stop();
      await endHousekeeping?.();
    },
  };
}

/** The calls of a service, which its parts answer. */
export function toService(parts: ComposedParts, upkeep: Upkeep): ProjectService {
  const { options, engine, runtimeParts, approvals, nodes, sources } = parts;
  const { sessions, prompts, calls, runs, instances, admin } = parts;
  let isLeaving = false;
  let closed: Promise<void> | undefined;
  let allowRules: AllowRuleFile | undefined;
  const close: ProjectService["close"] = (how) => {
    closed ??= closeService(parts, upkeep, how);
    return closed;
  };
  const reload = async (): Promise<void> => {
    await sources.reload();
    instances.renew();
    await upkeep.renewSchedules();
    await engine.resumeHeld?.();
  };
  return {
    app: toApp(parts, { problems: upkeep.problems, reload, close: () => close({ timeoutMs: 0 }) }),
    engine,
    approvals,
    async allowRules() {
      const { AllowRuleFile } = await import("../config/allow-rule-file.ts");
      allowRules ??= new AllowRuleFile({
        file: options.configFile,
        defaults: runtimeParts.defaults,
        writes: sources.guard,
      });
      return allowRules;
    },
    sessions,
    prompt: prompts.prompt,
    problem: upkeep.problem,
    async dispatch({ agent, instance_id: id, session }, input, { principal, receivedAt, ...how } = {}) {
      const receipt = await calls.dispatch([agent, { ...how, id, session, input }], {
        ...senderOf(principal),
        received_at: receivedAt,
      });
      return { ...receipt, operation_id: operationOf(receipt.dispatch_id) };
    },
    ...admin.routed,
    waiting: createInbox({ engine, approvals, logins: runtimeParts.mcp?.logins }),
    ...(runtimeParts.mcp && { logins: runtimeParts.mcp.logins }),
    waitingSessions: createWaitingSessions({ engine, approvals }),
    ...(nodes && { nodes }),
    fork: (...request) => calls.fork(...request),
    async guidelineUsage(selection = {}) {
      const { readGuidelineUsage } = await import("./guideline-usage.ts");
      return await readGuidelineUsage({ sessions, store: runtimeParts.store, rules: parts.rules }, selection);
    },
    startRun: (workflow, payload, { request, ...how } = {}) =>
      runs.start(workflow, payload, {
        ...how,
        ...senderOf(how.principal),
        ...(request === undefined ? {} : { local: { request } }),
      }),
    callsFor: (sender) => calls.ofSender(sender),
    reload,
    async leave() {
      isLeaving = true;
      await engine.leave?.();
    },
    get isLeaving() {
      return isLeaving;
    },
    drain: (how) => engine.drain(how),
    close,
  };
}

function toApp(parts: ComposedParts, ownMethods: Pick<App, "problems" | "reload" | "close">): App {
  const { runtimeParts, sources, sandboxOf, instances, factory, context, runs, calls, observers } = parts;
  return {
    ...ownMethods,
    ...calls.ofSender(),
    root: sources.root,
    env: runtimeParts.env,
    mask: runtimeParts.mask ?? ((text) => text),
    agents: sources.agents,
    workflows: () => sources.loaded.workflows,
    webhooks: () => sources.loaded.webhooks,
    skills: () => sources.loaded.skills,
    async sandboxes() {
      const ofAgents = sources.loaded.agents.map(({ name: agent }) =>
        // The error of an agent's function is reported when the agent is used.
        sandboxOf({ agent, instance_id: "default", session: "default" }).catch(() => undefined),
      );
      const sandboxes = (await Promise.all(ofAgents)).filter((sandbox) => sandbox !== undefined);
      return [...new Set([runtimeParts.sandbox, ...sandboxes])];
    },
    hasChanged: () => sources.hasChanged(),
    async instance(agent, id, payload = {}) {
      const name = typeof agent === "string" ? agent : sources.agentName(agent);
      return await instances.get({ agent: name, instance_id: id }, payload);
    },
    init: (definition, { id = "default", ...over } = {}) =>
      factory.create(definition, { ...context, ...over, id }),
    run: (async (workflow: Parameters<WorkflowRuns["nameOf"]>[0], run: RunOptions = {}) =>
      await runs.toEnd(runs.nameOf(workflow), run)) as App["run"],
    onEvent: (listener) => observers.add(listener),
  };
}

/** How long a stop waits for the store to write the rest; what is not written by then is lost. */
const unsavedPatienceMs = 1_000;

async function closeService(
  { engine, owners, instances, runtimeParts, sources }: ComposedParts,
  upkeep: Upkeep,
  how: Parameters<Engine["drain"]>[0],
): Promise<void> {
  await upkeep.stop();
  await engine.drain(how);
  owners.close();
  await instances.close();
  const lostEntries = await unsavedOf(runtimeParts.store, systemClock).close(unsavedPatienceMs);
  if (lostEntries > 0) runtimeParts.onListenerError?.(workLost(lostEntries));
  await runtimeParts.close();
  sources.close();
}
