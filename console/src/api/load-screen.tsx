import { type ReactNode, useEffect } from "react";
import { Page } from "../ui/page.tsx";
import { Notice } from "../ui/states.tsx";
import { connection } from "./connection.ts";

/** Loads the code of a screen; while the server is gone, resolves with a screen that says so and loads again once it is back. */
export async function loadScreen<Screen>(load: () => Promise<Screen>): Promise<Screen | typeof NotLoaded> {
  try {
    return await load();
  } catch (error) {
    await connection.check();
    if (!connection.isLost) throw error;
    return NotLoaded;
  }
}

function NotLoaded(): ReactNode {
  useEffect(
    () =>
      connection.subscribe(() => {
        if (!connection.isLost) location.reload();
      }),
    [],
  );
  return (
    <Page title="Not loaded">
      <Notice icon="warning" title="The server cannot be reached">
        This screen is loaded once the server answers again.
      </Notice>
    </Page>
  );
}
