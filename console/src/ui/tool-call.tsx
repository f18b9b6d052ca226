import type { ReactNode } from "react";
import { type ApprovalRequest, findChangedFile, previewChange } from "../../../src/client/index.ts";
import { useServer } from "../api/use-server.ts";
import { Code } from "./code.tsx";
import { Diff } from "./diff.tsx";

function fieldOf(args: unknown, name: string): string | undefined {
  if (typeof args !== "object" || args === null) return undefined;
  const value: unknown = Object.entries(args).find(([key]) => key === name)?.[1];
  return typeof value === "string" ? value : undefined;
}

/** A call in one line: the tool and its subject. */
export function callTitle(tool: string, args: unknown): string {
  const about =
    fieldOf(args, "command") ??
    fieldOf(args, "path") ??
    fieldOf(args, "pattern") ??
    fieldOf(args, "query") ??
    fieldOf(args, "name");
  return about === undefined ? tool : `${tool} ${about.split("\n", 1)[0]}`;
}

interface CallProps {
  readonly tool: string;
  readonly args: unknown;
  readonly progress?: unknown;
  readonly result?: string | undefined;
  readonly isError?: boolean;
}

/**
 * The arguments of a call that was made, and its result. A written file is shown as it was written: what it replaced is not known
 * any more, except for the number of lines in the result.
 */
export function CallContent({ tool, args, progress, result, isError = false }: CallProps): ReactNode {
  return (
    <>
      <CallArguments tool={tool} args={args} />
      {result === undefined && progress !== undefined ? <Code value={progress} label="progress" /> : null}
      {result === undefined || result === "" ? null : (
        <div className={isError ? "rounded-md ring-1 ring-bad" : ""}>
          <Code value={result} label={isError ? "error" : "result"} />
        </div>
      )}
    </>
  );
}

function CallArguments({ tool, args }: Pick<CallProps, "tool" | "args">): ReactNode {
  const path = fieldOf(args, "path");
  const [old, fresh] = [fieldOf(args, "old"), fieldOf(args, "new")];
  if (tool === "edit" && path !== undefined && old !== undefined && fresh !== undefined)
    return <Diff path={path} before={old} after={fresh} />;
  const content = fieldOf(args, "content");
  if (tool === "write" && path !== undefined && content !== undefined)
    return <Code value={content} label={`the new ${path}`} />;
  const command = tool === "bash" ? fieldOf(args, "command") : undefined;
  return command === undefined ? (
    <Code value={args} label="arguments" />
  ) : (
    <Code value={`$ ${command}`} label="command" />
  );
}

/** Returns the files that a call touches, as paths of the repository. */
export function touchedBy({ touches, args }: Pick<ApprovalRequest, "touches" | "args">): readonly string[] {
  const path = fieldOf(args, "path");
  const paths = touches ?? (path === undefined ? [] : [path]);
  return paths
    .map((one) => one.replace(/^\.\//, ""))
    .filter((one) => one !== "" && !/^\/|(^|\/)\.\.(\/|$)/.test(one));
}

/** A call that waits for a decision: the change that it would make to the present file; for other calls, the arguments. */
export function WaitingCall({
  call: { tool, args, changes },
}: {
  readonly call: Pick<ApprovalRequest, "tool" | "args" | "changes">;
}): ReactNode {
  const { path = "", in_project = false, is_new = false } = changes ?? {};
  const file = useServer({
    key: ["file", path, "whole"],
    ask: (client, signal) => client.files.lines({ path }, { signal }),
    // The file can change while the call waits.
    everyMs: 4_000,
    enabled: in_project,
  });
  if (findChangedFile(tool, args) === undefined) return <CallArguments tool={tool} args={args} />;
  if (in_project && file.isPending) return <p className="text-soft text-xs">Loading the present file…</p>;
  const { lines, total_lines, cut } = file.data ?? {};
  const isWhole = lines !== undefined && lines.length === total_lines && cut === undefined;
  const present = isWhole ? lines.map((line) => `${line}\n`).join("") : undefined;
  // Ignored files and files with keys are as little shown as missing ones: only the record knows that a file is new.
  const before = (in_project ? present : changes?.before) ?? (is_new ? "" : undefined);
  const change = before === undefined ? undefined : previewChange({ tool, args }, before);
  if (change !== undefined)
    return (
      <Diff
        path={is_new && before === "" ? `${path} (a new file)` : path}
        before={change.before}
        after={change.after}
      />
    );
  return (
    <>
      <CallArguments tool={tool} args={args} />
      <p className="text-warn text-xs">
        {before !== undefined
          ? "The present file does not contain the old text: the call will fail."
          : `This is no comparison with the present file${file.error === null ? ", which kit cannot show" : `: ${file.error.message}`}`}
      </p>
    </>
  );
}
