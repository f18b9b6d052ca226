import type { ReactNode } from "react";
import { type FileChange, KitError } from "../../../../src/client/index.ts";
import { Chip, type Tone } from "../../ui/chips.tsx";
import { DiffLines } from "../../ui/diff.tsx";
import { Panel } from "../../ui/page.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";

const tones: Readonly<Record<FileChange["action"], Tone>> = {
  create: "good",
  update: "warn",
  delete: "bad",
  conflict: "bad",
  unchanged: "plain",
};

/** A file before and after a write. */
export function FileDiff({
  change: { path, action, before = "", after, reason },
  losses = [],
}: {
  readonly change: FileChange;
  readonly losses?: readonly string[];
}): ReactNode {
  // A conflict without a text to write has no diff: the file does not change.
  const hasDiff = action !== "unchanged" && (after !== undefined || action === "delete");
  return (
    <Panel
      title={<bdi className="font-mono text-xs foreign">{visible(path)}</bdi>}
      actions={<Chip tone={tones[action]}>{action}</Chip>}
    >
      {reason === undefined ? null : <p className="px-4 py-2 text-soft text-sm foreign">{visible(reason)}</p>}
      {losses.map((loss) => (
        <p key={loss} className="px-4 py-1 text-sm text-warn foreign">
          {visible(loss)}
        </p>
      ))}
      {hasDiff ? <DiffLines path={path} before={before} after={after ?? ""} /> : null}
    </Panel>
  );
}

/** Whether a change needs the user's consent, because it replaces text that was written by hand. */
export function isOverwrite({ action, after }: FileChange): boolean {
  return action === "conflict" && after !== undefined;
}

/** Whether a write changes the file, given the user's consent. */
export function isDue(change: FileChange, { overwrite }: { readonly overwrite: boolean }): boolean {
  return change.action === "conflict" ? overwrite && isOverwrite(change) : change.action !== "unchanged";
}

/** Asks whether to replace text that was written by hand. */
export function OverwriteBox({
  isChecked,
  onChange,
  children,
}: {
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <label className="flex items-center gap-2 text-sm">
      <input type="checkbox" checked={isChecked} onChange={({ target }) => onChange(target.checked)} />
      <span className="min-w-0 foreign">{children}</span>
    </label>
  );
}

/** The reason that nothing was written; the present file is shown below it. */
export function WriteRefusal({ error }: { readonly error: unknown }): ReactNode {
  if (!(error instanceof KitError) || error.code !== "conflict") return <ErrorNotice error={error} />;
  return (
    <div role="alert" className="rounded-lg border border-warn/40 bg-warn-back px-4 py-3 text-sm">
      <p className="font-medium text-warn foreign">{visible(error.message)}</p>
      <p className="mt-1 text-soft">The preview below is new. Check it, and write again.</p>
    </div>
  );
}
