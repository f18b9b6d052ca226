import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { visible } from "./text.ts";

/** A link to a place in a file of the repository. */
export function SourceLink({
  path,
  line,
  column,
}: {
  readonly path: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}): ReactNode {
  const search = { path, line: line === undefined ? undefined : String(line) };
  return (
    <Link
      to="/console/files"
      search={search}
      preload={false}
      className="min-w-0 font-mono text-soft text-xs hover:text-ink hover:underline foreign"
    >
      <bdi>{visible([path, line, column].filter((part) => part !== undefined).join(":"))}</bdi>
    </Link>
  );
}
