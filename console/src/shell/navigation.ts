import type { LinkProps } from "@tanstack/react-router";
import type { IconName } from "../ui/icons.tsx";

export interface NavigationEntry {
  readonly label: string;
  readonly icon: IconName;
  readonly link: NonNullable<LinkProps["to"]>;
  /** Only where the server has agents and workflows, and not the index of a repository alone. */
  readonly needsService?: true;
}

/** The screens in the navigation, in groups. A screen that is reached from another one only is not here. */
export const navigation: readonly (readonly NavigationEntry[])[] = [
  [
    { label: "Home", icon: "home", link: "/" },
    { label: "Approvals", icon: "approvals", link: "/console/approvals", needsService: true },
  ],
  [
    { label: "Agents", icon: "agents", link: "/console/agents", needsService: true },
    { label: "Runs", icon: "runs", link: "/console/runs", needsService: true },
    { label: "Dispatches", icon: "dispatches", link: "/console/dispatches", needsService: true },
  ],
  [
    { label: "Specs", icon: "specs", link: "/console/specs" },
    { label: "Guidelines", icon: "guidelines", link: "/console/guidelines" },
  ],
  [
    { label: "Cluster", icon: "branch", link: "/console/cluster", needsService: true },
    { label: "Server", icon: "server", link: "/console/server" },
  ],
];
