import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";

export interface Tab {
  readonly label: string;
  readonly to: NonNullable<LinkProps["to"]>;
}

/** Links to the screens of one part. */
export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }): ReactNode {
  return (
    <nav aria-label={label} className="flex gap-1 overflow-x-auto">
      {tabs.map((tab) => (
        <Link
          key={tab.to}
          to={tab.to}
          activeOptions={{ exact: true, includeSearch: false }}
          className="rounded-md px-2.5 py-1 text-sm text-soft hover:bg-raised"
          activeProps={{ className: "bg-raised font-medium text-ink", "aria-current": "page" }}
        >
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}
