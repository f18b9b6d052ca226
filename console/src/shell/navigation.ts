import type { LinkProps } from "@tanstack/react-router";
import type { IconName } from "../ui/icons.tsx";

export interface NavigationEntry {
  readonly label: string;
  readonly icon: IconName;
  readonly link: NonNullable<LinkProps["to"]>;
  /** Shown only if the server has agents and workflows, not just the index of a repository. */
  readonly needsService?: true;
}

/** The screens in the navigation, in groups. Screens that are only linked from others are left out. */
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
