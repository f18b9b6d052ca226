import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

const tabs = [
  { label: "Blocks", to: "/console/specs" },
  { label: "Criteria", to: "/console/specs/criteria" },
  { label: "Impact", to: "/console/specs/impact" },
  { label: "Problems", to: "/console/specs/problems" },
] as const;

/** The screens about specs. */
export function SpecTabs(): ReactNode {
  return (
    <nav aria-label="Specs" className="flex gap-1 overflow-x-auto">
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
