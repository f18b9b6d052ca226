import { registerHooks } from "node:module";
import { ownFolder } from "../../base/own-package.ts";

let isLoaded = false;

/**
 * Loads the modules of kit that work needs first while it runs, so that the package can be replaced below a running
 * server, and a process without free file handles can go on. Not the parts of vendors, which need optional packages.
 */
export async function loadOwnCode(): Promise<void> {
  if (isLoaded) return;
  isLoaded = true;
  const folder = ownFolder();
  // Without this, Node looks for a loaded module on the disk again, once for each module that imports it.
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (!specifier.startsWith(".") || context.parentURL?.startsWith(folder) !== true)
        return nextResolve(specifier, context);
      return { url: new URL(specifier, context.parentURL).href, shortCircuit: true };
    },
  });
  await Promise.all([
    import("../../agents/approvals/allow-rules.ts"),
    import("../../agents/approvals/ask.ts"),
    import("../../agents/approvals/changed-file.ts"),
    import("../../agents/backend/backend-request.ts"),
    import("../../agents/backend/backend-run.ts"),
    import("../../agents/backend/backend-steps.ts"),
    import("../../agents/compaction/compact.ts"),
    import("../../agents/log/rewind.ts"),
    import("../../agents/operations/begin-without.ts"),
    import("../../agents/operations/join-inputs.ts"),
    import("../../agents/operations/run-shell.ts"),
    import("../../agents/operations/run-skill.ts"),
    import("../../agents/operations/run-task.ts"),
    import("../../agents/output/partial-result.ts"),
    import("../../agents/policy/check-command.ts"),
    import("../../agents/policy/command-list.ts"),
    import("../../agents/policy/forms/git-form.ts"),
    import("../../agents/policy/forms/programs.ts"),
    import("../../agents/policy/parse-command.ts"),
    import("../../agents/tools/command-context.ts"),
    import("../../agents/tools/protected-below.ts"),
    import("../../agents/tools/repository-parts.ts"),
    import("../../agents/tools/run-command.ts"),
    import("../../agents/turn/hook-calls.ts"),
    import("../../backends/resolve-backend.ts"),
    import("../../models/provider-limiter.ts"),
    import("../../project/features/changes-since.ts"),
    import("../../project/features/convert-project-guideline.ts"),
    import("../../project/features/coverage.ts"),
    import("../../project/features/fix-project.ts"),
    import("../../project/features/named-specs.ts"),
    import("../../project/features/spec-history.ts"),
    import("../../project/features/stale.ts"),
    import("../../project/features/sync-guidelines.ts"),
    import("../../project/results/record-results.ts"),
    import("../../project/store/threaded-writer.ts"),
    import("../../python/process/process-pool.ts"),
    import("../../python/python-session.ts"),
    import("../../sandboxes/host/exec/command-environment.ts"),
    import("../../sandboxes/host/wall/find-wall.ts"),
    import("../../sandboxes/local/local-sandbox.ts"),
    import("../../sandboxes/local/open-local.ts"),
    import("../../sandboxes/persist/persistent-sandbox.ts"),
    import("../../sandboxes/remote/open-remote.ts"),
    import("../../sandboxes/virtual/open-virtual.ts"),
    import("../../sandboxes/virtual/virtual-sandbox.ts"),
    import("../../webhooks/define-webhook.ts"),
    import("./input-ends.ts"),
    import("../config/allow-rule-file.ts"),
    import("../../json-schema/check-against-schema.ts"),
    import("../runtime/run-workflow.ts"),
    import("./follow-operation.ts"),
    import("./forks.ts"),
    import("./guideline-usage.ts"),
    import("./joined-input.ts"),
    import("./log-page.ts"),
    import("./list-operations.ts"),
    import("./trace.ts"),
    import("../verify/verify-work-tree.ts"),
    import("../spec-run/spec-workflow.ts"),
    import("../verify/verify-workflow.ts"),
  ]);
}
