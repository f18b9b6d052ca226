import type { ReactNode } from "react";
import { Tabs } from "../../ui/tabs.tsx";

const tabs = [
  { label: "Rules", to: "/console/guidelines" },
  { label: "For a file", to: "/console/guidelines/explain" },
  { label: "Lint", to: "/console/guidelines/lint" },
  { label: "Sync", to: "/console/guidelines/sync" },
] as const;

/** The screens about guidelines. */
export function GuidelineTabs(): ReactNode {
  return <Tabs label="Guidelines" tabs={tabs} />;
}
