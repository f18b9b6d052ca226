import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

const tabs = [
  { label: "Rules", to: "/console/guidelines" },
  { label: "For a file", to: "/console/guidelines/explain" },
  { label: "Lint", to: "/console/guidelines/lint" },
  { label: "Sync", to: "/console/guidelines/sync" },
] as const;

/** The screens about guidelines. */
export function GuidelineTabs(): ReactNode {
  return (
    <nav aria-label="Guidelines" className="flex gap-1 overflow-x-auto">
      {tabs.map(({ label, to }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: true, includeSearch: false }}
          className="rounded-md px-2.5 py-1 text-sm text-soft hover:bg-raised"
          activeProps={{ className: "bg-raised font-medium text-ink", "aria-current": "page" }}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}
