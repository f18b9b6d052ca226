import type { Link, Links } from "../aliases.ts";
import type { IndexDatabase } from "./index-database.ts";

/** The links of an index by their path; most projects have few or none. */
export function loadLinks(database: IndexDatabase): Links {
  const rows = database.all<[path: string, kind: Link["kind"], target: string]>(
    "SELECT path, kind, target FROM links",
  );
  return new Map(rows.map(([path, kind, target]) => [path, { kind, target }]));
}

export function saveLinks(database: IndexDatabase, links: Iterable<readonly [string, Link]>): void {
  database.run("DELETE FROM links");
  for (const [path, { kind, target }] of links) {
    database.run("INSERT INTO links (path, kind, target) VALUES (?, ?, ?)", path, kind, target);
  }
}
