import type { ResolvedModel } from "../../models/contract.ts";
import type { CompactionReason } from "../../protocol/event.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { compact } from "../compaction/compact.ts";
import { compactionOf } from "../define/limits.ts";
import type { CompactOptions } from "./options.ts";
import { ModelLine } from "./prepare.ts";

/** Shortens a session's history on request of the caller. */
export async function runCompact(
  harness: Pick<Harness, "runtime" | "store">,
  operation: Operation,
  { focus }: CompactOptions,
): Promise<boolean> {
  if (operation.past?.compacted === true) return true;
  const { profile } = operation.live;
  operation.spending.budget = profile.budget ?? {};
  const choice = profile.model ?? harness.runtime.defaultModel;
  const { current: resolved } = await ModelLine.open(choice, harness.runtime);
  return compactWith(harness, operation, { reason: "manual", resolved, focus });
}

/** Shortens the history with the model of the settings, else with the one in use. */
export async function compactWith(
  harness: Pick<Harness, "runtime" | "store">,
  operation: Operation,
  wish: {
    readonly reason: CompactionReason;
    readonly resolved: ResolvedModel;
    readonly focus?: string | undefined;
  },
): Promise<boolean> {
  const { runtime } = harness;
  const settings = compactionOf(operation.live.profile);
  const writer = settings.model === undefined ? wish.resolved : await runtime.resolveModel(settings.model);
  return compact({
    operation,
    reason: wish.reason,
    settings,
    // The window of the model that will read the summary counts.
    windowTokens: wish.resolved.contextWindowTokens ?? settings.contextWindowTokens,
    writer,
    runtime,
    store: harness.store,
    focus: wish.focus,
  });
}
