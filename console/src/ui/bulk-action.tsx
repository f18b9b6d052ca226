import { type ReactNode, useState } from "react";
import type { KitClient } from "../../../src/client/index.ts";
import { asked, useClient } from "../api/use-server.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import type { IconName } from "./icons.tsx";
import { useReload } from "./listing.tsx";
import { visible } from "./text.ts";

/** The outcome of one request of a change of many items. */
export interface BulkStep {
  readonly done: number;
  readonly failed: readonly { readonly error: { readonly message: string } }[];
  readonly next_cursor?: string | undefined;
}

interface BulkActionProps {
  /** `Retry` */
  readonly verb: string;
  /** `retried` */
  readonly participle: string;
  /** The items that the filters leave: `1,000 failed runs`. */
  readonly what: string;
  readonly icon: IconName;
  readonly isBad?: boolean;
  readonly step: (client: KitClient, cursor: string | undefined) => Promise<BulkStep>;
  /** The lists that are stale afterwards. */
  readonly stale: readonly string[];
}

type State =
  | { readonly kind: "idle" | "asking" }
  | {
      readonly kind: "working" | "over";
      readonly done: number;
      readonly failed: number;
      readonly why?: string;
    };

/** Changes all items that match the filters of a list, after a question, and says how many it changed. */
export function BulkAction({
  verb,
  participle,
  what,
  icon,
  isBad = false,
  step,
  stale,
}: BulkActionProps): ReactNode {
  const client = useClient();
  const reload = useReload();
  const [state, setState] = useState<State>({ kind: "idle" });
  const run = async (): Promise<void> => {
    let [done, failed] = [0, 0];
    let why: string | undefined;
    let cursor: string | undefined;
    const show = (kind: "working" | "over"): void =>
      setState({ kind, done, failed, ...(why === undefined ? {} : { why }) });
    show("working");
    try {
      do {
        const at = cursor;
        const answer = await asked(client, () => step(client, at));
        done += answer.done;
        failed += answer.failed.length;
        why ??= answer.failed[0]?.error.message;
        cursor = answer.next_cursor;
        show("working");
      } while (cursor !== undefined);
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    show("over");
    await reload(stale);
  };
  return (
    <>
      {state.kind === "working" || state.kind === "over" ? (
        <span role="status" className="text-soft text-sm foreign">
          {`${state.done.toLocaleString()} ${participle}`}
          {state.failed === 0 ? "" : `, ${state.failed.toLocaleString()} could not be`}
          {state.why === undefined ? "" : `: ${visible(state.why.slice(0, 300))}`}
        </span>
      ) : null}
      <Button
        icon={icon}
        variant={isBad ? "bad" : "plain"}
        isBusy={state.kind === "working"}
        disabled={what.startsWith("0 ")}
        onClick={() => setState({ kind: "asking" })}
      >
        {`${verb} ${what}`}
      </Button>
      {state.kind === "asking" ? (
        <Dialog title={`${verb} ${what}?`} onClose={() => setState({ kind: "idle" })}>
          <p className="text-soft text-sm">
            All that the filters of this list leave, also those not loaded yet.
          </p>
          <div className="flex justify-end gap-2">
            <Button variant="quiet" onClick={() => setState({ kind: "idle" })}>
              Leave them
            </Button>
            <Button variant={isBad ? "bad" : "solid"} icon={icon} onClick={() => void run()}>
              {verb}
            </Button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}
