import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useServer } from "../../api/use-server.ts";
import { visible } from "../../ui/text.ts";

/** The most files that are listed; others are only counted. */
const mostFiles = 5;
const mostItems = 20;

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
