import type { ReactNode } from "react";
import { Tabs } from "../../ui/tabs.tsx";

const tabs = [
  { label: "Blocks", to: "/console/specs" },
  { label: "Criteria", to: "/console/specs/criteria" },
  { label: "Impact", to: "/console/specs/impact" },
  { label: "Problems", to: "/console/specs/problems" },
] as const;

/** The screens about specs. */
export function SpecTabs(): ReactNode {
  return <Tabs label="Specs" tabs={tabs} />;
}
