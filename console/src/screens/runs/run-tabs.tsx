import type { ReactNode } from "react";
import { type Tab, Tabs } from "../../ui/tabs.tsx";

const tabs: readonly Tab[] = [
  { label: "Runs", to: "/console/runs" },
  { label: "Schedules", to: "/console/schedules" },
  { label: "Deliveries", to: "/console/deliveries" },
];

export function RunTabs(): ReactNode {
  return <Tabs label="Runs and what starts them" tabs={tabs} />;
}
