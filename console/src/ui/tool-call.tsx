import type { ReactNode } from "react";
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

/** The arguments of a call and its result; an edit of a file is shown as a diff. */
export function CallContent({ tool, args, progress, result, isError = false }: CallProps): ReactNode {
  const path = fieldOf(args, "path");
  const after = tool === "write" ? fieldOf(args, "content") : fieldOf(args, "new");
  const before = tool === "write" ? "" : fieldOf(args, "old");
  const isChange =
    (tool === "edit" || tool === "write") &&
    path !== undefined &&
    after !== undefined &&
    before !== undefined;
  const command = tool === "bash" ? fieldOf(args, "command") : undefined;
  return (
    <>
      {isChange ? (
        <Diff path={path} before={before} after={after} />
      ) : command === undefined ? (
        <Code value={args} label="arguments" />
      ) : (
        <Code value={`$ ${command}`} label="command" />
      )}
      {result === undefined && progress !== undefined ? <Code value={progress} label="progress" /> : null}
      {result === undefined || result === "" ? null : (
        <div className={isError ? "rounded-md ring-1 ring-bad" : ""}>
          <Code value={result} label={isError ? "error" : "result"} />
        </div>
      )}
    </>
  );
}
