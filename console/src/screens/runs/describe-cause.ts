import type { WorkCause } from "../../../../src/client/index.ts";

/** Describes the cause of a run or a dispatch in words. */
export function describeCause(cause: WorkCause): string {
  switch (cause.type) {
    case "webhook":
      return `a delivery of ${cause.webhook}`;
    case "run":
      return `the run …${cause.run_id.slice(-6)}`;
    case "prompt":
      return `${cause.agent} / ${cause.instance_id}`;
    case "schedule":
      return `the schedule ${cause.schedule}`;
    case "sender":
      return cause.principal;
  }
}
