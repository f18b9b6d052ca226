import { type ReactNode, useSyncExternalStore } from "react";
import { connection } from "../api/connection.ts";
import { Icon } from "../ui/icons.tsx";

/** Says on every screen that the server is gone, until it answers again. */
export function ConnectionBar(): ReactNode {
  const isLost = useSyncExternalStore(connection.subscribe, () => connection.isLost);
  return (
    <div role="status">
      {isLost ? (
        <p className="flex items-center justify-center gap-2 border-warn/40 border-b bg-warn-back px-4 py-1 text-sm text-warn">
          <Icon name="warning" />
          Connection lost, trying again
        </p>
      ) : null}
    </div>
  );
}
