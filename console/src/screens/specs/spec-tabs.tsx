import type { ReactNode } from "react";
import { Tabs } from "../../ui/tabs.tsx";

const tabs = [
  { label: "Tree", to: "/console/specs" },
  { label: "Criteria", to: "/console/specs/criteria" },
  { label: "Impact", to: "/console/specs/impact" },
  { label: "Problems", to: "/console/specs/problems" },
  { label: "Stale", to: "/console/specs/stale" },
] as const;

/** The screens about specs. */
export function SpecTabs(): ReactNode {
  return <Tabs label="Specs" tabs={tabs} />;
}
