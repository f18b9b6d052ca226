import type { ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";

/** A command for a terminal, with a button to copy it. */
export function Command({ text }: { readonly text: string }): ReactNode {
  return (
    <span className="inline-flex min-w-0 items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pr-0.5 pl-2">
      <code className="min-w-0 font-mono text-ink text-xs foreign">{text}</code>
      <CopyButton textOf={() => text} />
    </span>
  );
}
