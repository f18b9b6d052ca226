import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";

export interface Tab {
  readonly label: string;
  readonly to: NonNullable<LinkProps["to"]>;
}

/** Links to the screens of one part. */
export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }): ReactNode {
  return (
    <nav aria-label={label} className="-mx-2 flex overflow-x-auto">
      {tabs.map((tab) => (
        <Link
          key={tab.to}
          to={tab.to}
          activeOptions={{ exact: true, includeSearch: false }}
          className="mx-2 flex h-9 shrink-0 items-center border-transparent border-b-2 text-sm text-soft hover:text-ink"
          activeProps={{ className: "border-accent! font-medium text-ink!", "aria-current": "page" }}
        >
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}
