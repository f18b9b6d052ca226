import type { LinkProps } from "@tanstack/react-router";
import type { IconName } from "../ui/icons.tsx";

export interface NavigationEntry {
  readonly label: string;
  readonly icon: IconName;
  readonly link: NonNullable<LinkProps["to"]>;
  /** The key that opens the screen after `g`. */
  readonly key: string;
  /** Shown only if the server has agents and workflows, not just the index of a repository. */
  readonly needsService?: true;
}

/** The screens in the navigation, in groups. Screens that are only linked from others are left out. */
export const navigation: readonly (readonly NavigationEntry[])[] = [
  [
    { label: "Home", key: "h", icon: "home", link: "/" },
    { label: "Waiting for you", key: "w", icon: "approvals", link: "/console/approvals", needsService: true },
  ],
  [
    { label: "Agents", key: "a", icon: "agents", link: "/console/agents", needsService: true },
    { label: "Runs", key: "r", icon: "runs", link: "/console/runs", needsService: true },
    { label: "Dispatches", key: "d", icon: "dispatches", link: "/console/dispatches", needsService: true },
  ],
  [
    { label: "Specs", key: "s", icon: "specs", link: "/console/specs" },
    { label: "Guidelines", key: "g", icon: "guidelines", link: "/console/guidelines" },
  ],
  [
    { label: "Cluster", key: "c", icon: "branch", link: "/console/cluster", needsService: true },
    { label: "Server", key: "v", icon: "server", link: "/console/server" },
  ],
];
