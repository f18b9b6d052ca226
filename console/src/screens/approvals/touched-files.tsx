import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ApprovalRequest } from "../../../../src/client/index.ts";
import { useServer } from "../../api/use-server.ts";
import { Diff } from "../../ui/diff.tsx";
import { visible } from "../../ui/text.ts";
import { CallContent } from "../../ui/tool-call.tsx";

/** The most files that are listed; others are only counted. */
const mostFiles = 5;
const mostItems = 20;

function textIn(args: unknown, name: string): string | undefined {
  const value: unknown = typeof args === "object" && args !== null ? Reflect.get(args, name) : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Returns the files that a call touches, as paths of the repository. */
export function touchedBy({ touches, args }: Pick<ApprovalRequest, "touches" | "args">): readonly string[] {
  const path = textIn(args, "path");
  const paths = touches ?? (path === undefined ? [] : [path]);
  return paths
    .map((one) => one.replace(/^\.\//, ""))
    .filter((one) => one !== "" && !/^\/|(^|\/)\.\.(\/|$)/.test(one));
}

/** Shows the change that a call would make to the present file; for other calls, the arguments. */
export function CallPreview({ approval }: { readonly approval: ApprovalRequest }): ReactNode {
  const { tool, args } = approval;
  const [path] = tool === "write" || tool === "edit" ? touchedBy(approval) : [];
  const file = useServer({
    key: ["file", path, "whole"],
    ask: (client, signal) => client.files.lines({ path: path ?? "" }, { signal }),
    enabled: path !== undefined,
  });
  const now = file.data;
  const isWhole = now !== undefined && now.lines.length === now.total_lines && now.cut === undefined;
  const before = isWhole ? `${now.lines.join("\n")}\n` : undefined;
  const after = before === undefined ? undefined : changed(before, tool, args);
  if (path === undefined || before === undefined || after === undefined)
    return (
      <>
        <CallContent tool={tool} args={args} />
        {path !== undefined && file.isError ? (
          <p className="text-soft text-xs">The present file cannot be shown: {file.error.message}</p>
        ) : null}
      </>
    );
  return <Diff path={path} before={before} after={after} />;
}

function changed(before: string, tool: string, args: unknown): string | undefined {
  if (tool === "write") return textIn(args, "content");
  const [old, fresh] = [textIn(args, "old"), textIn(args, "new")];
  if (old === undefined || fresh === undefined || !before.includes(old)) return undefined;
  return before.replace(old, () => fresh);
}

/** The rules and the specs that apply to the files that a call touches. */
export function AppliesTo({ paths }: { readonly paths: readonly string[] }): ReactNode {
  if (paths.length === 0) return null;
  return (
    <div className="flex flex-col gap-2">
      {paths.slice(0, mostFiles).map((path) => (
        <FileRules key={path} path={path} />
      ))}
      {paths.length > mostFiles ? (
        <p className="text-soft text-xs">and {paths.length - mostFiles} more files</p>
      ) : null}
    </div>
  );
}

function FileRules({ path }: { readonly path: string }): ReactNode {
  const rules = useServer({
    key: ["guidelines", "of", path],
    ask: (client, signal) => client.guidelines.list({ file: path, limit: mostItems }, { signal }),
  });
  const specs = useServer({
    key: ["specs", "of", path],
    ask: (client, signal) => client.specs.impact({ files: [path], depth: 1, limit: mostItems }, { signal }),
  });
  const error = rules.error ?? specs.error;
  const ruleCount = rules.data?.total_count ?? 0;
  const specCount = specs.data?.total_count ?? 0;
  return (
    <details className="rounded-md border border-line bg-sunken text-sm" open>
      <summary className="cursor-pointer px-3 py-1.5">
        <span className="font-mono text-xs foreign">{visible(path)}</span>
        <span className="text-soft">
          {" "}
          · {ruleCount} {ruleCount === 1 ? "rule" : "rules"}, {specCount} {specCount === 1 ? "spec" : "specs"}
        </span>
      </summary>
      {error === null ? null : <p className="px-3 pb-2 text-soft text-xs">{error.message}</p>}
      <ul className="max-h-40 overflow-y-auto px-3 pb-2">
        {rules.data?.guidelines.map(({ id, title, source_file }) => (
          <li key={id} className="truncate">
            <Link to="/console/guidelines/$id" params={{ id }} className="text-accent underline">
              <bdi>{visible(title)}</bdi>
            </Link>{" "}
            <span className="text-faint text-xs foreign">{visible(source_file)}</span>
          </li>
        ))}
        {specs.data?.affected.map(({ id }) => (
          <li key={id} className="truncate">
            <Link to="/console/specs/$id" params={{ id }} className="text-accent underline">
              <bdi>{visible(id)}</bdi>
            </Link>{" "}
            <span className="text-faint text-xs">spec</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
