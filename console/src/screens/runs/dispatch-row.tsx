import type { ReactNode } from "react";
import type { DispatchRecord } from "../../../../src/client/index.ts";
import { ListRow } from "../../ui/list-row.tsx";
import { firstWords, visible } from "../../ui/text.ts";
import { Moment } from "../../ui/time.tsx";
import { describeCause } from "./describe-cause.ts";

/** The state of a dispatch in words: one whose call waits for a decision does not run. */
export function dispatchState({ status, waits_for_approval }: DispatchRecord): string {
  return waits_for_approval === true ? "waiting for you" : status;
}

/** One dispatch in a list. */
export function DispatchRow({ dispatch }: { readonly dispatch: DispatchRecord }): ReactNode {
  const { dispatch_id, agent, instance_id, status, input, error, accepted_at, cause } = dispatch;
  const words = firstWords(input);
  return (
    <ListRow
      link={{ to: "/console/dispatches/$dispatchId", params: { dispatchId: dispatch_id } }}
      status={dispatchState(dispatch)}
      title={words === "" ? dispatch_id : words}
      aside={`${agent} / ${instance_id}`}
      detail={
        error === undefined ? (
          <Attempts dispatch={dispatch} cause={cause === undefined ? undefined : describeCause(cause)} />
        ) : (
          visible(`${error.message} ${error.cause?.message ?? ""}`.trim().slice(0, 300))
        )
      }
      isBad={error !== undefined && status === "failed"}
      figure={dispatch.attempts > 1 ? `${dispatch.attempts} attempts` : undefined}
      at={accepted_at}
    />
  );
}

function Attempts({
  dispatch: { next_attempt_at },
  cause,
}: {
  readonly dispatch: DispatchRecord;
  readonly cause: string | undefined;
}): ReactNode {
  const begun = cause === undefined ? "" : `began by ${visible(cause)}`;
  if (next_attempt_at === undefined) return begun;
  return (
    <>
      next attempt <Moment at={next_attempt_at} />
      {begun === "" ? null : ` · ${begun}`}
    </>
  );
}
