import type { WorkCause } from "../../protocol/work-cause.ts";

/** Names what started a run or a dispatch. */
export function causeText(cause: WorkCause | undefined): string | undefined {
  switch (cause?.type) {
    case "webhook":
      return `delivery ${cause.delivery_id} of the webhook ${cause.webhook}`;
    case "run":
      return cause.run_id;
    case "prompt": {
      const { agent, instance_id, session, operation_id, dispatch_id, run_id } = cause;
      const work = run_id ?? dispatch_id;
      const sender = `${agent}/${instance_id}${session === "default" ? "" : `, session ${session}`}`;
      return `${operation_id} of ${sender}${work === undefined ? "" : ` (${work})`}`;
    }
    case "schedule":
      return `the schedule ${cause.schedule}`;
    case "sender":
      return cause.principal;
    default:
      return undefined;
  }
}
